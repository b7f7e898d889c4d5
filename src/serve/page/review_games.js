// The game to review: pasted, dropped, loaded from a file, or played here.

import { element } from "./dom.js";
import { games as kept } from "./store.js";

/** Maximum number of games that are listed, from a file or played here. */
const LISTED = 500;
const PLAYED = 10;

const main = document.getElementById("review");
const at = (name) => document.getElementById(`review-${name}`);
const form = at("form");
/** The games in the given text. */
let games = [];

/** Splits a text into games; a new game begins with tags after an empty line. */
const split = (text) =>
  text
    .replace(/^\uFEFF/, "")
    .split(/\n\s*\n(?=\[\w+\s+")/)
    .filter((game) => game.trim());

/** Describes a game on one line: players, result and date. */
function describe(pgn) {
  const tag = (name) => pgn.match(new RegExp(`^\\[${name}\\s+"(.*)"\\]`, "m"))?.[1].replace(/^\?+$/, "") ?? "";
  const players = `${tag("White") || "White"} – ${tag("Black") || "Black"}`;
  const rest = [tag("Result").replace("*", ""), tag("Date").replaceAll(/\?+\.?/g, "")].filter(Boolean);
  return [players, ...rest].join(", ");
}

/** Offers the games in a text; the first is selected. */
export function offer(text) {
  games = split(text);
  const options = games.slice(0, LISTED).map((game, value) => element("option", { value, textContent: `${value + 1}. ${describe(game)}` }));
  form.elements.game.replaceChildren(...options);
  at("which").hidden = games.length < 2;
  if (games.length) form.elements.pgn.value = games[0].trim();
}

/** Reviews a game in PGN. If the game was played here, only the person's moves are reviewed. */
export function load(pgn) {
  offer(pgn);
  const own = ["White", "Black"].find((name) => pgn.includes(`[${name} "You"]`));
  if (own) form.elements.side.value = own.toLowerCase();
  form.requestSubmit();
}

/** Shows or hides the form. */
export function showForm(isShown) {
  form.hidden = !isShown;
  const played = kept().filter((game) => /^1\./m.test(game)).slice(-PLAYED).reverse();
  at("played").hidden = !played.length;
  at("played").querySelector("ol").replaceChildren(
    ...played.map((game) => {
      const button = element("button", { type: "button", textContent: describe(game) });
      button.addEventListener("click", () => load(game));
      return element("li", {}, button);
    }),
  );
}

/** Shows whether a requested review is still waiting to begin. */
export function showWaiting(isWaiting) {
  const button = form.querySelector(".main");
  button.disabled = isWaiting;
  button.textContent = isWaiting ? "Waiting for its turn" : "Review";
}

/** Reads a file, and reviews its game if there is only one. */
async function read(file) {
  if (!file) return;
  offer(await file.text());
  if (games.length === 1) form.requestSubmit();
  else dispatchEvent(new CustomEvent("review-choose"));
}

/** Calls `review` with the chosen games in the format of a request. */
export function whenAsked(review) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const { pgn, side, elo, nodes } = Object.fromEntries(new FormData(form));
    const request = { pgn, nodes: Number(nodes) };
    if (side) request.side = side;
    if (elo) request.elo = Number(elo);
    review(request);
  });
}

form.elements.game.addEventListener("change", () => (form.elements.pgn.value = games[form.elements.game.value].trim()));
form.elements.pgn.addEventListener("change", () => offer(form.elements.pgn.value));
at("file").addEventListener("change", () => read(at("file").files[0]));
main.addEventListener("dragover", (event) => event.preventDefault());
main.addEventListener("drop", (event) => {
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  read(event.dataTransfer.files[0]);
});

// The game to review: pasted, dropped, from a file, or played here.

import { element } from "./dom.js";
import { games as kept } from "./store.js";

/** Games of a file, and games played here, that are listed. */
const LISTED = 500;
const PLAYED = 10;

const main = document.getElementById("review");
const at = (name) => document.getElementById(`review-${name}`);
const form = at("form");
/** The games of the text that was given. */
let games = [];

/** The texts of the games: one begins with tags after an empty line. */
const split = (text) =>
  text
    .replace(/^\uFEFF/, "")
    .split(/\n\s*\n(?=\[\w+\s+")/)
    .filter((game) => game.trim());

/** A game in a line: players, result and date. */
function describe(pgn) {
  const tag = (name) => pgn.match(new RegExp(`^\\[${name}\\s+"(.*)"\\]`, "m"))?.[1].replace(/^\?+$/, "") ?? "";
  const players = `${tag("White") || "White"} – ${tag("Black") || "Black"}`;
  const rest = [tag("Result").replace("*", ""), tag("Date").replaceAll(/\?+\.?/g, "")].filter(Boolean);
  return [players, ...rest].join(", ");
}

/** Offers the games of a text; the first is chosen. */
export function offer(text) {
  games = split(text);
  const options = games.slice(0, LISTED).map((game, value) => element("option", { value, textContent: `${value + 1}. ${describe(game)}` }));
  form.elements.game.replaceChildren(...options);
  at("which").hidden = games.length < 2;
  if (games.length) form.elements.pgn.value = games[0].trim();
}

/** Reviews a game in PGN. Of a game that was played here, the moves of the person are reviewed. */
export function load(pgn) {
  offer(pgn);
  const own = ["White", "Black"].find((name) => pgn.includes(`[${name} "You"]`));
  if (own) form.elements.side.value = own.toLowerCase();
  form.requestSubmit();
}

/** Shows the form, or hides it. */
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

/** Shows whether a review was asked for that has not begun. */
export function showWaiting(isWaiting) {
  const button = form.querySelector(".main");
  button.disabled = isWaiting;
  button.textContent = isWaiting ? "Waiting for its turn" : "Review";
}

/** Reads a file, and reviews its game if there is but one. */
async function read(file) {
  if (!file) return;
  offer(await file.text());
  if (games.length === 1) form.requestSubmit();
  else dispatchEvent(new CustomEvent("review-choose"));
}

/** Calls `review` with what is to be reviewed, as the server takes it. */
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

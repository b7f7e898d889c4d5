// The game to review: pasted, dropped, loaded from a file, or played here.

import { element } from "./dom.js";
import { takeFiles } from "./files.js";
import { t } from "./messages.js";
import { describe, listGames, split } from "./pgn.js";
import { games as kept } from "./store.js";

/** Number of latest games played here that are listed. */
const PLAYED = 10;

const main = document.getElementById("review");
const at = (name) => document.getElementById(`review-${name}`);
const form = at("form");
/** The games in the given text. */
let games = [];

/** Offers the games in a text; the first is selected. */
export function offer(text) {
  games = split(text);
  listGames(form.elements.game, games);
  if (games.length) form.elements.pgn.value = games[0];
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
  button.textContent = isWaiting ? t("Waiting for its turn") : t("Review");
}

/** Offers the games of a file, and reviews its game if there is only one. */
function read(text) {
  offer(text);
  if (games.length === 1) form.requestSubmit();
  else dispatchEvent(new CustomEvent("review-choose"));
}

/** Calls `review` with the chosen games in the format of a request. */
export function whenAsked(review) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const { pgn, side, elo, nodes = form.elements.nodes.defaultValue } = Object.fromEntries(new FormData(form));
    const request = { pgn, nodes: Number(nodes) };
    if (side) request.side = side;
    if (elo) request.elo = Number(elo);
    review(request);
  });
}

form.elements.game.addEventListener("change", () => (form.elements.pgn.value = games[form.elements.game.value]));
form.elements.pgn.addEventListener("change", () => offer(form.elements.pgn.value));
takeFiles(main, at("file"), read);

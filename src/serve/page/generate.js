// Games that a network generates, replayed on the board.

import { ServerError, isAbort, stream } from "./api.js";
import { Board } from "./board.js";
import { analyse, element, finder, playFrom, trouble } from "./dom.js";
import { fenOf } from "./fen.js";
import { Game, numbered } from "./game.js";
import { plural, t } from "./messages.js";
import { listNetworks, server } from "./opponents.js";
import { copy, recallHere, rememberHere, save } from "./store.js";
import { Tree } from "./tree.js";

/** The key under which the games are stored, for a reload. */
const KEY = "generated";
/** Number of milliseconds that a move stays on the board. */
const PACE = 700;

const at = finder("generate");
const form = at("form");
const board = new Board(at("board"));

/** The games, as returned by the server. */
let games = [];
/** The game on the board, its PGN, and the number of moves played. */
let shown = { game: new Game(), pgn: "", ply: 0 };
let running;
let replaying;

function draw() {
  const { game, ply } = shown;
  const here = game.at(ply);
  board.show(here);
  const last = here.moves.at(-1);
  const before = here.positions.at(-2);
  at("move").textContent = last ? numbered([last.san], before.turn, before.fullmoves) : "";
  at("previous").disabled = ply === 0;
  at("next").disabled = ply === game.moves.length;
  for (const name of ["run", "analyse", "play"]) at(name).disabled = !game.moves.length;
}

function step(by) {
  shown.ply = Math.max(0, Math.min(shown.game.moves.length, shown.ply + by));
  draw();
  if (shown.ply === shown.game.moves.length) replay(false);
}

function replay(isOn) {
  clearInterval(replaying);
  replaying = isOn ? setInterval(() => step(1), PACE) : undefined;
  at("run").setAttribute("aria-pressed", isOn);
  at("run").textContent = isOn ? t("Pause") : t("Replay");
}

function choose(written, button, isReplayed = true) {
  const { tree } = Tree.fromPgn(written.pgn);
  shown = { game: tree.game(tree.end()), pgn: written.pgn, ply: 0 };
  for (const it of at("games").querySelectorAll("button")) it.removeAttribute("aria-current");
  button.setAttribute("aria-current", "true");
  draw();
  replay(isReplayed);
}

/** Removes the games from the page. */
function clear() {
  games = [];
  shown = { game: new Game(), pgn: "", ply: 0 };
  at("games").replaceChildren();
  at("tools").hidden = true;
  replay(false);
  draw();
}

/** Adds a game to the list; the first is replayed unless it was written before a reload. */
function add(written, isNew = true) {
  games.push(written);
  const sans = written.moves.map(({ san }) => san);
  const opening = numbered(sans.slice(0, 8), "white", 1);
  const moves = Math.ceil(sans.length / 2);
  const length = plural(moves, t("{count} move", { count: moves }), t("{count} moves", { count: moves }));
  const button = element("button", {}, element("b", { textContent: `${written.result ?? "*"}` }), ` ${written.end}, ${length}: ${opening}`);
  button.addEventListener("click", () => choose(written, button));
  at("games").append(element("li", {}, button));
  at("tools").hidden = false;
  if (games.length === 1) choose(written, button, isNew);
}

/** Returns the moves of an opening, without numbers. */
const opening = (text) => text.replace(/\d+\.+/g, " ").split(/\s+/).filter(Boolean);

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  running?.abort();
  const own = (running = new AbortController());
  const fields = Object.fromEntries([...new FormData(form)].filter(([, value]) => value));
  const numbers = ["games", "white_elo", "black_elo", "temperature"];
  const request = { moves: opening(fields.opening ?? "") };
  for (const name of numbers) if (fields[name]) request[name] = Number(fields[name]);
  for (const name of ["network", "result"]) if (fields[name]) request[name] = fields[name];
  clear();
  at("stop").hidden = false;
  at("status").textContent = t("The network is writing…");
  trouble("");
  try {
    for await (const update of stream("/v1/generate", request, own.signal)) {
      if (update.event === "error") throw new ServerError(update.status, update);
      add(update);
      rememberHere(KEY, games);
      at("status").textContent = t("{written} of {count} games written.", { written: games.length, count: request.games ?? 1 });
    }
  } catch (error) {
    if (!isAbort(error)) {
      at("status").textContent = "";
      trouble(error.message, () => form.requestSubmit());
    }
  } finally {
    if (running === own) at("stop").hidden = true;
  }
});

at("stop").addEventListener("click", () => running?.abort());
at("previous").addEventListener("click", () => step(-1));
at("next").addEventListener("click", () => step(1));
at("run").addEventListener("click", () => {
  if (!replaying && shown.ply === shown.game.moves.length) shown.ply = 0;
  replay(!replaying);
});
at("analyse").addEventListener("click", () => analyse(shown.pgn, shown.ply));
at("play").addEventListener("click", () => playFrom(fenOf(shown.game.at(shown.ply).position)));
const pgn = () => games.map((game) => game.pgn.trim()).join("\n\n") + "\n";
at("copy").addEventListener("click", () => copy(pgn()));
at("save").addEventListener("click", () => save(pgn()));

/** Handles a key that steps through the moves. */
export function press(key) {
  const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
  if (key in steps) step(steps[key]);
  return key in steps;
}

/** Shows the games that were here before a reload. */
function restore() {
  const kept = recallHere(KEY);
  const isGame = (it) => typeof it?.pgn === "string" && Array.isArray(it.moves);
  if (!Array.isArray(kept) || !kept.every(isGame)) return;
  try {
    for (const written of kept) add(written, false);
  } catch (error) {
    // They are damaged.
    console.warn(error.message);
    clear();
  }
}

export function begin() {
  listNetworks(form.elements.network, ({ family }) => family === "gpt");
  form.elements.games.max = server.limits.games;
  const has = form.elements.network.options.length > 0;
  document.querySelector('nav a[href="#generate"]').hidden = !has;
  at("start").disabled = !has;
  at("status").textContent = has ? t("Let a network write whole games, and watch them.") : t("No network here writes games.");
  draw();
  if (has) restore();
}

export const enter = () => board.redraw();
export const leave = () => replay(false);

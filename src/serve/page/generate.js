// Games that a network writes, replayed on the board.

import { isAbort, stream } from "./api.js";
import { Board, element } from "./board.js";
import { listNetworks, server } from "./choice.js";
import { Game, numbered } from "./game.js";
import { copy, save } from "./kept.js";

/** Milliseconds that a move stays on the board. */
const PACE = 700;

const at = (name) => document.getElementById(`generate-${name}`);
const form = at("form");
const board = new Board(at("board"));
const trouble = (detail) => dispatchEvent(new CustomEvent("trouble", { detail }));

/** The games, as the server tells them. */
let games = [];
/** The game on the board, and how many of its moves. */
let shown = { game: new Game(), ply: 0 };
let running;
let replaying;

function draw() {
  const game = shown.game.at(shown.ply);
  board.show(game);
  const last = game.moves.at(-1);
  const before = game.positions.at(-2);
  at("move").textContent = last ? numbered([last.san], before.turn, before.fullmoves) : "";
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
}

function choose(written) {
  shown = { game: Game.fromPgn(written.pgn), ply: 0 };
  draw();
  replay(true);
}

function add(written) {
  games.push(written);
  const sans = written.moves.map(({ san }) => san);
  const opening = numbered(sans.slice(0, 8), "white", 1);
  const text = `${written.result ?? "*"} ${written.end}, ${sans.length} half-moves: ${opening}`;
  const button = element("button", { textContent: text });
  button.addEventListener("click", () => choose(written));
  at("games").append(element("li", {}, button));
}

/** The moves of an opening, without numbers. */
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
  games = [];
  at("games").replaceChildren();
  at("stop").hidden = false;
  at("status").textContent = "The network writes.";
  trouble("");
  try {
    for await (const update of stream("/v1/generate", request, own.signal)) {
      if (update.event === "error") throw new Error(update.detail);
      add(update);
      at("status").textContent = `${games.length} of ${request.games ?? 1} games are there.`;
      if (games.length === 1) choose(update);
    }
  } catch (error) {
    if (!isAbort(error)) {
      at("status").textContent = "";
      trouble(error.message);
    }
  } finally {
    at("stop").hidden = true;
  }
});

at("stop").addEventListener("click", () => running?.abort());
at("previous").addEventListener("click", () => step(-1));
at("next").addEventListener("click", () => step(1));
at("run").addEventListener("click", () => replay(!replaying));
at("analyse").addEventListener("click", () => {
  dispatchEvent(new CustomEvent("analyse", { detail: shown.game.pgn() }));
});
const pgn = () => games.map((game) => game.pgn.trim()).join("\n\n") + "\n";
at("copy").addEventListener("click", () => copy(pgn()));
at("save").addEventListener("click", () => save(pgn()));

/** A key that goes through the moves. */
export function press(key) {
  const steps = { ArrowLeft: -1, ArrowRight: 1 };
  if (key in steps) step(steps[key]);
  return key in steps;
}

export function begin() {
  listNetworks(form.elements.network, ({ family }) => family === "gpt");
  form.elements.games.max = server.limits.games;
  const has = form.elements.network.options.length > 0;
  form.querySelector("button").disabled = !has;
  at("status").textContent = has ? "" : "No network here writes games: start the server with --also and one of the family gpt.";
  draw();
}

export const enter = () => board.redraw();
export const leave = () => replay(false);

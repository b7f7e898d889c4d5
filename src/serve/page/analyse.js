// Analysis of a game, position by position.

import { isAbort, stream } from "./api.js";
import { Board, element } from "./board.js";
import { asked, chosenPlayer, listPlayers, searches } from "./choice.js";
import { Game, numbered, opposite } from "./game.js";
import * as see from "./see.js";

const at = (name) => document.getElementById(`analyse-${name}`);
const form = at("form");
const board = new Board(at("board"), { play: branch, select: (square) => see.look(square) });
see.use(board);

/** The game, and how many of its moves are on the board. */
let shown = { game: new Game(), ply: 0, view: "white" };
/** Ends the analysis that runs. */
let running;
/** Root moves of the position: visits and priors. */
let statistics = [];

const trouble = (detail) => dispatchEvent(new CustomEvent("trouble", { detail }));
const here = () => shown.game.at(shown.ply);

/** Loads a FEN or a PGN. */
export function load(text) {
  try {
    const game = Game.read(text);
    shown = { ...shown, game, ply: game.moves.length };
    form.elements.text.value = text.trim();
    trouble("");
    draw();
  } catch (error) {
    trouble(`This is no FEN and no PGN: ${error.message}`);
  }
}

function draw() {
  const { game, ply, view } = shown;
  statistics = [];
  board.show(here(), { orientation: view, mine: "both" });
  at("lines").replaceChildren();
  at("moves").replaceChildren(
    ...game.moves.map(({ san }, index) => {
      const before = game.positions[index];
      const number = before.turn === "white" || index === 0 ? `${before.fullmoves}. ` : "";
      const button = element("button", { textContent: number + san });
      if (index + 1 === ply) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => step(index + 1));
      return element("li", {}, button);
    }),
  );
  at("moves").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  see.show(here());
  restart();
}

function step(ply) {
  shown.ply = Math.max(0, Math.min(shown.game.moves.length, ply));
  draw();
}

/** Plays a move from the position on the board; what followed is another game. */
function branch(move) {
  const next = shown.game.moves[shown.ply];
  const game = here();
  const { uci } = game.play(move);
  if (next?.uci !== uci) shown.game = game;
  step(shown.ply + 1);
}

// What the engine says

/** Win, draw and loss as White sees them. */
const whites = ({ win, draw, loss }, turn) => (turn === "white" ? [win, draw, loss] : [loss, draw, win]);

function score({ cp, mate, tablebase, value }, turn) {
  const sign = turn === "white" ? 1 : -1;
  if (mate !== undefined) return `#${sign * mate}`;
  if (tablebase) return sign * value > 0 ? "+TB" : "−TB";
  const pawns = (sign * (cp ?? 0)) / 100;
  return (pawns >= 0 ? "+" : "−") + Math.abs(pawns).toFixed(2);
}

function showWdl(shares) {
  const bar = at("wdl");
  [...bar.children].forEach((part, index) => (part.style.width = `${100 * shares[index]}%`));
  const [win, draw, loss] = shares.map((share) => `${Math.round(100 * share)} %`);
  bar.ariaLabel = bar.title = `White wins ${win}, draw ${draw}, Black wins ${loss}`;
}

function showLines({ lines, turn, nodes, depth, nps }, fullmoves) {
  const rate = nps === undefined ? "all from earlier searches" : `${nps.toLocaleString("en")} a second`;
  at("status").textContent = `${nodes.toLocaleString("en")} nodes, depth ${depth}, ${rate}. Scores are White's.`;
  at("lines").replaceChildren(
    ...lines.map((line) => {
      const sans = line.moves.map(({ san }) => san);
      const text = numbered(sans.slice(0, 16), turn, fullmoves);
      return element("li", {}, element("b", { textContent: score(line.score, turn) }), text);
    }),
  );
  if (lines.length) showWdl(whites(lines[0].wdl, turn));
}

function showArrows() {
  const by = form.elements.arrows.value;
  if (by === "none") return board.arrows([]);
  const total = statistics.reduce((sum, it) => sum + it[by], 0) || 1;
  const shares = statistics.map((it) => ({ uci: it.uci, share: it[by] / total }));
  shares.sort((a, b) => b.share - a.share);
  const drawn = shares.slice(0, 5).filter(({ share }) => share > 0.02);
  board.arrows(drawn, by === "visits" ? "green" : "blue");
}

function restart() {
  running?.abort();
  running = undefined;
  if (at("run").getAttribute("aria-pressed") === "true") analyse();
}

/** Analyses in rounds, each with more nodes and in the tree of the one before, so that
 * visits are told as they grow. */
async function analyse() {
  const own = (running = new AbortController());
  const game = here();
  const { fullmoves } = game.position;
  const player = chosenPlayer(form.elements.player);
  const request = { ...game.request(), ...asked(player, 1500), lines: Number(form.elements.lines.value) };
  const most = Number(form.elements.nodes.value);
  trouble("");
  if (game.ending()) {
    at("status").textContent = `The game is over: ${game.ending().why}.`;
    return;
  }
  try {
    for (let nodes = Math.min(100, most); ; nodes = Math.min(most, 3 * nodes)) {
      request.limits = searches(player) ? { nodes } : {};
      for await (const update of stream("/v1/analyse", request, own.signal)) {
        if (running !== own) return;
        if (update.event === "error") throw new Error(update.detail);
        showLines(update, fullmoves);
        if (update.event === "result") {
          statistics = update.statistics;
          showArrows();
        }
      }
      if (nodes === most || !searches(player)) return;
    }
  } catch (error) {
    if (!isAbort(error)) trouble(error.message);
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  load(form.elements.text.value);
});
form.elements.arrows.addEventListener("change", showArrows);
for (const name of ["player", "lines", "nodes"]) form.elements[name].addEventListener("change", restart);
at("run").addEventListener("click", () => {
  const isOn = at("run").getAttribute("aria-pressed") !== "true";
  at("run").setAttribute("aria-pressed", isOn);
  at("run").textContent = isOn ? "Stop" : "Analyse";
  restart();
});
at("flip").addEventListener("click", () => {
  shown.view = opposite(shown.view);
  draw();
});
at("first").addEventListener("click", () => step(0));
at("previous").addEventListener("click", () => step(shown.ply - 1));
at("next").addEventListener("click", () => step(shown.ply + 1));
at("last").addEventListener("click", () => step(Infinity));

/** A key that goes through the moves. */
export function press(key) {
  const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
  if (key in steps) step(shown.ply + steps[key]);
  return key in steps;
}

export function begin() {
  listPlayers(form.elements.player, "mcts");
  see.begin();
  draw();
}

export function enter() {
  board.redraw();
  see.redraw();
}

export const leave = () => {
  if (at("run").getAttribute("aria-pressed") === "true") at("run").click();
};

// The display of a review: the board, the graph, the moves and the words.

import { Board } from "./board.js";
import { element } from "./dom.js";
import { Game, opposite } from "./game.js";
import { showTaken } from "./material.js";
import { t } from "./messages.js";
import { mistakesOf } from "./mistakes.js";
import { MoveList } from "./movelist.js";
import { MARKS, arrowMoves, factSquares, fenAt, headingOf, isBad, nextMark, wordsAt } from "./review_parts.js";
import { about, clockAt, make, player, pointInGraph } from "./review_parts.js";
import { scoreGraph, sharesOf, showBar, speak, summaryTable, winAt } from "./review_parts.js";
import { Tree } from "./tree.js";

speak(t);

export const at = (name) => document.getElementById(`review-${name}`);
const main = document.getElementById("review");
export const board = new Board(at("board"), {
  play: (move) => (state.trying ? state.trying.attempt(move) : draw()),
  typed: at("typed"),
});

const moves = new MoveList(at("moves"), { choose: ({ ply }) => goTold(ply), about: aboutMove });

/** The current view: the report as far as it is known, its game, and the place in it, which may be in a line.
 * `trying` is a mistake that is being retried, which then draws the board and the words. */
export const state = { report: undefined, game: undefined, tree: undefined, at: 0, line: null, view: "white", isDone: false, trying: undefined };
/** The actions that start retrying a mistake and practising those of a side. */
export const actions = { tryAgain: () => {}, practise: () => {} };

// Parts that are drawn once

/** Creates a card with a side's accuracy, marks and rating. */
function card(report, side) {
  const { accuracy, estimate, blunders, mistakes, inaccuracies, good } = report[side];
  const marks = Object.entries({ blunder: blunders, mistake: mistakes, inaccuracy: inaccuracies, good });
  const chips = marks.map(([mark, count]) => {
    const words = `${MARKS[mark].name}: ${count}`;
    return make("span", { class: mark, title: words, role: "img", "aria-label": words }, make("b", {}, String(count)), ` ${MARKS[mark].sign}`);
  });
  const parts = [make("h3", {}, player(report, side))];
  if (accuracy !== null) parts.push(make("p", {}, make("strong", {}, `${accuracy.toFixed(0)}\u00a0%`), ` ${t("accuracy")}`));
  if (estimate) {
    const title = t("The rating that fits the moves best, and an interval that holds four players in five");
    parts.push(make("p", { title }, make("strong", {}, String(estimate.estimate)), ` ${t("plays like ({low}–{high})", estimate)}`));
  }
  return make("div", { class: "card" }, ...parts, make("p", { class: "chips" }, ...chips));
}

/** Draws the graph as far as the scores are known. */
export function drawGraph() {
  at("graph").replaceChildren(...scoreGraph(state.report, goTold));
  point();
}

export function drawAll() {
  const { report, isDone } = state;
  at("summary").replaceChildren(summaryTable(report));
  at("about").replaceChildren(...about(report));
  at("sides").replaceChildren(...["white", "black"].map((side) => card(report, side)));
  for (const name of ["sides", "figures"]) at(name).hidden = !isDone;
  drawGraph();
  draw();
}

/** Returns what the report knows about a move in the list. */
function aboutMove({ ply }) {
  const { plies, game } = state.report;
  const { mark } = plies[ply - 1];
  const isLastOfBook = ply === game.book_plies && game.opening && ply < plies.length;
  const note = isLastOfBook ? t("Here the game leaves the table of openings: {opening}", game) : undefined;
  return { note, ...(mark && { mark, sign: MARKS[mark].sign, title: MARKS[mark].name }) };
}

// Parts that are drawn at each step

/** Returns the game up to the position on the board. */
function onBoard() {
  const { game, line, at: ply } = state;
  if (!line) return game.at(ply);
  const branch = new Game(line.start);
  for (const { san } of line.moves.slice(0, line.step)) branch.play(branch.legal(san));
  return branch;
}

/** Returns the place of the position on the board: the plies of the game before it and the moves of a line, in UCI
 * notation; nothing if it comes after another move than the game's. */
export function placeOnBoard() {
  const { report, line, at: ply, trying } = state;
  if (!line && trying) return { ply: trying.ply.ply - 1, line: trying.played ? [trying.played.moves.at(-1).uci] : [] };
  const start = line ? [ply, ply - 1].find((it) => it >= 0 && fenAt(report, it) === line.start) : ply;
  const moves = line ? line.moves.slice(0, line.step).map(({ uci }) => uci) : [];
  return start === undefined ? undefined : { ply: start, line: moves };
}

/** Creates a badge in the corner of a square. */
export const badge = (square, kind, text) => ({
  orig: square,
  customSvg: { html: `<g class="badge ${kind}"><circle cx="80" cy="20" r="21"/><text x="80" y="31">${text}</text></g>`, center: "orig" },
});

export const arrow = ({ from, to, kind }) => ({ orig: from, dest: to, brush: kind === "best" ? "green" : "red" });

/** Shows a position on the board with shapes and framed squares; `mine` is the colour that may move. */
export function show(game, shapes = [], squares = [], mine = undefined) {
  board.show(game, { orientation: state.view, mine });
  board.ground.set({ highlight: { custom: new Map(squares.map((square) => [square, "fact"])) } });
  board.ground.setAutoShapes(shapes);
}

export function draw() {
  const { report, at: ply, line, view, trying } = state;
  const here = report.plies[ply - 1];
  main.classList.toggle("trying", Boolean(trying));
  main.classList.toggle("moving", Boolean(trying?.isMoving()));
  if (line || !here) show(onBoard());
  else if (!trying) {
    const marked = here.mark ? [badge(here.to, here.mark, MARKS[here.mark].sign)] : [];
    show(onBoard(), [...arrowMoves(here).map(arrow), ...marked], factSquares(here));
  }
  if (trying) trying.draw();
  else drawWords();
  showBar(at("bar"), line || trying ? null : winAt(report, ply), view === "black");
  for (const [name, side] of [["above", opposite(view)], ["below", view]]) {
    const { rating } = report[side];
    const [who, taken, time] = at(name).children;
    // Opponents of this page have their rating in the name.
    const isNamed = player(report, side).includes(String(rating));
    who.textContent = rating && !isNamed ? `${player(report, side)} (${rating})` : player(report, side);
    showTaken(taken, board.game, side);
    time.textContent = clockAt(report, side, ply);
  }
  const { words, chart } = sharesOf(report, here);
  // The curves would reveal the answer.
  at("people").hidden = (trying && !trying.isSolved) || !report.plies.some((it) => it.shares);
  at("by-rating").replaceChildren(...words);
  at("curve").replaceChildren(...chart);
  point();
}

/** Marks the ply on the board in the graph and in the list. */
function point() {
  const { report, at: ply } = state;
  const [graph, win, here] = [at("graph"), winAt(report, ply), report.plies[ply - 1]];
  pointInGraph(graph, report, ply);
  moves.show(state.tree, state.tree.at(ply));
  graph.setAttribute("aria-valuemax", report.plies.length);
  graph.setAttribute("aria-valuenow", ply);
  const score = win === null ? t("not searched yet") : t("{score} of 100 for White", { score: Math.round(win) });
  graph.setAttribute("aria-valuetext", `${here ? headingOf(here) : t("First position")}, ${score}`);
}

/** Replaces the words, and restores the keyboard focus if it was in them. */
export function fill(heading, kind, parts) {
  const told = at("told");
  const hadFocus = told.contains(document.activeElement);
  told.className = `told ${kind}`;
  at("moment").textContent = heading;
  at("why").replaceChildren(...parts);
  if (hadFocus) (told.querySelector("[aria-current]") ?? told.querySelector("button"))?.focus({ preventScroll: true });
}

export function button(text, act, className = "") {
  const made = element("button", { type: "button", textContent: text, className });
  made.addEventListener("click", act);
  return made;
}
export const buttons = (...made) => element("div", { className: "buttons" }, ...made);

/** Shows a line that was clicked. */
export function open(line) {
  state.line = line;
  draw();
}

function drawWords() {
  const { report, at: ply, line, isDone } = state;
  const here = report.plies[ply - 1];
  const parts = wordsAt(report, ply, open, line);
  const help = (text) => parts.push(make("p", { class: "muted" }, text));
  if (!isDone) {
    help(here ? t("The move is judged once all positions are searched.") : t("The graph grows as positions are searched. Go through the game meanwhile: click a move, or the graph."));
  } else if (!here) {
    parts.push(make("p", { class: "muted keys" }, t("The arrow keys ← and → step through the game, ↓ and ↑ from mark to mark.")));
    const first = nextMark(report, 0, 1, isBad);
    const sides = ["white", "black"].filter((side) => (report.side ?? side) === side && mistakesOf(report, side).length);
    const practised = (side) => (report.side ? t("Practise my mistakes") : t("Practise {player}'s mistakes", { player: player(report, side) }));
    const practise = sides.map((side) => button(practised(side), () => actions.practise(side)));
    if (first) parts.push(buttons(button(t("First mistake"), () => go(first.ply), "main"), ...practise));
  } else if (isBad(here) && here.best) {
    parts.push(buttons(button(t("Try again"), () => actions.tryAgain(here), "main")));
  }
  fill(here ? headingOf(here) : t("First position"), here?.mark ?? "", parts);
}

// Stepping through the game

export function go(ply) {
  state.trying?.leave();
  state.trying = undefined;
  state.at = Math.max(0, Math.min(state.report.plies.length, ply));
  state.line = null;
  draw();
}

/** Goes to a ply that was chosen away from the words, which must be in view. */
function goTold(ply) {
  go(ply);
  at("told").scrollIntoView({ block: "nearest" });
}

/** Steps through the game, or through the line that is being viewed; stepping back from its start leaves the line. */
function step(by) {
  const { line } = state;
  if (!line) return go(state.at + by);
  line.step = Math.min(line.moves.length, line.step + by);
  if (line.step < 1) state.line = null;
  draw();
}

function mark(by) {
  const found = nextMark(state.report, state.at, by);
  if (found) go(found.ply);
}

function flip() {
  state.view = opposite(state.view);
  draw();
}

export const keys = {
  ArrowLeft: () => step(-1),
  ArrowRight: () => step(1),
  ArrowUp: () => mark(-1),
  ArrowDown: () => mark(1),
  Home: () => go(0),
  End: () => go(Infinity),
  Escape: () => go(state.at),
  f: flip,
};
for (const [name, key] of Object.entries({ first: "Home", previous: "ArrowLeft", next: "ArrowRight", last: "End", mark: "ArrowDown", flip: "f" })) {
  at(name).addEventListener("click", keys[key]);
}

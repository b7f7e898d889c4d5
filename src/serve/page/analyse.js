// Analysis of a game, position by position.

import { hash } from "./address.js";
import * as beside from "./beside.js";
import { ServerError, isAbort, stream } from "./api.js";
import { Board } from "./board.js";
import { confirmed, element, finder, playFrom, trouble } from "./dom.js";
import { edit } from "./editor.js";
import { EvalBar } from "./evalbar.js";
import { fenOf } from "./fen.js";
import { takeFiles } from "./files.js";
import * as kept from "./kept.js";
import { showLines } from "./lines.js";
import { number, t } from "./messages.js";
import { MoveList } from "./movelist.js";
import { legalMove } from "./notation.js";
import { openingOf } from "./openings.js";
import { asked, chosenPlayer, listPlayers, searches, server } from "./opponents.js";
import * as people from "./people.js";
import { listGames, markOf, signOf, split } from "./pgn.js";
import { playMove } from "./sound.js";
import { copy } from "./store.js";
import { moveNumber } from "./tree.js";
import * as studying from "./study.js";

const { study } = studying;
const at = finder("analyse");
const form = at("form");
const engine = at("engine");
const board = new Board(at("board"), { play, typed: at("typed") });
const bar = new EvalBar(at("bar"));
const moves = new MoveList(at("moves"), { choose: studying.choose, about: marked });

/** The shortest search, in seconds, whose rate is shown. */
const SHORTEST = 0.05;

/** Stops the running analysis. */
let running;
/** Whether each position that is visited is analysed, until the user stops it. */
let isWanted = false;
let isShown = false;

function play(move) {
  studying.play(move);
  playMove(studying.game());
}

// The display

function draw() {
  if (!isShown) return;
  const { tree, node, view } = study;
  const game = studying.game();
  board.show(game, { orientation: view, mine: "both" });
  bar.turn(view);
  moves.show(tree, node);
  at("none").hidden = tree.root.children.length > 0;
  at("branch").hidden = !node.path().some((it) => it.parent.children[0] !== it);
  nameOpening(game);
  showRemark();
  showKnown();
  kept.show();
  people.show();
  restart();
}

/** Returns the signs of a node's move, and its mark. */
function marked({ nags }) {
  const signs = nags.map(signOf).filter((sign) => !sign.startsWith("$"));
  return { sign: signs.join(""), mark: nags.map(markOf).find(Boolean) };
}

/** Shows what the author wrote about the move. */
function showRemark() {
  const { nags, comments, startingComments } = study.node;
  const text = [nags.map(signOf).join(" "), ...startingComments, ...comments].join(" ").replace(/\[%[^\]]*\]/g, "").trim();
  at("remark").textContent = text;
  at("remark").hidden = !text;
}

async function nameOpening(game) {
  const name = await openingOf(game);
  if (game === board.game) at("opening").textContent = name ?? "";
}

const showBeside = () => beside.show(study.node, playLine);

/** Shows everything that is known about the position. */
function showKnown() {
  const { node } = study;
  showBeside();
  const ending = studying.game().forcedEnding();
  const last = node.parent ? `${moveNumber(node)}${node.san}: ` : "";
  const turn = node.position.turn === "white" ? t("White to move.") : t("Black to move.");
  const claim = studying.game().ending();
  const note = claim ? ` ${t("A draw can be claimed by {why}.", { why: t(claim.why) })}` : "";
  const over = ending && t("the game is over by {why}.", { why: t(ending.why) });
  const state = over ?? turn + note;
  at("status").textContent = last + (last ? state : state[0].toUpperCase() + state.slice(1));
  if (node.known) return showUpdate(node.known, node);
  bar.clear();
  at("info").textContent = "";
  // Reserve space for the expected lines, so that nothing moves when they arrive.
  const expected = isWanted && !ending ? Number(engine.elements.lines.value) : 0;
  at("lines").replaceChildren(...Array.from({ length: expected }, () => element("li")));
}

function showUpdate(update, node) {
  const { lines, turn, nodes, depth, nps, statistics } = update;
  // The rate of an answer without a search says nothing.
  const rate = nps === undefined || nodes < SHORTEST * nps ? "" : `, ${number(nps)}/s`;
  at("info").textContent = t("depth {depth}, {nodes} nodes", { depth, nodes: number(nodes) }) + rate;
  showLines(at("lines"), update, node.position.fullmoves, playLine);
  if (lines.length) bar.show(lines[0], turn);
  if (statistics) showArrows(statistics);
}

/** Plays the moves of a line as a variation. */
function playLine(line) {
  const end = line.reduce((node, { uci }) => study.tree.play(node, legalMove(node.position, uci)), study.node);
  studying.choose(end);
}

function showArrows(statistics) {
  const by = engine.elements.arrows.value;
  if (by === "none") return board.arrows([]);
  const total = statistics.reduce((sum, it) => sum + it[by], 0) || 1;
  const shares = statistics.map((it) => ({ uci: it.uci, share: it[by] / total }));
  shares.sort((a, b) => b.share - a.share);
  const drawn = shares.slice(0, 5).filter(({ share }) => share > 0.02);
  board.arrows(drawn, by === "visits" ? "green" : "blue");
}

// The running analysis

function setRunning(controller) {
  running = controller;
  at("run").setAttribute("aria-pressed", Boolean(controller));
  at("run").textContent = controller ? t("Stop") : t("Analyse");
}

function restart() {
  running?.abort();
  beside.stop();
  setRunning(undefined);
  const isOpen = isWanted && !studying.game().forcedEnding();
  if (isOpen) beside.run(studying.game(), study.node, showBeside);
  const isEnough = study.node.known?.statistics && study.node.known.nodes >= Number(engine.elements.nodes.value);
  if (isOpen && !isEnough) analyse();
}

/** Analyses in rounds. Each round has more nodes than the previous one and reuses its tree, so that the reported
 * visits keep growing. */
async function analyse() {
  const own = new AbortController();
  setRunning(own);
  const { node } = study;
  const player = chosenPlayer(engine.elements.player);
  const request = { ...studying.game().request(), ...asked(player, 1500), lines: Number(engine.elements.lines.value) };
  const most = Number(engine.elements.nodes.value);
  trouble("");
  try {
    for (let nodes = Math.min(100, most); ; nodes = Math.min(most, 3 * nodes)) {
      request.limits = searches(player) ? { nodes } : {};
      for await (const update of stream("/v1/analyse", request, own.signal)) {
        if (running !== own) return;
        if (update.event === "error") throw new ServerError(update.status, update);
        node.known = { ...update, statistics: update.statistics ?? node.known?.statistics };
        showUpdate(node.known, node);
      }
      if (nodes === most || !searches(player)) return;
    }
  } catch (error) {
    if (!isAbort(error)) trouble(error.message, studying.redraw);
  } finally {
    if (running === own) setRunning(undefined);
  }
}

at("run").addEventListener("click", () => {
  isWanted = !running;
  if (isWanted) study.node.known = study.node.judged = undefined;
  restart();
});
engine.addEventListener("change", ({ target }) => {
  if (target.name === "arrows") return study.node.known?.statistics && showArrows(study.node.known.statistics);
  study.node.known = undefined;
  restart();
});
engine.addEventListener("submit", (event) => event.preventDefault());

// Games that are loaded, changed and removed

/** The games in the text that was loaded. */
let games = [];

/** Loads a FEN or games, of which the first is shown, and explains what is unreadable. `place` is that of the position to
 * show. */
export function load(text, place) {
  games = split(text);
  loadOne(games[0] ?? "", place);
  listGames(form.elements.game, games);
}

function loadOne(text, place) {
  let problem = "";
  try {
    problem = studying.load(text, place) ?? "";
    form.elements.text.value = text;
  } catch (error) {
    problem = error.message;
  }
  at("problem").textContent = problem;
  form.elements.text.setAttribute("aria-invalid", Boolean(problem));
}
form.addEventListener("submit", (event) => {
  event.preventDefault();
  load(form.elements.text.value);
});
form.elements.game.addEventListener("change", ({ target }) => loadOne(games[target.value]));
takeFiles(document.getElementById("analyse"), at("file"), load);

/** Shows briefly on a button that its action is done. */
function tellDone(button, isDone) {
  const text = button.textContent;
  if (!isDone || text === t("Copied")) return;
  button.textContent = t("Copied");
  setTimeout(() => (button.textContent = text), 1500);
}
at("copy").addEventListener("click", async ({ target }) => tellDone(target, await copy(study.tree.pgn())));
at("link").addEventListener("click", async ({ target }) => {
  const link = new URL(hash("analyse", fenOf(study.node.position)), location.href);
  tellDone(target, await copy(link.href));
});
at("edit").addEventListener("click", async () => {
  const fen = await edit(fenOf(study.node.position));
  if (fen) load(fen);
});
at("play").addEventListener("click", () => playFrom(fenOf(study.node.position)));
at("new").addEventListener("click", () => load(""));
at("promote").addEventListener("click", () => {
  study.tree.promote(study.node);
  studying.choose(study.node);
});
at("delete").addEventListener("click", async () => {
  const { tree, node } = study;
  const question = t("Delete {move} and everything after it? It cannot be brought back.", { move: node.san });
  if (node.children.length && !(await confirmed(question, t("Delete")))) return;
  studying.choose(tree.remove(node));
});
at("flip").addEventListener("click", studying.flip);
at("first").addEventListener("click", () => studying.step(-Infinity));
at("previous").addEventListener("click", () => studying.step(-1));
at("next").addEventListener("click", () => studying.step(1));
at("last").addEventListener("click", () => studying.step(Infinity));

export const { press } = studying;

export function begin() {
  listPlayers(engine.elements.player, "mcts");
  engine.elements.nodes.max = server.limits.nodes;
  engine.elements.lines.max = server.limits.lines;
  studying.watch(draw);
  beside.begin(studying.redraw);
}

/** Opens the tab; the URL may contain a position. */
export function enter(fen) {
  isShown = true;
  studying.open(fen);
  draw();
  board.redraw();
}

export function leave() {
  isShown = isWanted = false;
  // A hidden board has no size to draw arrows in.
  board.arrows([]);
  running?.abort();
  beside.leave();
}

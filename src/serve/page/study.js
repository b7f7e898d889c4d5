// The game that Analyse and Explain share, and its position on the board.

import * as address from "./address.js";
import * as analyses from "./analyses.js";
import { trouble } from "./dom.js";
import { fenOf } from "./fen.js";
import { INITIAL_FEN, opposite } from "./game.js";
import { t } from "./messages.js";
import { legalMove } from "./notation.js";
import { Tree } from "./tree.js";

/** The tabs that show the game. */
const PARTS = ["analyse", "explain"];

/** Whether a position has been opened. */
let isOpen = false;
const tree = new Tree();
/** The name is empty unless somebody has given one. The browser keeps a position from a link only once a move is made. */
export const study = { tree, node: tree.root, view: "white", name: "", isKept: false };

/** Returns the game up to the position on the board. */
export const game = () => study.tree.game(study.node);

/** Calls `draw` whenever the position on the board changes. */
export const watch = (draw) => addEventListener("study", draw);
/** Draws the position again, and with it requests what is missing. */
export const redraw = () => dispatchEvent(new CustomEvent("study"));

function changed() {
  redraw();
  writeAddress();
  store();
}

function writeAddress() {
  const { part } = address.read();
  if (PARTS.includes(part)) address.write(part, fen());
}

/** Returns the position's FEN, or nothing for the initial position. */
export function fen() {
  const here = fenOf(study.node.position);
  return here === INITIAL_FEN ? undefined : here;
}

export function choose(node) {
  study.node = node;
  changed();
}

/** Steps this many moves forwards or backwards. */
export function step(by) {
  let { node } = study;
  for (; by < 0 && node.parent; by += 1) node = node.parent;
  for (; by > 0 && node.children.length; by -= 1) node = node.children[0];
  choose(node);
}

/** Plays a legal move from the position on the board. */
export const play = (move) => choose(study.tree.play(study.node, move));

export function flip() {
  study.view = opposite(study.view);
  changed();
}

/** Replaces the analysis on the board, which stays kept. */
function replace(tree, node, { name = "", isKept }) {
  Object.assign(study, { tree, name, isKept });
  isOpen = true;
  choose(node);
}

/** Loads a FEN, a PGN, or moves as a new analysis, and shows the position after `ply` moves, if given, and the moves of
 * `line`, in UCI notation. Throws if nothing is readable. If only the beginning is readable, returns a description of
 * the rest. */
export function load(text, { ply, line = [] } = {}) {
  const { tree, problem } = Tree.read(text);
  trouble("");
  analyses.begin();
  const start = ply === undefined ? tree.end() : tree.at(ply);
  const node = line.reduce((at, uci) => tree.play(at, legalMove(at.position, uci)), start);
  replace(tree, node, { isKept: Boolean(text.trim()) });
  return problem;
}

/** Opens a kept analysis. */
export function resume(key) {
  try {
    const kept = analyses.find(key);
    const { tree, problem } = Tree.fromPgn(kept?.pgn ?? "");
    take(kept, problem);
    replace(tree, tree.end(), { name: kept.name, isKept: true });
    trouble(problem ?? "");
  } catch (error) {
    trouble(t("The analysis cannot be opened: {why}", { why: error.message }));
  }
}

/** Goes on with a kept analysis, or with a copy if a part of it was unreadable. */
function take({ key }, problem) {
  if (problem) analyses.begin();
  else analyses.take(key);
}

/** Handles a key that steps through the moves. */
export function press(key) {
  const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
  if (key in steps) step(steps[key]);
  else if (key === "f") flip();
  else return false;
  return true;
}

function store() {
  const { root, start } = study.tree;
  study.isKept ||= root.children.length > 0;
  const isEmpty = !root.children.length && start.fen === INITIAL_FEN;
  if (!study.isKept || isEmpty) return;
  analyses.keep({ pgn: study.tree.pgn(), name: study.name });
  analyses.mark(study.node.path().map((node) => node.parent.children.indexOf(node)));
}

export function rename(name) {
  study.name = name;
  store();
}

/** Opens the position in the URL. If the URL has none, or that of this window's analysis, the analysis stays. */
export function open(wanted) {
  if (wanted) trouble("");
  if (!isOpen) restore();
  const isHere = isOpen && (!wanted || fenOf(study.node.position) === wanted);
  if (isHere) return writeAddress();
  try {
    const { tree } = Tree.read(wanted);
    analyses.begin();
    replace(tree, tree.root, { isKept: false });
  } catch (error) {
    writeAddress();
    trouble(`${t("The position in the link cannot be shown: it may be cut off.")} ${error.message}`);
  }
}

/** Restores this window's analysis after a reload. */
function restore() {
  const kept = analyses.here();
  try {
    const { tree, problem } = Tree.fromPgn(kept.pgn);
    const node = kept.path.reduce((at, index) => at.children[index], tree.root);
    if (!node) return;
    take(kept, problem);
    replace(tree, node, { name: kept.name, isKept: true });
  } catch {
    // This window has no analysis yet, or what is stored is unreadable.
  }
}

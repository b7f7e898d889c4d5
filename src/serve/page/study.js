// The game that Analyse and Explain share, and its position on the board.

import * as address from "./address.js";
import { trouble } from "./dom.js";
import { fenOf } from "./fen.js";
import { INITIAL_FEN, opposite } from "./game.js";
import { recall, remember } from "./store.js";
import { Tree } from "./tree.js";

/** The tabs that show the game. */
const PARTS = ["analyse", "explain"];

/** Whether a position has been opened. */
let isOpen = false;
const tree = new Tree();
export const study = { tree, node: tree.root, view: "white" };

/** Returns the game up to the position on the board. */
export const game = () => study.tree.game(study.node);

/** Calls `draw` whenever the position on the board changes. */
export const watch = (draw) => addEventListener("study", draw);

function changed() {
  dispatchEvent(new CustomEvent("study"));
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

/** Loads a FEN, a PGN, or moves; throws if nothing is readable. If only the beginning is readable, returns a
 * description of the rest. */
export function load(text) {
  const { tree, problem } = Tree.read(text);
  study.tree = tree;
  isOpen = true;
  trouble("");
  choose(tree.end());
  return problem;
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
  const path = study.node.path().map((node) => node.parent.children.indexOf(node));
  remember("study", { pgn: study.tree.pgn(), path });
}

/** Opens the position in the URL, in the stored game if it contains the position. If the URL has none, the position
 * on the board stays. */
export function open(wanted) {
  if (!isOpen) wanted ||= INITIAL_FEN;
  const isHere = isOpen && (!wanted || fenOf(study.node.position) === wanted);
  isOpen = true;
  if (isHere) return writeAddress();
  const kept = restored();
  if (kept && fenOf(kept.node.position) === wanted) {
    study.tree = kept.tree;
    return choose(kept.node);
  }
  try {
    load(wanted);
  } catch (error) {
    trouble(`The address has no position that can be shown. ${error.message}`);
  }
}

function restored() {
  try {
    const { pgn, path } = recall("study");
    const { tree } = Tree.fromPgn(pgn);
    const node = path.reduce((at, index) => at.children[index], tree.root);
    return node && { tree, node };
  } catch {
    // Nothing is stored, or the stored value is unreadable.
    return undefined;
  }
}

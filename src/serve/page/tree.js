// A game with variations.

import { defaultGame, makePgn, parsePgn } from "/board/chessops/pgn.js";
import { isFen } from "./fen.js";
import { Game, INITIAL_FEN, legalMove } from "./game.js";

/** A move and the position after it; the root has no move. */
class Node {
  constructor(parent, played, position) {
    Object.assign(this, played, { parent, position });
    this.ply = parent ? parent.ply + 1 : 0;
    this.children = [];
  }

  /** Returns the nodes from the first move to this one. */
  path() {
    return this.parent ? [...this.parent.path(), this] : [];
  }
}

export class Tree {
  constructor(fen = INITIAL_FEN, tags = {}) {
    this.start = new Game(fen);
    this.tags = tags;
    this.result = "*";
    this.root = new Node(undefined, {}, this.start.position);
  }

  /** Creates the tree of a game without variations. */
  static of(game) {
    const tree = new Tree(game.fen, { ...game.tags });
    tree.result = game.result;
    game.moves.reduce((node, { move }) => tree.play(node, move), tree.root);
    return tree;
  }

  /** Parses a FEN, a PGN, or moves. If only the beginning is readable, `problem` describes the rest; throws if
   * nothing is readable. */
  static read(text) {
    const trimmed = text.trim();
    if (!trimmed) return { tree: new Tree() };
    return isFen(trimmed) ? { tree: new Tree(trimmed) } : Tree.fromPgn(trimmed);
  }

  static fromPgn(text) {
    const read = parsePgn(text)[0];
    if (!read) throw new Error("There is no game in this text.");
    const tree = new Tree(read.headers.get("FEN") ?? INITIAL_FEN, Object.fromEntries(read.headers));
    tree.result = read.headers.get("Result") ?? "*";
    const stray = strayWord(text);
    let problem;
    const add = (node, from) => {
      for (const child of from.children) {
        const move = legalMove(node.position, child.data.san);
        const place = node.san ? `${moveNumber(node)}${node.san}` : "the start";
        if (move) add(tree.play(node, move), child);
        else problem ??= `The moves were read up to ${place}: “${stray ?? child.data.san}” is no legal move there.`;
      }
    };
    add(tree.root, read.moves);
    if (stray) problem ??= `“${stray}” is not a move, and was left out.`;
    const isEmpty = !tree.root.children.length && !read.headers.has("FEN");
    if (isEmpty) throw new Error(problem ? "This is not a FEN, and it does not begin with a legal move." : "This is neither a FEN nor a game with moves.");
    return { tree, problem };
  }

  /** Plays a legal move after a node; the tree may already contain the move. */
  play(node, move) {
    const game = new Game(INITIAL_FEN);
    game.positions = [node.position];
    const played = game.play(move);
    const known = node.children.find(({ uci }) => uci === played.uci);
    if (known) return known;
    const child = new Node(node, played, game.position);
    node.children.push(child);
    return child;
  }

  /** Returns the game up to a node. */
  game(node) {
    const path = node.path();
    const game = new Game(this.start.fen, { ...this.tags });
    game.moves = path;
    game.positions = [this.root.position, ...path.map(({ position }) => position)];
    return game;
  }

  /** Returns the last node of the main line. */
  end(node = this.root) {
    while (node.children.length) node = node.children[0];
    return node;
  }

  /** Returns the node after this many moves of the main line. */
  at(ply) {
    let node = this.root;
    while (node.ply < ply && node.children.length) node = node.children[0];
    return node;
  }

  /** Removes a node and everything after it; returns its parent. */
  remove(node) {
    node.parent.children = node.parent.children.filter((it) => it !== node);
    return node.parent;
  }

  /** Makes a node's line the main line. */
  promote(node) {
    for (const it of node.path()) {
      it.parent.children = [it, ...it.parent.children.filter((other) => other !== it)];
    }
  }

  pgn() {
    const tags = { ...this.tags, Result: this.result };
    if (this.start.fen !== INITIAL_FEN) Object.assign(tags, { SetUp: "1", FEN: this.start.fen });
    const game = defaultGame(() => new Map(Object.entries(tags)));
    const copy = (node, into) => {
      for (const child of node.children) {
        const made = { data: { san: child.san }, children: [] };
        into.children.push(made);
        copy(child, made);
      }
    };
    copy(this.root, game.moves);
    return makePgn(game);
  }
}

const MOVE = /^([KQRBN]?[a-h]?[1-8]?[x-]?[a-h][1-8](=?[QRBNqrbn])?|[O0o]-[O0o](-[O0o])?|--|Z0)[+#]?[!?]*$/;
/** The parts of a PGN other than its moves: tags, comments, numbers, results. */
const OTHER = /^\s*\[.*\]\s*$|\{[^}]*\}|;.*$|^%.*$|\$\d+|1-0|0-1|1\/2-1\/2|\d+\.+|[()*]|e\.p\.|[!?]+(?=\s)/gm;

/** Returns the first word in a PGN that is not a move, which the PGN parser would skip. */
const strayWord = (text) => text.replace(OTHER, " ").split(/\s+/).find((word) => word && !MOVE.test(word));

/** Returns the number in front of a node's move. */
export function moveNumber(node) {
  const before = node.parent.position;
  return before.turn === "white" ? `${before.fullmoves}. ` : `${before.fullmoves}… `;
}

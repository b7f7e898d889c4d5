// A game with variations.

import { defaultGame, defaultHeaders, makeComment, makePgn, parseComment } from "/board/chessops/pgn.js";
import { isFen } from "./fen.js";
import { Game, INITIAL_FEN, opposite } from "./game.js";
import { t } from "./messages.js";
import { LANGUAGES, inEnglish, isNull, legalMove } from "./notation.js";
import { readPgn, wrapped } from "./pgn.js";

/** What the tag Variant says of games with the rules of chess. */
const CHESS = /^\s*(|[?-]+|standard|chess|normal|from position|chess ?960(\/frc)?|fischer ?random)\s*$/i;

/** A move and the position after it, with what its author wrote: glyphs, comments, and comments before the move; and the
 * mover's `clock` in seconds, if it is known. The root has no move; its comments stand before the game. */
class Node {
  constructor(parent, played, position) {
    Object.assign(this, played, { parent, position });
    this.ply = parent ? parent.ply + 1 : 0;
    this.children = [];
    Object.assign(this, { nags: [], comments: [], startingComments: [] });
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
    game.moves.reduce((node, { move, clock }) => Object.assign(tree.play(node, move), { clock }), tree.root);
    return tree;
  }

  /** Parses a FEN, a PGN, or moves. If only the beginning is readable, `problem` describes the rest; throws if
   * nothing is readable. */
  static read(text) {
    const trimmed = text.trim().replace(/^(position\s+)?startpos\b(\s+moves)?/i, "");
    if (!trimmed) return { tree: new Tree() };
    if (!isFen(trimmed)) return Tree.fromPgn(trimmed);
    const [fen, moves] = trimmed.split(/\smoves\s/);
    const { start } = new Tree(fen);
    return moves ? Tree.fromPgn(`[FEN "${start.fen}"]\n\n${moves}`) : { tree: new Tree(fen) };
  }

  /** Reads the first game of a text; throws if it is none of chess. */
  static fromPgn(text) {
    const { tags, words, result, hasTags } = readPgn(text);
    const variant = tags.get("Variant") ?? "";
    if (!CHESS.test(variant)) throw new Error(t("This is a game of “{variant}”, which has other rules than chess.", { variant }));
    const fen = tags.get("FEN")?.replace(/^\s*[?-]*\s*$/, "");
    const read = (language, end) => new Reading(new Tree(fen || INITIAL_FEN, Object.fromEntries(tags)), words, language, end);
    const { tree, problem } = choose(read, hasTags);
    tree.result = result;
    if (!tree.root.children.length && !fen) {
      throw new Error(words.some((it) => it.length) ? t("This is not a FEN, and it does not begin with a legal move.") : t("This is neither a FEN nor a game with moves."));
    }
    return { tree, problem };
  }

  /** Plays a legal move after a node; the tree may already contain the move. */
  play(node, move) {
    const game = new Game(INITIAL_FEN);
    game.positions = [node.position];
    const played = game.play(move);
    return this.add(node, played, game.position);
  }

  /** Passes after a node. */
  pass(node) {
    const position = node.position.clone();
    position.turn = opposite(position.turn);
    position.epSquare = undefined;
    if (position.turn === "white") position.fullmoves += 1;
    return this.add(node, { san: "--" }, position);
  }

  add(node, played, position) {
    const known = node.children.find(({ san }) => san === played.san);
    if (known) return known;
    const child = new Node(node, played, position);
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
    const { fen } = this.start;
    const tags = { ...this.tags, Result: this.result, FEN: fen, SetUp: "1" };
    const game = defaultGame(() => new Map([...defaultHeaders(), ...Object.entries(tags)]));
    if (fen === INITIAL_FEN) for (const name of ["FEN", "SetUp"]) game.headers.delete(name);
    game.comments = this.root.comments;
    const copy = (node, into) => {
      for (const child of node.children) {
        const made = { data: { ...child, comments: commentsOf(child) }, children: [] };
        into.children.push(made);
        copy(child, made);
      }
    };
    copy(this.root, game.moves);
    return wrapped(makePgn(game));
  }
}

/** A game as it reads with a language's letters for the pieces, up to the first word that is not a legal move. A
 * variation with such a word ends before it, and so does the main line before `end`, the index of a word. */
class Reading {
  constructor(tree, words, language, end) {
    Object.assign(this, { tree, language, words, moves: [], count: 0 });
    /** The open lines, outermost first: the last node of each, which is nothing if the rest of the line is skipped, and
     * the comments before its first move. */
    const lines = [{ node: tree.root }];
    for (const [index, word] of words.entries()) {
      const line = lines.at(-1);
      const { node, before } = line;
      if (word === "(") lines.push({ node: node?.parent, before: [] });
      else if (word === ")") lines.length > 1 && lines.pop();
      else if (!node) continue;
      else if (word.nag !== undefined) before || node.nags.push(word.nag);
      else if (word.comment) {
        (before ?? node.comments).push(word.comment);
        if (!before) node.clock = parseComment(word.comment).clock ?? node.clock;
      }
      else {
        line.node = index === end ? undefined : this.play(node, word, index, lines.length > 1);
        line.before = undefined;
        if (before) line.node?.startingComments.push(...before);
      }
      if (!lines[0].node) break;
    }
  }

  /** Plays a word after a node and returns the node after it; nothing if the word is not a legal move. */
  play(node, word, index, isVariation) {
    const isPass = isNull(word) && !node.position.isCheck();
    const move = !isPass && legalMove(node.position, word, this.language);
    if (!move && !isPass) {
      const why = inEnglish(word, this.language) ? t("“{word}” is no legal move there.", { word }) : t("“{word}” is not a move.", { word });
      const values = { place: place(node), why };
      this.problem ??= isVariation ? t("A variation was read up to {place}: {why}", values) : t("The moves were read up to {place}: {why}", values);
      return undefined;
    }
    const child = isPass ? this.tree.pass(node) : this.tree.play(node, move);
    this.moves[index] = child;
    this.count += 1;
    return child;
  }
}

/** Reads a game in the language that reads all of it or, if none does, most of it. Where such languages disagree about a
 * word, the reading ends, unless the game has tags: a file with tags is written in English if it can be. */
function choose(read, hasTags) {
  const all = LANGUAGES.map((language) => read(language));
  const whole = all.filter(({ problem }) => !problem);
  const candidates = whole.length ? whole : all;
  const best = candidates.reduce((one, other) => (other.count > one.count ? other : one));
  if (hasTags && best === all[0]) return best;
  const doubts = candidates.map((other) => best.moves.findIndex((node, at) => node && other.moves[at] && other.moves[at].uci !== node.uci));
  const first = Math.min(...doubts.filter((at) => at >= 0));
  if (first === Infinity) return best;
  const other = candidates[doubts.indexOf(first)];
  const [one, two] = [best, other].map(({ moves, language }) => t("{move} in {language}", { move: moves[first].san, language: t(language.name) }));
  const { tree } = read(best.language, first);
  return { tree, problem: t("The moves were read up to {place}: “{word}” is {one} and {two}, and the other moves do not decide.", { place: place(best.moves[first].parent), word: best.words[first], one, two }) };
}

/** Returns the comments on a node's move, of which one has its clock. */
function commentsOf({ clock, comments }) {
  const isWritten = clock === undefined || comments.some((it) => parseComment(it).clock !== undefined);
  return isWritten ? comments : [makeComment({ clock: Math.floor(10 * Math.max(0, clock)) / 10 }), ...comments];
}

const place = (node) => (node.san ? `${moveNumber(node)}${node.san}` : t("the start"));

/** Returns the number in front of a node's move. */
export function moveNumber(node) {
  const before = node.parent.position;
  return before.turn === "white" ? `${before.fullmoves}. ` : `${before.fullmoves}… `;
}

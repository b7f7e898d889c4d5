// Games: positions, moves, endings, and PGN.

import { INITIAL_FEN } from "/board/chessops/fen.js";
import { makeSan } from "/board/chessops/san.js";
import { makeUci, opposite } from "/board/chessops/util.js";
import { fenOf, readFen } from "./fen.js";
import { message, t } from "./messages.js";
import { legalMove } from "./notation.js";

/** A game without variations. */
export class Game {
  constructor(fen = INITIAL_FEN, tags = {}) {
    this.positions = [readFen(fen)];
    this.fen = fenOf(this.positions[0]);
    this.moves = [];
    this.tags = tags;
    this.result = "*";
  }

  get position() {
    return this.positions.at(-1);
  }

  /** Returns a move given in UCI notation or SAN, if it is legal. */
  legal(text) {
    return legalMove(this.position, text);
  }

  /** Returns all legal moves in SAN. */
  sans() {
    const found = [];
    for (const [from, targets] of this.position.allDests()) {
      for (const to of targets) {
        const isPawn = this.position.board.get(from).role === "pawn";
        const promotion = isPawn && (to < 8 || to > 55) ? "queen" : undefined;
        found.push(makeSan(this.position, { from, to, promotion }));
      }
    }
    return found.sort();
  }

  /** Plays a legal move. */
  play(move) {
    const position = this.position.clone();
    const played = { uci: makeUci(move), san: makeSan(position, move), move, isCapture: isCapture(position, move) };
    position.play(move);
    this.moves.push(played);
    this.positions.push(position);
    return played;
  }

  /** Takes back moves until this many are left. */
  truncate(count) {
    this.moves.length = Math.min(this.moves.length, count);
    this.positions.length = this.moves.length + 1;
    this.result = "*";
  }

  /** Returns the same game after this many moves. */
  at(ply) {
    const game = new Game(this.fen, { ...this.tags });
    game.moves = this.moves.slice(0, ply);
    game.positions = this.positions.slice(0, game.moves.length + 1);
    return game;
  }

  /** Returns how the game ended, in words and in PGN notation; nothing if it has not ended or only a claim would end
   * it. */
  forcedEnding() {
    const position = this.position;
    const outcome = position.outcome();
    if (position.isCheckmate()) {
      return { why: message("checkmate"), result: outcome.winner === "white" ? "1-0" : "0-1" };
    }
    const drawn = (why) => ({ why, result: "1/2-1/2" });
    if (position.isStalemate()) return drawn(message("stalemate"));
    if (position.isInsufficientMaterial()) return drawn(message("insufficient material"));
    if (position.halfmoves >= 150) return drawn(message("seventy-five moves"));
    return this.repetitions() >= 5 ? drawn(message("fivefold repetition")) : undefined;
  }

  /** Returns how often the position has occurred. */
  repetitions() {
    const last = keyOf(this.position);
    return this.positions.filter((it) => keyOf(it) === last).length;
  }

  /** Returns how the game ended, by force or by a claim, which nobody has to make here. */
  ending() {
    const drawn = (why) => ({ why, result: "1/2-1/2" });
    if (this.forcedEnding()) return this.forcedEnding();
    if (this.position.halfmoves >= 100) return drawn(message("fifty moves"));
    return this.repetitions() >= 3 ? drawn(message("threefold repetition")) : undefined;
  }

  /** Returns the position with its history since the last null move, in the format of a request. */
  request() {
    const begin = this.moves.findLastIndex(({ uci }) => !uci) + 1;
    const request = { moves: this.moves.slice(begin).map(({ uci }) => uci) };
    const fen = begin ? fenOf(this.positions[begin]) : this.fen;
    if (fen !== INITIAL_FEN) request.fen = fen;
    return request;
  }
}

/** Returns the fields of a FEN that identify a position. */
export const keyOf = (position) => fenOf(position).split(" ").slice(0, 4).join(" ");

function isCapture(position, { from, to }) {
  const isPassant = position.board.get(from)?.role === "pawn" && to === position.epSquare;
  const target = position.board.get(to);
  return isPassant || (target !== undefined && target.color !== position.turn);
}

/** Returns the moves of a line, with move numbers where readers need them. */
export function numberedMoves(sans, turn, fullmoves) {
  let white = turn === "white";
  return sans.map((san, index) => {
    const number = white ? `${fullmoves}. ` : index === 0 ? `${fullmoves}… ` : "";
    if (!white) fullmoves += 1;
    white = !white;
    return number + san;
  });
}

/** Returns the moves of a line as text. */
export const numbered = (sans, turn, fullmoves) => numberedMoves(sans, turn, fullmoves).join(" ");

/** Describes the position on the board in words. */
export function describe(position) {
  const names = [message("king"), message("queen"), message("rook"), message("bishop"), message("knight"), message("pawn")];
  const square = (at) => "abcdefgh"[at % 8] + (1 + (at >> 3));
  const side = (color) => {
    const groups = names.map((role) => {
      const squares = [...position.board.pieces(color, role)].map(square);
      return squares.length ? `${t(role)} ${squares.join(" ")}` : "";
    });
    return groups.filter(Boolean).join(", ");
  };
  const values = { white: side("white"), black: side("black") };
  return position.turn === "white" ? t("white: {white}; black: {black}; white to move", values) : t("white: {white}; black: {black}; black to move", values);
}

export { INITIAL_FEN, opposite };

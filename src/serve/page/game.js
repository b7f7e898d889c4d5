// Games: positions, moves, ends, and PGN.

import { Chess, normalizeMove } from "/board/chessops/chess.js";
import { INITIAL_FEN, makeFen, parseFen } from "/board/chessops/fen.js";
import { defaultGame, makePgn, parsePgn, startingPosition } from "/board/chessops/pgn.js";
import { makeSan, parseSan } from "/board/chessops/san.js";
import { makeUci, opposite, parseUci } from "/board/chessops/util.js";

/** A game without variations. */
export class Game {
  constructor(fen = INITIAL_FEN, tags = {}) {
    const setup = parseFen(fen.trim()).unwrap();
    this.positions = [Chess.fromSetup(setup).unwrap()];
    this.fen = makeFen(this.positions[0].toSetup());
    this.moves = [];
    this.tags = tags;
    this.result = "*";
  }

  /** The first game of a PGN. */
  static fromPgn(text) {
    const read = parsePgn(text)[0];
    if (!read) throw new Error("there is no game in it");
    const start = startingPosition(read.headers).unwrap();
    const game = new Game(makeFen(start.toSetup()), Object.fromEntries(read.headers));
    for (const { san } of read.moves.mainline()) {
      const move = parseSan(game.position, san);
      if (!move) throw new Error(`${san} is no legal move`);
      game.play(move);
    }
    if (!game.moves.length && !read.headers.has("FEN")) throw new Error("it has no moves");
    game.result = read.headers.get("Result") ?? "*";
    return game;
  }

  /** A FEN, a PGN, or moves. */
  static read(text) {
    const trimmed = text.trim();
    if (!trimmed) return new Game();
    return /^[pnbrqkPNBRQK1-8]+\//.test(trimmed) ? new Game(trimmed) : Game.fromPgn(trimmed);
  }

  get position() {
    return this.positions.at(-1);
  }

  /** A move in UCI notation or SAN, if it is legal. */
  legal(text) {
    const san = parseSan(this.position, text.trim());
    if (san) return san;
    const uci = parseUci(text.trim().toLowerCase());
    const move = uci && normalizeMove(this.position, uci);
    return move && this.position.isLegal(move) ? move : undefined;
  }

  /** All legal moves in SAN. */
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
    const played = { uci: makeUci(move), san: makeSan(position, move), move };
    position.play(move);
    this.moves.push(played);
    this.positions.push(position);
    return played;
  }

  /** Takes moves back until so many are left. */
  truncate(count) {
    this.moves.length = Math.min(this.moves.length, count);
    this.positions.length = this.moves.length + 1;
    this.result = "*";
  }

  /** The same game after so many moves. */
  at(ply) {
    const game = new Game(this.fen, { ...this.tags });
    for (const { move } of this.moves.slice(0, ply)) game.play(move);
    return game;
  }

  /** How the game has ended, in words and as PGN has it; nothing while it goes on. */
  ending() {
    const position = this.position;
    const outcome = position.outcome();
    if (position.isCheckmate()) {
      return { why: "checkmate", result: outcome.winner === "white" ? "1-0" : "0-1" };
    }
    const drawn = (why) => ({ why, result: "1/2-1/2" });
    if (position.isStalemate()) return drawn("stalemate");
    if (position.isInsufficientMaterial()) return drawn("insufficient material");
    if (position.halfmoves >= 100) return drawn("fifty moves");
    const key = (it) => makeFen(it.toSetup()).split(" ").slice(0, 4).join(" ");
    const last = key(position);
    const same = this.positions.filter((it) => key(it) === last).length;
    return same >= 3 ? drawn("threefold repetition") : undefined;
  }

  /** The position as a request has it, with its history. */
  request() {
    const request = { moves: this.moves.map(({ uci }) => uci) };
    if (this.fen !== INITIAL_FEN) request.fen = this.fen;
    return request;
  }

  pgn() {
    const tags = { ...this.tags, Result: this.result };
    if (this.fen !== INITIAL_FEN) Object.assign(tags, { SetUp: "1", FEN: this.fen });
    const game = defaultGame(() => new Map(Object.entries(tags)));
    let node = game.moves;
    for (const { san } of this.moves) {
      const next = { data: { san }, children: [] };
      node.children.push(next);
      node = next;
    }
    return makePgn(game);
  }
}

/** The moves of a line, as numbered text, from the side to move and the move's number. */
export function numbered(sans, turn, fullmoves) {
  let white = turn === "white";
  return sans
    .map((san, index) => {
      const number = white ? `${fullmoves}. ` : index === 0 ? `${fullmoves}… ` : "";
      if (!white) fullmoves += 1;
      white = !white;
      return number + san;
    })
    .join(" ");
}

/** What stands on the board, in words. */
export function describe(position) {
  const names = ["king", "queen", "rook", "bishop", "knight", "pawn"];
  const square = (at) => "abcdefgh"[at % 8] + (1 + (at >> 3));
  const side = (color) => {
    const groups = names.map((role) => {
      const squares = [...position.board.pieces(color, role)].map(square);
      return squares.length ? `${role} ${squares.join(" ")}` : "";
    });
    return `${color}: ${groups.filter(Boolean).join(", ")}`;
  };
  return `${side("white")}; ${side("black")}; ${position.turn} to move`;
}

export { INITIAL_FEN, opposite };

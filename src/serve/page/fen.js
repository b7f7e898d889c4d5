// FENs, and explanations for players of why one is invalid.

import { Chess } from "/board/chessops/chess.js";
import { makeFen, parseFen } from "/board/chessops/fen.js";
import { opposite } from "/board/chessops/util.js";
import { t } from "./messages.js";

/** Returns whether a text is meant as a FEN rather than as moves. */
export const isFen = (text) => /^(?!1\/2-1\/2)\S+\/\S+\//.test(tidy(text.slice(0, 200)));

/** What comes before a FEN in the address of an analysis. */
const ADDRESS = /^https?:\/\/\S*?\/(?=[pnbrqkPNBRQK1-8]+\/)/;

/** An address that names the FEN among its parameters. */
const PARAMETER = /^\s*https?:\/\/\S*?[?&]fen=([^\s&#]*).*$/is;
/** What follows the four fields that an EPD has in common with a FEN. */
const OPERATIONS = /^((?:\S+\s+){3}\S+)\s+[A-Za-z]\w*(\s[^;]*)?;.*$/s;

/** Returns a FEN without quotes, the words of a UCI command, the rest of an address and the operations of an EPD, with
 * blanks for underscores, small letters for the side to move, and numbers for counters that are dashes. */
function tidy(text) {
  const named = text.replace(PARAMETER, (_, fen) => fen.replace(/%2F/gi, "/").replace(/\+|%20/g, " "));
  const bare = named.replace(/["'“”„«»`]/g, "").replace(/[–—]/g, "-").replace(/^\s*(position\s)?\s*(fen(:|\s))?\s*/i, "").replace(ADDRESS, "").replace(/\?\S*$/, "").trim().replace(OPERATIONS, "$1");
  const [board, turn, castling, passant, ...counters] = bare.trim().split(/[\s_]+/);
  const side = /^(w|b|white|black)$/i.test(turn) ? turn[0].toLowerCase() : turn;
  const numbers = counters.map((it, place) => (it === "-" && place < 2 ? String(place) : it));
  return [board, side, castling, passant, ...numbers].filter((it) => it !== undefined).join(" ");
}

/** Returns the position of a FEN; throws an explanation if it is invalid. */
export function readFen(text) {
  const fen = tidy(text);
  const problem = boardProblem(fen.split(" ")[0]) ?? fieldProblem(fen.split(" "));
  if (problem) throw new Error(problem);
  const setup = parseFen(fen).unwrap(
    (it) => it,
    () => {
      throw new Error(t("This is not a FEN: see the fields after the board."));
    },
  );
  const illegal = setupProblem(setup);
  if (illegal) throw new Error(illegal);
  return Chess.fromSetup(setup).unwrap(
    (it) => it,
    () => {
      throw new Error(t("The rules of chess do not allow this position."));
    },
  );
}

export const fenOf = (position) => makeFen(position.toSetup());

function boardProblem(board) {
  const ranks = board.split("/");
  if (ranks.length !== 8) return t("A FEN has eight ranks with slashes between them; this one has {count}.", { count: ranks.length });
  for (const [index, rank] of ranks.entries()) {
    const values = { rank: 8 - index, text: rank || "–" };
    const foreign = rank.match(/[^pnbrqkPNBRQK1-8]/);
    if (foreign) return t("Rank {rank} ({text}) contains “{letter}”, which stands for no piece.", { ...values, letter: foreign[0] });
    const squares = [...rank].reduce((sum, it) => sum + (Number(it) || 1), 0);
    if (squares !== 8) return t("Rank {rank} ({text}) describes {squares} squares instead of 8.", { ...values, squares });
  }
}

function fieldProblem([, turn = "w", castling = "-", passant = "-", half = "0", full = "1", ...rest]) {
  if (!/^[wb]$/.test(turn)) return t("After the board comes w or b for the side to move, not “{text}”.", { text: turn });
  if (!/^(-|[KQkqA-Ha-h]{1,4})$/.test(castling)) return t("Castling rights are letters of KQkq or -, not “{text}”.", { text: castling });
  if (!/^(-|[a-h][36])$/.test(passant)) return t("The en passant square is - or on rank 3 or 6, not “{text}”.", { text: passant });
  if (!/^\d+$/.test(half) || !/^\d+$/.test(full)) return t("A FEN ends in two numbers: half-moves since a capture, and the move's number.");
  if (rest.length) return t("A FEN has six fields; “{text}” comes after them.", { text: rest.join(" ") });
}

function setupProblem(setup) {
  const { board, turn } = setup;
  for (const color of ["white", "black"]) {
    const kings = board.pieces(color, "king").size();
    const side = color === "white" ? t("White") : t("Black");
    if (kings === 0) return t("{side} has no king.", { side });
    if (kings > 1) return t("{side} has {kings} kings.", { side, kings });
  }
  for (const square of board.pawn) {
    if (square < 8 || square > 55) return t("A pawn cannot stand on the first or the last rank.");
  }
  const position = Chess.default();
  position.board = board;
  position.turn = opposite(turn);
  if (position.isCheck()) {
    return turn === "white" ? t("Black is in check although it is White's move.") : t("White is in check although it is Black's move.");
  }
}

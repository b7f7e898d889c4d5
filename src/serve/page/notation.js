// Moves as people write them.

import { normalizeMove } from "/board/chessops/chess.js";
import { parseSan } from "/board/chessops/san.js";
import { parseUci } from "/board/chessops/util.js";
import { message } from "./messages.js";

/** The letters of king, queen, rook, bishop and knight. English comes first. */
export const LANGUAGES = [
  { name: message("English"), letters: ["K", "Q", "R", "B", "N"] },
  { name: message("German"), letters: ["K", "D", "T", "L", "S"] },
  { name: message("French"), letters: ["R", "D", "T", "F", "C"] },
  { name: message("Spanish"), letters: ["R", "D", "T", "A", "C"] },
  { name: message("Portuguese"), letters: ["R", "D", "T", "B", "C"] },
  { name: message("Dutch"), letters: ["K", "D", "T", "L", "P"] },
  { name: message("Russian"), letters: ["Кр", "Ф", "Л", "С", "К"] },
];
const [ENGLISH] = LANGUAGES;
const FIGURINES = "♔♕♖♗♘♙♚♛♜♝♞♟";

const NUMBER = /^\d+\s*(\.+|…)[\s.…]*/;
/** What may follow a move: checks, marks, and a note that it captures en passant. */
const MARKS = /(\s*(e\.?\s?p\.?|[+#=!?†‡±∓⩲⩱∞□]|\+-|-\+|ch|mate))+$/iu;
const CASTLING = /^[oо0]([-–—]?[oо0]){1,2}$/iu;
const MOVE = /^(Кр|[\p{Lu}♔-♟])?([a-h]?[1-8]?[-x]?[a-h][1-8])(?:[=/]?\(?([\p{Lu}♔-♟qrbn])\)?)?$/u;
const FROM_TO = /^[a-h][1-8][a-h][1-8][qrbn]?$/;

/** Returns a written move without its number and its marks. */
const bare = (text) => text.trim().replace(/[\uFE0E\uFE0F]/g, "").replace(NUMBER, "").replace(MARKS, "");

/** Returns a written move in English SAN, whether or not it is legal; nothing if it is not a move in the language. */
export function inEnglish(text, language = ENGLISH) {
  const written = bare(text).replace(/[:×]/g, "x").replace(/[–—]/g, "-");
  if (CASTLING.test(written)) return written.replace(/[^oо0]/giu, "").length === 3 ? "O-O-O" : "O-O";
  const [, piece, squares, promotion] = written.match(MOVE) ?? [];
  if (!squares) return undefined;
  const [letter, promoted] = [piece, promotion].map((it) => letterOf(it, language));
  if (letter === undefined || promoted === undefined) return undefined;
  return letter + squares + (promoted && `=${promoted}`);
}

/** Returns the English letter of a piece's symbol, which is empty for a pawn; nothing if no piece has the symbol. */
function letterOf(symbol, language) {
  if (!symbol) return "";
  const figurine = FIGURINES.indexOf(symbol);
  if (figurine >= 0) return ENGLISH.letters[figurine % 6] ?? "";
  // Lower-case promotions are those of UCI.
  if ("qrbn".includes(symbol)) return symbol.toUpperCase();
  return ENGLISH.letters[language.letters.indexOf(symbol)];
}

/** Returns whether a written move passes. */
export const isNull = (text) => /^(--|Z0|null|@@@@|0000)$/.test(bare(text));

/** Returns the squares of a move that is written without its piece, as in UCI. */
export function fromTo(text) {
  const squares = bare(text).toLowerCase().replace(/[-–—x×:=()/]/g, "");
  return FROM_TO.test(squares) ? parseUci(squares) : undefined;
}

/** Returns a move given in UCI notation or SAN, if it is legal in a position. */
export function legalMove(position, text, language = ENGLISH) {
  const written = inEnglish(text, language);
  const san = written && (parseSan(position, written) ?? castlingOf(position, written));
  if (san) return san;
  const squares = fromTo(text);
  return squares && legal(position, squares);
}

/** Returns castling that is written as a move of the king, as in Kg1. */
function castlingOf(position, written) {
  const [, target] = written.match(/^K(?:e[18])?-?([cg][18])$/) ?? [];
  const from = target && position.board.kingOf(position.turn);
  return from === undefined ? undefined : legal(position, { from, to: parseUci(`a1${target}`).to });
}

function legal(position, squares) {
  const move = normalizeMove(position, squares);
  return position.isLegal(move) ? move : undefined;
}

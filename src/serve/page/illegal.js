// Explanations for players of why a typed move cannot be played.

import { makeSquare, parseSquare } from "/board/chessops/util.js";
import { makeSan } from "/board/chessops/san.js";
import { message, t } from "./messages.js";
import { fromTo, inEnglish } from "./notation.js";

const NAMES = { K: "king", Q: "queen", R: "rook", B: "bishop", N: "knight" };
/** The subjects of sentences about a piece. */
const SUBJECTS = {
  king: message("The king on {square}"), queen: message("The queen on {square}"), rook: message("The rook on {square}"),
  bishop: message("The bishop on {square}"), knight: message("The knight on {square}"), pawn: message("The pawn on {square}"),
};
const LACKING = {
  white: {
    king: message("White has no king."), queen: message("White has no queen."), rook: message("White has no rook."),
    bishop: message("White has no bishop."), knight: message("White has no knight."), pawn: message("White has no pawn."),
  },
  black: {
    king: message("Black has no king."), queen: message("Black has no queen."), rook: message("Black has no rook."),
    bishop: message("Black has no bishop."), knight: message("Black has no knight."), pawn: message("Black has no pawn."),
  },
};
const SEVERAL = {
  queen: message("{count} queens can go to {square}: type {moves}."), rook: message("{count} rooks can go to {square}: type {moves}."),
  bishop: message("{count} bishops can go to {square}: type {moves}."), knight: message("{count} knights can go to {square}: type {moves}."),
};
const NONE_REACHES = {
  king: message("No king can go to {square}."), queen: message("No queen can go to {square}."), rook: message("No rook can go to {square}."),
  bishop: message("No bishop can go to {square}."), knight: message("No knight can go to {square}."), pawn: message("No pawn can go to {square}."),
};
const SAN = /^([KQRBN]?)([a-h]?)([1-8]?)[-x]?([a-h][1-8])(=[QRBN])?$/;
const PROMOTES = message("Only a pawn that reaches the last rank is promoted.");

/** Explains why `text` is not a legal move in a position. */
export function whyIllegal(position, text) {
  const squares = fromTo(text);
  if (squares) return between(position, squares);
  const written = inEnglish(text);
  if (written?.startsWith("O")) return castling(position, written);
  const san = written?.match(SAN);
  return san ? named(position, san) : t("“{text}” is not a move. Type e4, Nf3, exd5, O-O or e2e4.", { text: text.trim() });
}

const subject = (role, square) => t(SUBJECTS[role], { square: makeSquare(square) });

/** Returns whether a piece promotes on a square. */
const promotes = (role, to) => role === "pawn" && (to < 8 || to > 55);

function between(position, { from, to, promotion }) {
  const piece = position.board.get(from);
  if (!piece) return t("There is no piece on {square}.", { square: makeSquare(from) });
  if (piece.color !== position.turn) {
    const values = { piece: subject(piece.role, from) };
    return piece.color === "white" ? t("{piece} is White's, and it is Black's move.", values) : t("{piece} is Black's, and it is White's move.", values);
  }
  if (promotion && !promotes(piece.role, to)) return t(PROMOTES);
  if (!promotion && promotes(piece.role, to) && position.dests(from).has(to)) {
    return t("The pawn promotes: type {moves} for a queen.", { moves: `${makeSquare(from)}${makeSquare(to)}q` });
  }
  return cannotReach(position, piece.role, from, to);
}

function named(position, [, letter, file, rank, target, promotion]) {
  const role = NAMES[letter] ?? "pawn";
  const to = parseSquare(target);
  const own = [...position.board.pieces(position.turn, role)];
  if (!own.length) return t(LACKING[position.turn][role]);
  if (promotion && !promotes(role, to)) return t(PROMOTES);
  const suits = (square) => (!file || makeSquare(square)[0] === file) && (!rank || makeSquare(square)[1] === rank);
  const able = own.filter((from) => suits(from) && position.dests(from).has(to));
  if (able.length) return unclear(position, role, able, to, promotion);
  const candidates = own.filter(suits);
  if (candidates.length === 1) return cannotReach(position, role, candidates[0], to);
  const pinned = candidates.find((from) => reaches(position, from, to));
  if (pinned !== undefined) return cannotReach(position, role, pinned, to);
  return t(NONE_REACHES[role], { square: target });
}

/** Says how to write a move of which something is missing: the promotion, or which piece moves. */
function unclear(position, role, able, to, promotion) {
  const wanted = NAMES[promotion?.[1]] ?? "queen";
  const isPromotion = promotes(role, to);
  const move = (from) => ({ from, to, promotion: isPromotion ? wanted : undefined });
  const sans = able.map((from) => makeSan(position, move(from)).replace(/[+#]$/, ""));
  const values = { square: makeSquare(to), moves: sans.join(t(" or ")), count: able.length };
  if (isPromotion && !promotion) return t("The pawn promotes: type {moves} for a queen.", values);
  if (role === "pawn") return t("A pawn reaches {square} only by capturing: type {moves}.", values);
  return t(SEVERAL[role], values);
}

/** Returns whether a piece could move there if the safety of its king were ignored. */
function reaches(position, from, to) {
  return position.dests(from, { ...position.ctx(), king: undefined }).has(to);
}

function cannotReach(position, role, from, to) {
  const values = { piece: subject(role, from), square: makeSquare(to) };
  const target = position.board.get(to);
  if (target?.color === position.turn) return t("{piece} cannot go to {square}: your own piece stands there.", values);
  if (!reaches(position, from, to)) return t("{piece} cannot go to {square}.", values);
  if (role === "king") return t("The king cannot go to {square}: it would be in check there.", values);
  if (position.isCheck()) return t("Your king is in check, and this move leaves it there.");
  if (role === "pawn" && to === position.epSquare) return t("This capture would leave your king in check.");
  return t("{piece} is pinned: the move would leave your king in check.", values);
}

function castling(position, written) {
  const side = written === "O-O-O" ? "a" : "h";
  const { rook, path } = position.castles;
  const [own, way] = [rook[position.turn][side], path[position.turn][side]];
  const castle = { castle: written };
  if (own === undefined) return t("You can no longer castle with {castle}: the king or the rook has moved, or is not in its place.", castle);
  if (position.isCheck()) return t("You cannot castle out of check.");
  if (way.intersect(position.board.occupied).nonEmpty()) return t("You cannot castle with {castle} yet: pieces stand between king and rook.", castle);
  return t("You cannot castle with {castle}: the king would pass over or come to an attacked square.", castle);
}

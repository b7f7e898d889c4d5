// Explanations for players of why a typed move cannot be played.

import { makeSquare, parseSquare } from "/board/chessops/util.js";
import { makeSan } from "/board/chessops/san.js";
import { fromTo, inEnglish } from "./notation.js";

const NAMES = { K: "king", Q: "queen", R: "rook", B: "bishop", N: "knight" };
const COLORS = { white: "White", black: "Black" };
const COUNTS = { 2: "Two", 3: "Three", 4: "Four" };
const SAN = /^([KQRBN]?)([a-h]?)([1-8]?)[-x]?([a-h][1-8])(=[QRBN])?$/;
const PROMOTES = "Only a pawn that reaches the last rank is promoted.";

/** Explains why `text` is not a legal move in a position. */
export function whyIllegal(position, text) {
  const squares = fromTo(text);
  if (squares) return between(position, squares);
  const written = inEnglish(text);
  if (written?.startsWith("O")) return castling(position, written);
  const san = written?.match(SAN);
  return san ? named(position, san) : `“${text.trim()}” is not a move. Type e4, Nf3, exd5, O-O or e2e4.`;
}

/** Returns whether a piece promotes on a square. */
const promotes = (role, to) => role === "pawn" && (to < 8 || to > 55);

function between(position, { from, to, promotion }) {
  const piece = position.board.get(from);
  if (!piece) return `There is no piece on ${makeSquare(from)}.`;
  if (piece.color !== position.turn) return `The ${piece.role} on ${makeSquare(from)} is ${COLORS[piece.color]}'s, and it is ${COLORS[position.turn]}'s move.`;
  if (promotion && !promotes(piece.role, to)) return PROMOTES;
  if (!promotion && promotes(piece.role, to) && position.dests(from).has(to)) {
    return `The pawn promotes: type ${makeSquare(from)}${makeSquare(to)}q for a queen.`;
  }
  return cannotReach(position, piece.role, from, to);
}

function named(position, [, letter, file, rank, target, promotion]) {
  const role = NAMES[letter] ?? "pawn";
  const to = parseSquare(target);
  const own = [...position.board.pieces(position.turn, role)];
  if (!own.length) return `${COLORS[position.turn]} has no ${role}.`;
  if (promotion && !promotes(role, to)) return PROMOTES;
  const suits = (square) => (!file || makeSquare(square)[0] === file) && (!rank || makeSquare(square)[1] === rank);
  const able = own.filter((from) => suits(from) && position.dests(from).has(to));
  if (able.length) return unclear(position, role, able, to, promotion);
  const candidates = own.filter(suits);
  if (candidates.length === 1) return cannotReach(position, role, candidates[0], to);
  const pinned = candidates.find((from) => reaches(position, from, to));
  if (pinned !== undefined) return cannotReach(position, role, pinned, to);
  return `No ${role} of ${COLORS[position.turn]}'s can go to ${target}.`;
}

/** Says how to write a move of which something is missing: the promotion, or which piece moves. */
function unclear(position, role, able, to, promotion) {
  const wanted = NAMES[promotion?.[1]] ?? "queen";
  const isPromotion = promotes(role, to);
  const move = (from) => ({ from, to, promotion: isPromotion ? wanted : undefined });
  const sans = able.map((from) => makeSan(position, move(from)).replace(/[+#]$/, ""));
  const types = `type ${sans.join(" or ")}`;
  if (isPromotion && !promotion) return `The pawn promotes: ${types} for a queen.`;
  if (role === "pawn") return `A pawn reaches ${makeSquare(to)} only by capturing: ${types}.`;
  return `${COUNTS[able.length] ?? able.length} ${role}s can go to ${makeSquare(to)}: ${types}.`;
}

/** Returns whether a piece could move there if the safety of its king were ignored. */
function reaches(position, from, to) {
  return position.dests(from, { ...position.ctx(), king: undefined }).has(to);
}

function cannotReach(position, role, from, to) {
  const piece = `The ${role} on ${makeSquare(from)}`;
  const target = position.board.get(to);
  if (target?.color === position.turn) return `${piece} cannot go to ${makeSquare(to)}: your own ${target.role} stands there.`;
  if (!reaches(position, from, to)) return `${piece} cannot go to ${makeSquare(to)}.`;
  if (role === "king") return `The king cannot go to ${makeSquare(to)}: it would be in check there.`;
  if (position.isCheck()) return "Your king is in check, and this move leaves it there.";
  if (role === "pawn" && to === position.epSquare) return "This capture would leave your king in check.";
  return `${piece} is pinned: the move would leave your king in check.`;
}

function castling(position, written) {
  const side = written === "O-O-O" ? "a" : "h";
  const { rook, path } = position.castles;
  const [own, way] = [rook[position.turn][side], path[position.turn][side]];
  const name = side === "a" ? "on the queen's side" : "on the king's side";
  if (own === undefined) return `You can no longer castle ${name}: the king or the rook has moved, or is not in its place.`;
  if (position.isCheck()) return "You cannot castle out of check.";
  if (way.intersect(position.board.occupied).nonEmpty()) return `You cannot castle ${name} yet: pieces stand between king and rook.`;
  return `You cannot castle ${name}: the king would pass over or come to an attacked square.`;
}

// Mistakes from reviewed games, which the browser keeps and which come back at growing intervals until they are learned.

import { readFen } from "./fen.js";
import { fenAt, isBad, titleOf } from "./review_parts.js";
import { isTime, recall, remember } from "./store.js";

const DAY = 86_400_000;
/** Days until a mistake comes back after it was solved at first sight this many times in a row. One more time, and it is
 * learned. */
const INTERVALS = [1, 3, 7, 21];
/** Milliseconds until a mistake comes back that was not solved at first sight. */
const SOON = 600_000;

const isText = (it) => typeof it === "string";
const isLine = ({ moves, evaluation }) => moves.length > 0 && moves.every(({ uci, san }) => isText(uci) && isText(san)) && typeof (evaluation ?? {}) === "object";

function isMistake({ fen, played, best, facts, due }) {
  try {
    return Boolean(readFen(fen)) && isText(played) && isLine(best) && facts.every(isText) && isTime(due);
  } catch {
    return false;
  }
}

/** Returns the kept mistakes, without unreadable ones. */
const all = () => recall("mistakes", []).filter((it) => it && isMistake(it));
const isLearned = ({ solved }) => solved > INTERVALS.length;

/** Returns the mistakes and blunders of a side in a report for which a better move is known. */
export const mistakesOf = ({ plies }, side) => plies.filter((ply) => ply.side === side && isBad(ply) && ply.mark !== "inaccuracy" && ply.best);

/** Keeps a side's mistakes in a reviewed game, unless they are kept already. */
export function add(report, side) {
  const kept = all();
  const known = new Set(kept.map(({ fen }) => fen));
  const made = mistakesOf(report, side).map((ply) => ({
    fen: fenAt(report, ply.ply - 1),
    played: ply.san,
    best: ply.best,
    facts: ply.reasons.best.map(({ text }) => text),
    game: titleOf(report),
    solved: 0,
    due: Date.now(),
  }));
  const added = made.filter(({ fen }) => !known.has(fen));
  if (added.length) remember("mistakes", [...kept, ...added]);
}

/** Changes the stored mistake in a position; without a change, removes it. */
function change(fen, changes) {
  const kept = all().map((it) => (it.fen === fen ? changes && { ...it, ...changes } : it));
  remember("mistakes", kept.filter(Boolean));
}

/** Decides when a mistake comes back. */
export function schedule({ fen, solved }, isAtFirstSight) {
  const times = isAtFirstSight ? solved + 1 : 0;
  const wait = times ? DAY * (INTERVALS[times - 1] ?? 0) : SOON;
  change(fen, { solved: times, due: Date.now() + wait });
}

export const remove = ({ fen }) => change(fen);

/** Returns the mistake to show next, if there is one. */
export const next = () => open().filter(({ due }) => due <= Date.now()).sort((one, other) => one.due - other.due)[0];

const open = () => all().filter((it) => !isLearned(it));

/** Returns how many mistakes there are, how many are to be solved now and how many are learned, and when the next one
 * comes back. */
export function count() {
  const [kept, left] = [all(), open()];
  const due = left.filter((it) => it.due <= Date.now()).length;
  return { all: kept.length, due, learned: kept.length - left.length, soonest: Math.min(...left.map((it) => it.due)) };
}

/** Returns the mistakes as CSV, a line each. */
export function csv() {
  const field = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const rows = all().map(({ fen, best, played, game, solved, due }) => [
    fen, best.moves.map(({ san }) => san).join(" "), played, game, String(solved), new Date(due).toISOString(),
  ]);
  return [["FEN", "Solution", "Played", "Game", "Solved", "Due"], ...rows].map((row) => `${row.map(field).join(",")}\n`).join("");
}

// Analyses that the browser keeps. Each has a key of its own, so that windows do not overwrite one another's.

import { isTime, keys, recall, recallHere, remember, rememberHere } from "./store.js";

const PREFIX = "analysis.";
/** The key in the window's storage under which a reload finds the analysis and the position on the board. */
const HERE = "analysis";

/** The key of this window's analysis, and the text that is stored under it as far as this window knows. */
let key;
let known = null;

const changed = () => dispatchEvent(new CustomEvent("analyses"));

const textOf = (key) => {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
};
const isAnalysis = (value) => typeof value.pgn === "string" && typeof value.name === "string" && isTime(value.date);

/** Keeps this window's analysis: its PGN and its name. If another window has changed the stored one, both are kept. */
export function keep(analysis) {
  const before = known && JSON.parse(known);
  if (before?.pgn === analysis.pgn && before.name === analysis.name) return;
  if (!key || textOf(key) !== known) {
    const same = list().find(({ pgn, name }) => pgn === analysis.pgn && name === analysis.name);
    key = same?.key ?? `${PREFIX}${Date.now()}.${Math.random().toString(36).slice(2, 6)}`;
  }
  remember(key, { ...analysis, date: Date.now() });
  known = textOf(key);
  changed();
}

/** Remembers the position on the board for a reload, as a path through the variations. */
export function mark(path) {
  if (key) rememberHere(HERE, { key, path });
}

/** Begins an analysis; the previous one stays as it was kept. */
export function begin() {
  [key, known] = [undefined, null];
  rememberHere(HERE, undefined);
  changed();
}

/** Returns a kept analysis, if it is there. */
export function find(wanted) {
  const analysis = recall(wanted, undefined, isAnalysis);
  return analysis && { ...analysis, key: wanted };
}

/** Continues a kept analysis. */
export function take(wanted) {
  [key, known] = [wanted, textOf(wanted)];
  changed();
}

/** Returns this window's analysis and the path of the position on the board, if a reload finds them. */
export function here() {
  const { key: last, path } = recallHere(HERE) ?? {};
  const analysis = typeof last === "string" && find(last);
  return analysis ? { ...analysis, path } : undefined;
}

/** Returns the kept analyses, latest first. */
export function list() {
  const kept = keys().filter((it) => it.startsWith(PREFIX));
  const found = kept.map((it) => ({ ...recall(it, undefined, isAnalysis), key: it, isHere: it === key }));
  return found.filter(isAnalysis).sort((one, other) => other.date - one.date);
}

export function remove(unwanted) {
  remember(unwanted, undefined);
  if (unwanted === key) begin();
  else changed();
}

// The browser's storage: settings, the current game, and finished games.

import { trouble } from "./dom.js";
import { t } from "./messages.js";

const formOf = (value) => (Array.isArray(value) ? "array" : typeof value);

/** Returns a stored value, or `usual` if there is none. A value that does not suit, by default one of another form than
 * `usual`, is set aside under another key. */
export function recall(key, usual, suits = (value) => formOf(value) === formOf(usual)) {
  try {
    const text = localStorage.getItem(key);
    const value = parsed(text);
    if (value !== undefined && suits(value)) return value;
    if (text !== null) setAside(key, text);
  } catch {
    // The browser stores nothing.
  }
  return usual;
}

/** Returns the value of a JSON text, or nothing if it has none. */
function parsed(text) {
  try {
    return JSON.parse(text) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Returns the keys of everything stored. */
export function keys() {
  try {
    return Object.keys(localStorage);
  } catch {
    return [];
  }
}

/** Returns whether a stored value is a time that can be shown, in milliseconds. */
export const isTime = (value) => typeof value === "number" && Number.isFinite(new Date(value).valueOf());

/** Returns a value that only this window has stored and that a reload finds, or nothing. */
export function recallHere(key) {
  try {
    return parsed(sessionStorage.getItem(key));
  } catch {
    return undefined;
  }
}

/** Stores a value for a reload of this window, unless there is no room for it; `undefined` removes it. */
export function rememberHere(key, value) {
  try {
    if (value === undefined) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(value));
  } catch (error) {
    console.warn(error.message);
  }
}

function setAside(key, text) {
  const aside = `aside.${key}.${Date.now()}`;
  localStorage.setItem(aside, text);
  localStorage.removeItem(key);
  console.warn(`What was stored as ${key} is unreadable; it is kept as ${aside}.`);
}

/** Stores a value; `undefined` removes it. Browsers that store nothing are tolerated, but not a full storage. */
export function remember(key, value) {
  try {
    if (value === undefined) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify(value));
  } catch (error) {
    console.warn(error.message);
    if (error.name === "QuotaExceededError") trouble(t("The browser has no room left for this page: save your games and analyses as PGN, then delete some."));
  }
}

/** Returns the games played, as PGN, oldest first. */
export const games = () => recall("games", [], (value) => Array.isArray(value) && value.every((it) => typeof it === "string"));
export const forget = () => remember("games", undefined);

/** Returns a game's moves on one line, without its result. */
const movesOf = (pgn) => pgn.slice(pgn.indexOf("\n\n")).replace(/\s+/g, " ").replace(/\S+ $/, "");

/** Keeps a game, in place of an earlier state of it. */
export function keep(game) {
  const pgn = game.pgn();
  const begun = `[UTCDate "${game.tags.UTCDate}"]\n[UTCTime "${game.tags.UTCTime}"]`;
  const isEarlier = (it) => it.includes(begun) && movesOf(pgn).startsWith(movesOf(it));
  remember("games", [...games().filter((it) => !isEarlier(it)), pgn]);
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    trouble(t("The browser does not let this page copy: save instead."));
    return false;
  }
}

/** Saves text as a file. */
export function save(text, name = "games.pgn", type = "application/x-chess-pgn") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

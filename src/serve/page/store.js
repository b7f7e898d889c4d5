// The browser's storage: settings, the current game, and finished games.

import { trouble } from "./dom.js";

/** Number of latest games to keep. */
const MOST = 200;

/** Returns a stored value, or `usual` if it is missing or unreadable. */
export function recall(key, usual) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? usual;
  } catch {
    return usual;
  }
}

/** Stores a value; `undefined` removes it. Browsers that store nothing are tolerated. */
export function remember(key, value) {
  try {
    if (value === undefined) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify(value));
  } catch (error) {
    console.warn(error.message);
  }
}

/** Returns the games played, as PGN, oldest first. */
export const games = () => recall("games", []);
export const keep = (game) => remember("games", [...games(), game.pgn()].slice(-MOST));
export const forget = () => remember("games", undefined);

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    trouble("The browser does not let this page copy: save instead.");
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

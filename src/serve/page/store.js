// What the browser keeps: settings, the game that goes on, and the games played.

import { trouble } from "./dom.js";

/** Games that are kept, the last ones. */
const MOST = 200;

/** A kept value; `usual` where there is none, or none that can be read. */
export function recall(key, usual) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? usual;
  } catch {
    return usual;
  }
}

/** Keeps a value; `undefined` forgets it. A browser that keeps nothing is no trouble. */
export function remember(key, value) {
  try {
    if (value === undefined) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify(value));
  } catch (error) {
    console.warn(error.message);
  }
}

/** The games played, as PGN, the oldest first. */
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

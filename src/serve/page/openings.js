// Names of openings, by position.

import { keyOf } from "./game.js";

let table;

/** Loads the table, which is empty if it is unavailable. */
const load = () => (table ??= fetch("/page/openings.json").then((it) => it.json()).catch(() => ({})));

/** Returns the name of the last named position in a game, if it has one. */
export async function openingOf(game) {
  const names = await load();
  return game.positions.map((position) => names[keyOf(position)]).findLast(Boolean);
}

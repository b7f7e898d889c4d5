// The names of openings, by position.

import { keyOf } from "./game.js";

let table;

/** The table; an empty one where it cannot be had. */
const load = () => (table ??= fetch("/page/openings.json").then((it) => it.json()).catch(() => ({})));

/** The name that the last named position of a game has; nothing without one. */
export async function openingOf(game) {
  const names = await load();
  return game.positions.map((position) => names[keyOf(position)]).findLast(Boolean);
}

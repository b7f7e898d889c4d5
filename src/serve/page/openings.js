// Names of openings.

/** The names by query, so that stepping through a game asks once for each position. */
const known = new Map();

/** Returns the name of a game's opening, if it has one. The server finds it by the same rule as in reviews. */
export async function openingOf(game) {
  const { moves, fen } = game.request();
  const key = new URLSearchParams({ moves: moves.join(" "), ...(fen && { fen }) }).toString();
  if (!known.has(key)) known.set(key, ask(key));
  return known.get(key);
}

async function ask(key) {
  try {
    const answer = await fetch(`/page/opening?${key}`);
    return (await answer.json()).name ?? undefined;
  } catch {
    // The server cannot be reached; the next question asks again.
    known.delete(key);
    return undefined;
  }
}

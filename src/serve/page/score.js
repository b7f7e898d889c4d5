// Scores in words and as shares, from White's view.

/** Returns win, draw and loss from White's view. */
export const whites = ({ win, draw, loss }, turn) => (turn === "white" ? [win, draw, loss] : [loss, draw, win]);

/** Returns White's expected score, in 0…1. */
export const expected = ([win, draw]) => win + draw / 2;

/** Formats a score as chess programs write it. */
export function scoreText({ cp, mate, tablebase, value }, turn) {
  const sign = turn === "white" ? 1 : -1;
  if (mate !== undefined) return `${sign * mate < 0 ? "−" : ""}#${Math.abs(mate)}`;
  if (tablebase) return sign * value > 0 ? "+TB" : "−TB";
  const pawns = (sign * (cp ?? 0)) / 100;
  return (pawns >= 0 ? "+" : "−") + Math.abs(pawns).toFixed(2);
}

/** Formats a share in percent. */
export const percent = (share) => (share > 0 && share < 0.005 ? "< 1\u00a0%" : `${Math.round(100 * share)}\u00a0%`);

// Scores in words and as shares, from White's view.

/** Win, draw and loss as White sees them. */
export const whites = ({ win, draw, loss }, turn) => (turn === "white" ? [win, draw, loss] : [loss, draw, win]);

/** What White can expect to score, in 0…1. */
export const expected = ([win, draw]) => win + draw / 2;

/** A score as chess programs write it. */
export function scoreText({ cp, mate, tablebase, value }, turn) {
  const sign = turn === "white" ? 1 : -1;
  if (mate !== undefined) return `${sign * mate < 0 ? "−" : ""}#${Math.abs(mate)}`;
  if (tablebase) return sign * value > 0 ? "+TB" : "−TB";
  const pawns = (sign * (cp ?? 0)) / 100;
  return (pawns >= 0 ? "+" : "−") + Math.abs(pawns).toFixed(2);
}

/** A share in per cent. */
export const percent = (share) => (share > 0 && share < 0.005 ? "< 1\u00a0%" : `${Math.round(100 * share)}\u00a0%`);

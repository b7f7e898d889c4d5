// The judge of a review: requests name the server's or none, or contain the scores of Stockfish in this browser.

import { isAbort, post } from "./api.js";
import { trouble } from "./dom.js";
import { Game } from "./game.js";
import { judge } from "./judging.js";
import { t } from "./messages.js";

/** Returns the game of a report. */
export function gameOf(report) {
  const game = new Game(report.start.fen);
  for (const { san } of report.plies) game.play(game.legal(san));
  return game;
}

/** Returns the judge of a complete request. */
export const judgeOf = (request) => (request.judged ? "browser" : request.judge);

/** Reviews a move in a position, with the settings of a request and a judge; returns the move's report. */
export async function reviewMove(fen, san, settings, by, signal, tags = []) {
  const lines = [["SetUp", "1"], ["FEN", fen], ...tags].map(([name, value]) => `[${name} "${value}"]\n`);
  const request = await judged({ ...settings, pgn: `${lines.join("")}\n${san} *` }, by, signal);
  const { games } = await post("/v1/review", request, signal);
  return games[0].report.plies[0];
}

/** Completes a request for a review by a judge: `server`, `browser` or `none`. In the browser, `begin` is called with
 * the report, which contains only the moves so far, and `hear` with each score. If Stockfish fails there, the review
 * goes on without a judge. */
export async function judged(request, by, signal, begin = () => {}, hear = () => {}) {
  if (by !== "browser") return { ...request, judge: by };
  const { report } = await post("/v1/review/outline", request, signal);
  begin(report);
  try {
    const scores = await judge([gameOf(report)], signal, hear);
    return { ...request, judged: scores };
  } catch (error) {
    if (isAbort(error)) throw error;
    trouble(t("Stockfish failed in this browser: {why}. The marks come from Tessera's own scores.", { why: error.message }));
    return { ...request, judge: "none" };
  }
}

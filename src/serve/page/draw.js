// The opponent's answer to the offer of a draw.

import { post } from "./api.js";
import { t } from "./messages.js";
import { network } from "./opponents.js";

/** Number of plies before which a draw needs a reason. */
const EARLY = 40;
/** A share of expected draws, and an expected score, that are reason enough. */
const DRAWISH = 0.75;
const WORSE = 0.35;

/** Returns the result probabilities, for the side to move, as the opponent sees them: those of players with its rating
 * or, without one, those of a search. */
async function chances(game, opponent, signal) {
  if (opponent.elo && network(opponent.network)?.has_value) {
    const request = { ...game.request(), network: opponent.network, elo: Number(opponent.elo) };
    return (await post("/v1/eval", request, signal)).wdl;
  }
  const request = { ...game.request(), agent: "mcts", limits: { movetime_ms: 1000 } };
  return (await post("/v1/move", request, signal)).lines[0].wdl;
}

/** Decides whether the opponent, who plays `side`, accepts a draw; `text` says why not. */
export async function answerDraw(game, opponent, side, signal) {
  const { win, draw, loss } = await chances(game, opponent, signal);
  const score = draw / 2 + (game.position.turn === side ? win : loss);
  if (score > 0.5) return { isAccepted: false, text: t("Your opponent declines the draw and hopes for more.") };
  const isAccepted = game.moves.length >= EARLY || draw >= DRAWISH || score <= WORSE;
  return { isAccepted, text: t("Your opponent declines: it is too early for a draw.") };
}

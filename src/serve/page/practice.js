// The tab My mistakes: better moves than those of one's own games have to be found.

import { isAbort } from "./api.js";
import { Board } from "./board.js";
import { analyse, confirmed, element, finder, playFrom, trouble } from "./dom.js";
import { fenOf } from "./fen.js";
import { Game, numbered } from "./game.js";
import { chosenJudge } from "./judges.js";
import { locale, t } from "./messages.js";
import * as mistakes from "./mistakes.js";
import { reviewMove } from "./review_judged.js";
import { isBad, written } from "./review_parts.js";
import { save } from "./store.js";

/** Nodes for each position where Tessera itself is the judge. */
const NODES = 800;

const at = finder("mistakes");
const board = new Board(at("board"), { play: attempt, typed: at("typed") });
const dates = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });

/** The mistake on the board, if any, whether it has been tried, and whether it is solved. */
let mistake;
let isTried = false;
let isOver = false;
let waiting;

const say = (text) => (at("status").textContent = text);
const tell = (...parts) => at("told").replaceChildren(...parts.filter(Boolean).map((part) => (typeof part === "string" ? element("p", { textContent: part }) : part)));
/** Returns a paragraph for a reason, which the server has written in English. */
const reason = (textContent) => element("p", { textContent, lang: "en" });

/** Shows a position; the player may move if `isOpen`. */
function show(game, isOpen) {
  const { turn } = new Game(mistake?.fen).position;
  board.show(game, { orientation: turn, mine: isOpen ? turn : undefined, why: t("Press Next.") });
}

function drawCount() {
  const { all, due, learned } = mistakes.count();
  at("count").textContent = t("{due} to solve now, {all} kept, {learned} learned.", { due, all, learned });
}

/** Shows the next mistake. */
function showNext() {
  waiting?.abort();
  mistake = mistakes.next();
  [isTried, isOver] = [false, false];
  for (const name of ["answer", "analyse", "from", "forget"]) at(name).disabled = !mistake;
  at("next").disabled = true;
  drawCount();
  const game = new Game(mistake?.fen);
  show(game, Boolean(mistake));
  if (mistake) {
    const values = { move: mistake.played };
    const isWhite = game.position.turn === "white";
    say(isWhite ? t("White to move: find a better move than {move}.", values) : t("Black to move: find a better move than {move}.", values));
    return tell(mistake.game);
  }
  const { all, soonest } = mistakes.count();
  say(all ? t("Nothing to solve now.") : t("No mistakes are kept yet."));
  const back = Number.isFinite(soonest) ? t("The next one comes back on {date}.", { date: dates.format(soonest) }) : t("All of them are learned.");
  tell(all ? back : t("Review a game and name your side: your mistakes then come here, and come back until you know them."));
}

/** Ends a mistake: decides when it comes back, and shows why the solution is better. */
function finish(isRight, ...texts) {
  mistakes.schedule(mistake, isRight && !isTried);
  [isTried, isOver] = [true, true];
  at("answer").disabled = true;
  at("next").disabled = false;
  drawCount();
  tell(...texts);
}

function solution() {
  const { fen, best, facts } = mistake;
  const { turn, fullmoves } = new Game(fen).position;
  const line = numbered(best.moves.map(({ san }) => san), turn, fullmoves);
  return [t("The best line is {line}: {score} from White's view.", { line, score: written(best.evaluation) }), ...facts.map(reason)];
}

async function attempt(move) {
  const own = mistake;
  const game = new Game(own.fen);
  const { uci, san } = game.play(move);
  show(game, false);
  if (uci === own.best.moves[0].uci) {
    say(t("{move} is the best move.", { move: san }));
    return finish(true, ...solution());
  }
  try {
    const isPlayed = san === own.played;
    if (!isPlayed) say(t("{move} is being looked at.", { move: san }));
    waiting = new AbortController();
    const tried = isPlayed ? undefined : await reviewMove(own.fen, san, { nodes: NODES }, chosenJudge(), waiting.signal);
    if (own !== mistake || isOver) return;
    if (tried && !isBad(tried)) {
      say(t("{move} is good as well.", { move: san }));
      return finish(true, ...solution());
    }
    isTried = true;
    show(new Game(own.fen), true);
    say(isPlayed ? t("{move} was played in the game. Find another move.", { move: san }) : t("{move} is not good enough. Find another move.", { move: san }));
    tell(...(tried?.reasons.played.map(({ text }) => reason(text)) ?? []));
  } catch (error) {
    if (isAbort(error)) return;
    show(new Game(own.fen), true);
    say(t("The move could not be looked at."));
    trouble(error.message, () => attempt(move));
  }
}

at("answer").addEventListener("click", () => {
  waiting?.abort();
  const { fen, best } = mistake;
  show(new Game(fen), false);
  board.arrows([{ uci: best.moves[0].uci, share: 0.7 }]);
  say(t("The best move is {move}.", { move: best.moves[0].san }));
  finish(false, ...solution());
});
at("next").addEventListener("click", showNext);
at("from").addEventListener("click", () => playFrom(fenOf(board.game.position)));
at("analyse").addEventListener("click", () => analyse(mistake.fen, 0, board.game.moves.map(({ uci }) => uci)));
at("forget").addEventListener("click", async () => {
  const own = mistake;
  if (!(await confirmed(t("Delete this mistake? It does not come back."), t("Delete")))) return;
  mistakes.remove(own);
  showNext();
});
at("save").addEventListener("click", () => save(mistakes.csv(), "mistakes.csv", "text/csv"));

export const press = () => false;

/** Shows the tab's link once there are mistakes. */
const showLink = () => (document.querySelector('nav a[href="#mistakes"]').hidden = !mistakes.count().all);
addEventListener("mistakes", showLink);
// Another window has kept or deleted mistakes.
addEventListener("storage", showLink);

export const begin = showLink;

export function enter() {
  if (!mistake || isOver) showNext();
  board.redraw();
}

export const leave = () => {};

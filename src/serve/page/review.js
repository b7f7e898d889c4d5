// A reviewed game: each ply as it is searched, followed by marks, reasons, and the moves that
// people of each rating play.

import { ServerError, html, isAbort, stream } from "./api.js";
import { analyse, element, offer as offerField, playFrom, trouble } from "./dom.js";
import { fenOf } from "./fen.js";
import { chosenJudge, describeJudge } from "./judges.js";
import { chances } from "./judging.js";
import { plural, t } from "./messages.js";
import * as mistakes from "./mistakes.js";
import { load, offer, showForm, showWaiting, whenAsked } from "./review_games.js";
import { gameOf, judgeOf, judged } from "./review_judged.js";
import { isBad, openingOf, player, scoresOf, titleOf } from "./review_parts.js";
import { tryAgain } from "./review_retry.js";
import { canShare, linkTo, showLink } from "./review_share.js";
import { actions, at, board, drawAll, drawGraph, keys, placeOnBoard, state } from "./review_view.js";
import { openSettings } from "./settings.js";
import { recallHere, rememberHere, save } from "./store.js";
import { Tree } from "./tree.js";

/** The key under which the last request is stored, for a reload. */
const KEY = "review";

/** The pending review and its request. */
let running;
let asked;
/** The reviewed game as PGN. */
let annotated;
/** Its link, once it is shared. */
let link;
let isDrawing = false;

const say = (text) => (at("status").textContent = text);

/** Requests the review of a game, leaving the previous review. */
async function review(request) {
  running?.abort();
  const own = (running = new AbortController());
  let [isBegun, isWhole] = [false, false];
  trouble("");
  showWaiting(true);
  try {
    let whole = request;
    if (!judgeOf(request)) {
      const begin = (report) => {
        begun(report, true);
        isBegun = true;
        keep(request);
      };
      const hear = (score) => running === own && judgedOne(score);
      whole = await judged(request, chosenJudge(), own.signal, begin, hear);
    }
    for await (const update of stream("/v1/review", whole, own.signal)) {
      if (running !== own) return;
      if (update.event === "error") throw new ServerError(update.status, update);
      if (update.event === "game") {
        if (!isBegun) begun(update.report);
        keep(whole);
      }
      if (update.event === "ply") searched(update);
      if (update.event === "people") people(update);
      if (update.event === "review") finished(update);
      isWhole ||= update.event === "result";
    }
    if (!isWhole) throw new Error(t("the server broke it off. Try again"));
  } catch (error) {
    if (running !== own || isAbort(error)) return;
    trouble(t("The game was not reviewed: {why}", { why: error.message }), () => review(request));
    if (state.report && !state.isDone) close();
  } finally {
    if (running === own) showWaiting(false);
  }
}

/** Shows a game whose review begins. */
function begun(report, isByBrowser) {
  state.trying?.leave();
  const game = gameOf(report);
  report.plies.forEach(({ clock }, ply) => (game.moves[ply].clock = clock ?? undefined));
  Object.assign(state, { report, game, tree: Tree.of(game), at: 0, line: null, view: report.side ?? "white", isDone: false, trying: undefined });
  showForm(false);
  at("shown").hidden = false;
  at("progress").hidden = false;
  at("progress").removeAttribute("value");
  annotated = link = undefined;
  at("title").textContent = titleOf(report);
  at("opening").textContent = openingOf(report);
  at("scores").textContent = "";
  for (const name of ["save", "pgn", "share"]) at(name).disabled = true;
  at("another").textContent = t("Cancel");
  say(isByBrowser ? t("Stockfish searches the positions in this browser.") : t("Searching the positions."));
  drawAll();
  board.redraw();
}

/** Stores a request for a reload and for other forms of the report. */
function keep(request) {
  asked = request;
  rememberHere(KEY, request);
}

/** Shows a score of Stockfish in this browser. */
function judgedOne({ place, score, done, all }) {
  const win = 50 + 50 * chances(score.evaluation);
  const isWhite = state.game.positions[place].turn === "white";
  searched({ ply: place, win: isWhite ? win : 100 - win, searched: done, positions: all });
}

function searched({ ply, win, searched, positions }) {
  const place = ply ? state.report.plies[ply - 1] : state.report.start;
  place.win = win;
  Object.assign(at("progress"), { max: positions, value: searched });
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    if (state.report) drawGraph();
  });
}

function people({ asked, moves }) {
  if (!asked) say(t("Asking how people play."));
  Object.assign(at("progress"), { max: moves, value: asked });
}

function finished({ report, pgn }) {
  Object.assign(state, { report, line: null, isDone: true });
  annotated = pgn;
  if (report.side) keepMistakes(report.side);
  at("progress").hidden = true;
  at("scores").replaceChildren(...scoresOf(report));
  for (const name of ["save", "pgn", "share"]) at(name).disabled = false;
  at("another").textContent = t("Another game");
  const count = report.plies.filter((ply) => isBad(ply) && (!report.side || ply.side === report.side)).length;
  const told = plural(count, t("{count} move to look at.", { count }), t("{count} moves to look at.", { count }));
  say(`${count ? told : t("No moves to look at.")} `);
  at("status").append(element("span", { lang: "en", textContent: report.game.warnings.join(" ") }));
  drawAll();
}

/** Keeps the mistakes of a side for the tab My mistakes. */
function keepMistakes(side) {
  mistakes.add(state.report, side);
  dispatchEvent(new CustomEvent("mistakes"));
}

/** Leaves the review and returns to the choice of a game. */
function close() {
  running?.abort();
  running = undefined;
  rememberHere(KEY, undefined);
  state.trying?.leave();
  Object.assign(state, { report: undefined, trying: undefined });
  at("shown").hidden = true;
  say("");
  showForm(true);
  showWaiting(false);
}

/** Returns a file name for this review. */
function fileName(end) {
  const words = `${player(state.report, "white")}-${player(state.report, "black")}`.toLowerCase();
  return `review-${words.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "")}.${end}`;
}

async function savePage() {
  const name = fileName("html");
  at("save").disabled = true;
  try {
    save(await html("/v1/review", asked), name, "text/html");
  } catch (error) {
    trouble(t("The report was not saved: {why}", { why: error.message }), savePage);
  } finally {
    at("save").disabled = false;
  }
}

async function share() {
  const { report } = state;
  at("share").disabled = true;
  try {
    const own = link ?? (await linkTo(asked));
    if (state.report !== report) return;
    link = own;
    showLink(link);
  } catch (error) {
    trouble(t("The review was not shared: {why}", { why: error.message }), share);
  } finally {
    at("share").disabled = false;
  }
}

whenAsked(review);
addEventListener("review-choose", close);
actions.tryAgain = (ply) => tryAgain(ply, { nodes: asked.nodes, elo: asked.elo }, judgeOf(asked));
actions.practise = (side) => {
  keepMistakes(side);
  location.hash = "#mistakes";
};
at("another").addEventListener("click", close);
at("save").addEventListener("click", savePage);
at("share").addEventListener("click", share);
at("pgn").addEventListener("click", () => save(annotated, fileName("pgn")));
at("from").addEventListener("click", () => playFrom(fenOf(board.game.position)));
at("analyse").addEventListener("click", () => {
  const { ply, line } = placeOnBoard() ?? {};
  if (ply === undefined) analyse(fenOf(board.game.position));
  else analyse(annotated ?? asked.pgn, ply, line);
});

export { load };

export function press(key) {
  if (!state.report || !(key in keys)) return false;
  keys[key]();
  return true;
}

/** Shows the judge; Tessera's own nodes matter only without one. */
function showJudge() {
  at("judge").textContent = describeJudge();
  offerField(at("nodes"), chosenJudge() === "none");
}
at("change").addEventListener("click", () => openSettings({ judge: chosenJudge() }));
addEventListener("settings", showJudge);

export function begin() {
  showJudge();
  at("share").hidden = !canShare();
  const request = recallHere(KEY);
  if (typeof request?.pgn !== "string") return;
  offer(request.pgn);
  review(request);
}

export function enter() {
  board.redraw();
  if (!state.report) showForm(true);
}

export const leave = () => {};

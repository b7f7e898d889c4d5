// The moves that people play, by rating.

import { isAbort, post } from "./api.js";
import { chart, key } from "./chart.js";
import { element, finder, settled, trouble } from "./dom.js";
import { t } from "./messages.js";
import { network } from "./opponents.js";
import { percent } from "./score.js";
import { study, game, play, redraw } from "./study.js";

/** Number of moves that get a line of their own, if enough people of some rating play them. */
const LINES = 6;
const LEAST = 0.02;
/** Number of milliseconds that a position stays on the board before it is requested. */
const WAIT = 150;
/** The rating above which most players in the training games are masters. */
const MASTERS = 2200;

const at = finder("people");
let waiting;

/** Returns the share at a rating, interpolated between the requested ratings. */
function shareAt({ ratings, shares }, rating) {
  const above = ratings.findIndex((it) => it >= rating);
  if (above <= 0) return shares.at(above === 0 ? 0 : -1);
  const part = (rating - ratings[above - 1]) / (ratings[above] - ratings[above - 1]);
  return shares[above - 1] * (1 - part) + shares[above] * part;
}

const ask = settled(async (node) => {
  waiting?.abort();
  waiting = new AbortController();
  try {
    node.people = await post("/v1/people", game().request(), waiting.signal);
    if (node === study.node) draw();
  } catch (error) {
    if (!isAbort(error)) trouble(error.message, redraw);
  }
}, WAIT);

/** Shows the position on the board, requesting its data if necessary. */
export function show() {
  const { node } = study;
  const isOver = Boolean(game().forcedEnding());
  const reads = network("human")?.ratings;
  const none = reads ? (isOver ? t("The game is over here.") : "") : t("No network here knows what people play.");
  at("none").textContent = none;
  at("none").hidden = !none;
  for (const name of ["chart", "moves", "note"]) at(name).hidden = Boolean(none);
  at("rating").closest(".rated").hidden = Boolean(none);
  if (none) return;
  if (node.people) draw();
  else ask(node);
}

/** Returns what limits the shares at a rating. */
function note(rating) {
  if (!study.node.people.corrected) return t("This network sees mates in one and hanging pieces alike at every rating.");
  return rating > MASTERS ? t("Above {rating}, the shares are learned from masters' games; none are given above 2600.", { rating: MASTERS }) : "";
}

function draw() {
  const { ratings } = study.node.people;
  const moves = study.node.people.moves.slice(0, LINES).filter(({ shares }) => Math.max(...shares) >= LEAST);
  const rating = Number(at("rating").value);
  const lines = moves.map(({ san, shares }) => ({ name: san, points: ratings.map((it, index) => [it, shares[index]]) }));
  const most = Math.max(...moves.flatMap(({ shares }) => shares));
  const top = Math.min(1, Math.ceil(most * 5 + 0.25) / 5);
  const share = (value) => `${Math.round(100 * value)} %`;
  const drawing = chart(lines, {
    x: { from: ratings[0], to: ratings.at(-1), ticks: [600, 1000, 1400, 1800, 2200, 2600], label: t("rating") },
    y: { from: 0, to: top, ticks: [0, top / 2, top], format: share },
    marked: rating,
    words: t("The share of players who play each move, from 600 to 2600"),
  });
  at("chart").replaceChildren(drawing);
  at("note").textContent = note(rating);
  const shown = moves.map((move, index) => ({ ...move, index, share: shareAt({ ratings, shares: move.shares }, rating) }));
  shown.sort((one, other) => other.share - one.share);
  at("moves").replaceChildren(...shown.map(({ san, uci, index, share }) => {
    const button = element("button", { type: "button" }, key(index), element("b", { textContent: san }), element("span", { textContent: percent(share) }));
    button.addEventListener("click", () => play(game().legal(uci)));
    return element("li", {}, button);
  }));
}

at("rating").addEventListener("input", () => study.node.people && draw());

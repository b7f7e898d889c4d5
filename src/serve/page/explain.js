// How a network sees the position on the board.

import { html, isAbort, post } from "./api.js";
import { Board } from "./board.js";
import { chart } from "./chart.js";
import { element, finder, playFrom, settled, trouble } from "./dom.js";
import * as compare from "./compare.js";
import { fenOf } from "./fen.js";
import * as imagine from "./imagine.js";
import { message, t } from "./messages.js";
import { listNetworks, network } from "./opponents.js";
import { percent } from "./score.js";
import { save } from "./store.js";
import * as studying from "./study.js";

/** Number of milliseconds that a position stays on the board before it is explained. */
const WAIT = 250;
/** The family whose networks have no attention maps. */
const WITHOUT_ATTENTION = "diffusion";
/** Number of rows in a table, and of lines in a chart. */
const ROWS = 8;
const LINES = 5;

const { study } = studying;
const at = finder("explain");
const form = at("form");
const board = new Board(at("board"), { select: look });

/** The square whose attention is shown. */
let square = "e4";
let isShown = false;
/** Responses for the position on the board, by request. */
let answers = new Map();
let waiting;

const nameOf = (index) => "abcdefgh"[index % 8] + (1 + (index >> 3));
const indexOf = (name) => name.charCodeAt(0) - 97 + 8 * (Number(name[1]) - 1);
const value = (q) => `${q < 0 ? "−" : "+"}${Math.abs(q).toFixed(2)}`;
const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(Math.round(100 * value))}\u00a0%`;

function draw() {
  if (!isShown) return;
  board.show(studying.game(), { orientation: study.view, isPlain: true });
  answers = new Map();
  compare.show(studying.game());
  imagine.show(studying.game());
  explainSoon();
}

/** Sends a request, unless it has been sent already. */
async function asked(path, body) {
  const question = path + JSON.stringify(body);
  const current = answers;
  if (!current.has(question)) current.set(question, post(path, body, waiting.signal));
  try {
    return await current.get(question);
  } catch (error) {
    // It can be asked again.
    current.delete(question);
    throw error;
  }
}

const explainSoon = settled(explain, WAIT);

/** Returns the name of the chosen picture. */
const viewed = () => form.elements[form.elements.view.value === "network" ? "inside" : "view"].value;

async function explain() {
  if (!isShown) return;
  waiting?.abort();
  waiting = new AbortController();
  const { network: name, elo } = Object.fromEntries(new FormData(form));
  const view = viewed();
  const isAttention = view === "attention";
  const reads = network(name)?.ratings;
  for (const it of form.querySelectorAll(".network")) it.hidden = form.elements.view.value !== "network";
  for (const it of form.querySelectorAll(".attention")) it.hidden = !isAttention;
  at("rated").hidden = !reads || isAttention;
  const ending = studying.game().forcedEnding();
  board.light(new Array(64).fill(0));
  board.arrows([]);
  at("figure").replaceChildren();
  at("legend").textContent = "";
  at("values").textContent = "";
  at("save").disabled = !name || Boolean(ending);
  if (!name) return say(t("No network here can be looked into."));
  if (ending) return say(t("The game is over: {why}. There is nothing to explain.", { why: t(ending.why) }));
  if (isAttention && network(name).family === WITHOUT_ATTENTION) return say(t("This network has no attention: choose another picture."));
  const request = { ...studying.game().request(), network: name };
  const current = answers;
  try {
    if (isAttention) return showAttention(await attention(request), current);
    say(t("The network is being looked into…"));
    const question = { ...request, attention: false, ...(reads && { elo: Number(elo) }) };
    const { explanation } = await asked("/v1/explain", question);
    if (current === answers && viewed() === view) {
      views[view](explanation);
      if (view === "layers") showValues(explanation);
    }
    trouble("");
  } catch (error) {
    if (isAbort(error)) return;
    say("");
    trouble(error.message, explain);
  }
}

/** Shows the position's value beside the values after its best moves. */
function showValues({ evaluation, moves, lookahead: { best, gap, is_large: isLarge, usual_gap: usual } }) {
  const after = best.map((index) => `${moves[index].san}\u00a0${value(moves[index].q)}`).join(", ");
  const values = { difference: Math.abs(gap).toFixed(2), usual: usual.toFixed(2) };
  const doubt = gap > 0
    ? t("The network disagrees with itself: it expects {difference} more here than after its best move. Usually the difference is {usual}.", values)
    : t("The network disagrees with itself: it expects {difference} less here than after its best move. Usually the difference is {usual}.", values);
  const expected = t("Expected result {value}, after the best moves {after}.", { value: value(evaluation.q), after });
  at("values").textContent = isLarge ? `${expected} ${doubt}` : expected;
}

const say = (text) => (at("status").textContent = text);

// Attention

function attention(request) {
  const { layer, head } = form.elements;
  return asked("/v1/attention", { ...request, layer: Number(layer.value), head: Number(head.value) });
}

function showAttention(seen, current) {
  if (current !== answers || viewed() !== "attention") return;
  const { layer, layers, head, heads } = seen;
  form.elements.layer.max = layers;
  form.elements.head.max = heads;
  const weights = seen.weights[indexOf(square)];
  board.light(weights);
  const squares = weights.map((weight, index) => [weight, nameOf(index)]).sort(([one], [other]) => other - one);
  const most = squares.slice(0, 4).map(([weight, name]) => `${name} ${percent(weight)}`);
  say(t("From {square} the head looks at {squares}.", { square, squares: most.join(", ") }));
  at("legend").textContent = t("Layer {layer} of {layers}, head {head} of {heads}. Click a square to see where the head looks from there.", { layer, layers, head, heads });
  trouble("");
}

/** Shows where a square attends. */
function look(name) {
  square = name;
  if (viewed() === "attention") explain();
}

// Pictures

const chosen = ({ moves, chosen }) => moves[chosen];
const WHITE = {
  p: message("White's pawn on {square}"), n: message("White's knight on {square}"), b: message("White's bishop on {square}"),
  r: message("White's rook on {square}"), q: message("White's queen on {square}"), k: message("White's king on {square}"),
};
const BLACK = {
  p: message("Black's pawn on {square}"), n: message("Black's knight on {square}"), b: message("Black's bishop on {square}"),
  r: message("Black's rook on {square}"), q: message("Black's queen on {square}"), k: message("Black's king on {square}"),
};

function table(head, rows) {
  const cells = (kind, texts) => texts.map((textContent) => element(kind, { textContent }));
  const made = rows.map((row) => element("tr", {}, ...cells("td", row)));
  return element("table", {}, element("tr", {}, ...cells("th", head)), ...made);
}

/** Says in words which pieces matter most; they are sorted by their worth. */
function inWords({ occlusion: { q } }, worth) {
  const isWhite = studying.game().position.turn === "white";
  const chances = (q) => ({ share: percent((1 + q) / 2) });
  const told = [isWhite ? t("White is to move and can expect {share} of the points.", chances(q)) : t("Black is to move and can expect {share} of the points.", chances(q))];
  const own = worth.find((it) => it.isWhite === isWhite && it.worth > 0);
  if (own) told.push(t("{piece} matters most: without it, {share} would remain.", { piece: own.name, ...chances(own.q) }));
  const other = worth.find((it) => it.isWhite !== isWhite && it.worth < 0);
  if (other) told.push(t("{piece} is the strongest on the other side: without it, {share} could be expected.", { piece: other.name, ...chances(other.q) }));
  return told.join(" ");
}

const views = {
  /** Shows how much the value falls without each piece. */
  pieces(explanation) {
    const { q, pieces } = explanation.occlusion;
    const worth = pieces.filter((it) => it.q !== null).map((it) => {
      const isWhite = it.piece === it.piece.toUpperCase();
      const name = t((isWhite ? WHITE : BLACK)[it.piece.toLowerCase()], { square: nameOf(it.square) });
      return { ...it, isWhite, name, worth: (q - it.q) / 2 };
    });
    const weights = new Array(64).fill(0);
    for (const it of worth) weights[it.square] = it.worth;
    board.light(weights);
    worth.sort((one, other) => Math.abs(other.worth) - Math.abs(one.worth));
    say(inWords(explanation, worth));
    at("legend").textContent = t("Each piece is removed in turn. Red: the side to move would expect to score less without it. Blue: more.");
    const rows = worth.slice(0, ROWS).map((it) => [it.name, signed(it.worth)]);
    at("figure").replaceChildren(table([t("piece"), t("worth in expected score")], rows));
  },

  /** Shows the contribution of each square to the move. */
  squares(explanation) {
    const { squares } = explanation.gradients.move;
    const { san, uci } = chosen(explanation);
    board.light(squares);
    board.arrows([{ uci, share: 0.5 }]);
    say(t("The squares that speak for {move}.", { move: san }));
    at("legend").textContent = t("Red squares speak for the move, blue ones against it, as the network weighs them.");
    const rows = squares.map((value, index) => [nameOf(index), value]).sort(([, one], [, other]) => Math.abs(other) - Math.abs(one));
    at("figure").replaceChildren(table([t("square"), t("weight")], rows.slice(0, ROWS).map(([name, value]) => [name, value.toFixed(2)])));
  },

  /** Shows the probabilities of moves after each layer. */
  layers(explanation) {
    const { lens, moves } = explanation;
    const best = moves.map(({ san, uci, prior }, index) => ({ san, uci, prior, index })).sort((one, other) => other.prior - one.prior).slice(0, LINES);
    board.arrows(best.map(({ uci, prior }) => ({ uci, share: prior })));
    say(t("The network's first thought is {move}, at {share}.", { move: best[0].san, share: percent(best[0].prior) }));
    if (!lens) {
      at("legend").textContent = t("No lens belongs to this network: moves can only be read off after its last layer.");
      return;
    }
    const lines = best.map(({ san, index }) => ({ name: san, points: lens.layers.map(({ layer, policy }) => [layer, policy[index]]) }));
    const layers = lens.layers.map(({ layer }) => layer);
    const usual = (place) => lens.layers.at(place).usual.divergence.toFixed(2);
    at("legend").textContent = t("The probability of each move as a lens, fitted to this network, reads it off after each layer. The earlier the layer, the rougher the reading: in other games it is {first} nats from the final probabilities after the embedding, and {last} before the last layer.", { first: usual(0), last: usual(-2) });
    at("figure").replaceChildren(chart(lines, {
      x: { from: layers[0], to: layers.at(-1), ticks: layers, label: t("layer") },
      y: { from: 0, to: 1, ticks: [0, 0.5, 1], format: (value) => `${100 * value} %` },
      words: t("The probability of each move after each layer"),
    }));
  },
};

form.addEventListener("input", explainSoon);
form.addEventListener("submit", (event) => event.preventDefault());
at("save").addEventListener("click", saveAll);
async function saveAll() {
  say(t("The explanation is being written…"));
  try {
    const page = await html("/v1/explain", { ...studying.game().request(), network: form.elements.network.value });
    save(page, "explanation.html", "text/html");
    say(t("The explanation is saved: a page of its own, with every layer and head."));
    trouble("");
  } catch (error) {
    say("");
    trouble(error.message, saveAll);
  }
}
at("previous").addEventListener("click", () => studying.step(-1));
at("next").addEventListener("click", () => studying.step(1));
at("flip").addEventListener("click", studying.flip);
at("play").addEventListener("click", () => playFrom(fenOf(study.node.position)));
at("analyse").addEventListener("click", () => (location.hash = "#analyse"));

export const { press } = studying;

export function begin() {
  const hasEyes = ({ family }) => family !== "gpt" && family !== "none";
  listNetworks(form.elements.network, hasEyes, "main");
  compare.begin();
  imagine.begin();
  studying.watch(draw);
  const isPossible = form.elements.network.options.length > 0;
  document.querySelector('nav a[href="#explain"]').hidden = !isPossible;
}

/** Opens the tab; the URL may contain a position. */
export function enter(fen) {
  isShown = true;
  studying.open(fen);
  draw();
  board.redraw();
  imagine.redraw();
}

export function leave() {
  isShown = false;
  waiting?.abort();
}

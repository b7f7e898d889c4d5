// Stockfish's line and score beside Tessera's, in Analyse.

import { post } from "./api.js";
import { finder, trouble } from "./dom.js";
import { fenOf } from "./fen.js";
import { Game, INITIAL_FEN } from "./game.js";
import { missing, otherJudge } from "./judges.js";
import { showLines } from "./lines.js";
import { number, t } from "./messages.js";
import { server } from "./opponents.js";
import { Engine, script } from "./stockfish.js";
import { recall, remember } from "./store.js";

const at = finder("analyse");
const isWanted = at("beside");
/** Nodes of the first searches and of the last one. */
const ROUNDS = [50_000, 250_000, 1_000_000];

let engine;
/** The search in progress, and the promise that settles once it has ended. */
let running;
let ended = Promise.resolve();
let retry;

const score = ({ centipawns, mate }) => (mate === undefined ? { cp: centipawns } : { mate });

/** Returns the moves of a line in both notations. */
function played(position, line) {
  const game = new Game(fenOf(position));
  return line.map((uci) => game.play(game.legal(uci))).map(({ uci, san }) => ({ uci, san }));
}

/** Shows what Stockfish has found in a position; `choose` is called with the moves of a clicked line. */
export function show(node, choose) {
  const { judged, position } = node;
  const { turn, fullmoves } = position;
  at("judge").textContent = judged ? t("{name}, {nodes} nodes", { name: judged.name, nodes: number(judged.nodes) }) : missing() ?? "";
  showLines(at("judged"), { lines: judged?.lines ?? [], turn }, fullmoves, choose);
}

async function searchHere(game, node, signal, hear) {
  if (!engine) {
    engine = new Engine(await script());
    await engine.begin();
    await engine.prepare({ lines: 1 });
  }
  if (signal.aborted) return;
  const { fen = INITIAL_FEN, moves } = game.request();
  await engine.search({ start: fen, moves, nodes: ROUNDS.at(-1) }, ([best]) => {
    const lines = [{ score: score(best.evaluation), moves: played(node.position, best.line) }];
    hear({ name: engine.name, nodes: best.nodes, lines });
  });
}

async function searchThere(game, signal, hear) {
  for (const nodes of ROUNDS.map((nodes) => Math.min(nodes, server.limits.nodes))) {
    const { judge, evaluation, moves } = await post("/v1/judge", { ...game.request(), nodes }, signal);
    if (evaluation) hear({ name: judge, nodes, lines: [{ score: score(evaluation), moves }] });
  }
}

/** Searches a position, the last one of a game, if that is wanted; `draw` is called as the line grows. */
export function run(game, node, draw) {
  stop();
  if (!isWanted.checked || node.judged?.isWhole) return;
  const own = (running = new AbortController());
  const { signal } = own;
  const hear = (judged) => {
    // A search that begins again is shown once it knows more.
    if (signal.aborted || judged.nodes < node.judged?.nodes) return;
    node.judged = judged;
    draw();
  };
  ended = ended.then(async () => {
    if (signal.aborted) return;
    try {
      if (otherJudge() === "browser") await searchHere(game, node, signal, hear);
      else await searchThere(game, signal, hear);
      if (node.judged && !signal.aborted) node.judged.isWhole = true;
    } catch (error) {
      if (signal.aborted) return;
      leave();
      trouble(t("Stockfish failed: {why}", { why: error.message }), retry);
    }
  });
}

export function stop() {
  running?.abort();
  running = undefined;
  engine?.stop();
}

/** Ends the engine, which would otherwise keep its memory. */
export function leave() {
  stop();
  engine?.end();
  engine = undefined;
}

/** Prepares the switch; `restart` is called when it is turned, and to try again. */
export function begin(restart) {
  retry = restart;
  isWanted.disabled = !otherJudge();
  isWanted.checked = Boolean(otherJudge()) && recall("beside", false);
  isWanted.addEventListener("change", () => {
    remember("beside", isWanted.checked);
    if (!isWanted.checked) leave();
    restart();
  });
}

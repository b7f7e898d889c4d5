// Games against the server's players.

import { isAbort, post } from "./api.js";
import { Board } from "./board.js";
import { Clock } from "./clock.js";
import { analyse, confirmed, finder, review, trouble } from "./dom.js";
import { Game, opposite } from "./game.js";
import { MoveList } from "./movelist.js";
import { openingOf } from "./openings.js";
import { asked, searches } from "./opponents.js";
import { listGames } from "./played.js";
import * as setup from "./setup.js";
import { play as sound, playMove } from "./sound.js";
import { keep, recall, remember } from "./store.js";
import { Tree } from "./tree.js";

/** Minimum time in milliseconds that an opponent's move takes. */
const PACE = 350;

const at = finder("play");
const board = new Board(at("board"), { play: playMine, typed: at("typed") });
const moves = new MoveList(at("moves"), { choose: ({ ply }) => step(ply) });
const clock = new Clock({ mine: at("mine"), theirs: at("theirs"), flag: lost });

/** The game: its settings, who plays which side, and its stage: `setup`, `playing` or `over`. */
let match = { game: new Game(), mine: "white", stage: "setup" };
/** The side at the bottom of the board, and the number of moves on the board. */
let view = "white";
let ply = 0;
/** The pending request for the opponent's move or for a hint. */
let waiting;

const say = (text) => (at("status").textContent = text);
const isLive = () => ply === match.game.moves.length;
const isMine = () => match.game.position.turn === match.mine;

// The display

function draw() {
  const { game, stage } = match;
  const shown = game.at(ply);
  const canMove = isLive() && stage !== "over" && isMine();
  board.show(shown, { orientation: view, mine: canMove ? match.mine : undefined, why: whyNot() });
  const tree = Tree.of(game);
  moves.show(tree, tree.at(ply));
  at("record").hidden = at("tools").hidden = stage === "setup";
  at("form").hidden = stage !== "setup";
  for (const name of ["back", "hint", "resign"]) at(name).hidden = stage !== "playing";
  for (const name of ["rematch", "review", "analyse"]) at(name).hidden = stage !== "over";
  at("back").disabled = game.moves.length === 0;
  at("hint").disabled = !canMove;
  nameOpening(shown);
}

/** Returns why no move can be made now. */
function whyNot() {
  if (match.stage === "over") return "The game is over: start a new one.";
  if (!isLive()) return "This is an earlier position: press End to go back to the game.";
  return match.stage === "setup" ? "Your opponent moves first: press Start game." : "It is your opponent's move.";
}

async function nameOpening(game) {
  const name = await openingOf(game);
  if (game === board.game) at("opening").textContent = name ?? "";
}

function seat() {
  at("theirs").firstElementChild.textContent = match.opponent?.name ?? "Opponent";
}

/** Goes to a position of the game. */
function step(to) {
  ply = Math.max(0, Math.min(match.game.moves.length, to));
  draw();
  say(status());
}

/** Returns the state of the game in words. */
function status() {
  const { game, mine, stage, why } = match;
  if (!isLive()) return "An earlier position: press End to go back to the game.";
  if (stage === "setup") return isMine() ? "Make a move to start." : "Your opponent moves first.";
  if (stage === "over") {
    const winner = { "1-0": "white", "0-1": "black" }[game.result];
    const outcome = winner ? (winner === mine ? "You win" : "You lose") : "A draw";
    return `${outcome}: ${why}. ${game.result}`;
  }
  if (!isMine()) return "Your opponent is thinking.";
  const last = game.moves.at(-1);
  const check = game.position.isCheck() ? " You are in check." : "";
  return `${last ? `Your opponent plays ${last.san}. ` : ""}Your move.${check}`;
}

// A game, from start to end

/** Shows the game that is being set up; the first move starts it. */
function prepare() {
  if (match.stage !== "setup") return;
  const settings = setup.chosen();
  const game = new Game(settings.fen);
  const mine = settings.color === "random" ? game.position.turn : settings.color;
  match = { ...settings, game, mine, stage: "setup" };
  [view, ply] = [mine, 0];
  clock.set(settings.minutes, settings.increment);
  seat();
  draw();
  say(status());
}

function start(settings, mine) {
  stop();
  const game = new Game(settings.fen);
  const { opponent } = settings;
  match = { ...settings, game, mine, stage: "playing" };
  [view, ply] = [mine, 0];
  game.tags = {
    Event: "Tessera",
    Site: location.host,
    Date: new Date().toISOString().slice(0, 10).replaceAll("-", "."),
    [mine === "white" ? "White" : "Black"]: "You",
    [mine === "white" ? "Black" : "White"]: `Tessera (${opponent.name.toLowerCase()})`,
  };
  if (opponent.elo) game.tags[mine === "white" ? "BlackElo" : "WhiteElo"] = String(opponent.elo);
  clock.set(settings.minutes, settings.increment);
  seat();
  sound("start");
}

function startChosen() {
  const settings = setup.chosen();
  const sides = ["white", "black"];
  start(settings, settings.color === "random" ? sides[Math.floor(2 * Math.random())] : settings.color);
  go();
}

/** Continues the game: shows whose turn it is and requests the opponent's move. */
function go() {
  const { game } = match;
  const ending = game.ending();
  if (ending) return end(ending.result, ending.why);
  ply = game.moves.length;
  draw();
  clock.run(isMine() ? "mine" : "theirs");
  say(status());
  store();
  if (!isMine()) theirMove();
}

function end(result, why) {
  stop();
  const { game } = match;
  match.stage = "over";
  game.result = result;
  game.tags.Termination = why;
  match.why = why;
  ply = game.moves.length;
  keep(Tree.of(game));
  draw();
  say(status());
  sound("end");
  store();
  listGames();
  at("rematch").focus({ preventScroll: true });
}

function lost(side) {
  const loser = side === "mine" ? match.mine : opposite(match.mine);
  const winner = opposite(loser);
  // FIDE Laws 6.9: if no series of legal moves lets the opponent mate, the game is drawn.
  if (match.game.position.hasInsufficientMaterial(winner)) {
    const name = winner === "white" ? "White" : "Black";
    return end("1/2-1/2", `time forfeit, but ${name} cannot mate`);
  }
  end(loser === "white" ? "0-1" : "1-0", "time forfeit");
}

function stop() {
  waiting?.abort();
  waiting = undefined;
  clock.stop();
}

// Moves

function playMine(move) {
  if (match.stage === "setup") start(match, match.mine);
  if (match.stage !== "playing" || !isMine()) return draw();
  waiting?.abort();
  clock.moved("mine");
  match.game.play(move);
  playMove(match.game);
  go();
}

function limits({ opponent }) {
  if (match.minutes) return { clock: clock.told("theirs") };
  return searches(opponent) && opponent.nodes ? { nodes: Number(opponent.nodes) } : {};
}

async function theirMove() {
  const { game, opponent } = match;
  const request = { ...game.request(), ...asked(opponent, opponent.elo), limits: limits(match) };
  const count = game.moves.length;
  const pause = new Promise((resolve) => setTimeout(resolve, PACE));
  const answer = await ask(request);
  await pause;
  const isWanted = match.game === game && match.stage === "playing" && game.moves.length === count;
  if (!answer || !isWanted) return;
  clock.moved("theirs");
  game.play(game.legal(answer.move.uci));
  playMove(game);
  go();
}

/** Requests a move; returns nothing if it is no longer wanted. */
async function ask(request) {
  waiting = new AbortController();
  trouble("");
  try {
    return await post("/v1/move", request, waiting.signal);
  } catch (error) {
    if (!isAbort(error)) {
      clock.stop();
      trouble(error.message);
      say("Your opponent cannot answer: take a move back, or start a new game.");
    }
  }
}

at("back").addEventListener("click", () => {
  stop();
  const { game, mine } = match;
  const count = game.moves.length;
  // Return to a position in which it is my turn.
  const wasMine = game.positions[count - 1]?.turn === mine;
  game.truncate(Math.max(0, count - (wasMine ? 1 : 2)));
  go();
});

at("hint").addEventListener("click", async () => {
  const { game } = match;
  const count = game.moves.length;
  const answer = await ask({ ...game.request(), agent: "mcts", limits: { movetime_ms: 1000 } });
  if (!answer?.move || match.game !== game || game.moves.length !== count || !isLive()) return;
  board.arrows([{ uci: answer.move.uci, share: 0.7 }], "blue");
  say(`Hint: ${answer.move.san}.`);
});

at("resign").addEventListener("click", async () => {
  const { game } = match;
  if (!(await confirmed("Resign this game?", "Resign"))) return;
  if (match.game === game && match.stage === "playing") end(match.mine === "white" ? "0-1" : "1-0", "resignation");
});

at("new").addEventListener("click", async () => {
  const isRunning = match.stage === "playing" && match.game.moves.length > 0;
  if (isRunning && !(await confirmed("Leave this game? It is kept as unfinished.", "New game"))) return;
  leaveGame();
});

/** Abandons the current game, which is saved, for a new one. */
function leaveGame() {
  stop();
  if (match.stage === "playing" && match.game.moves.length) keep(Tree.of(match.game));
  match.stage = "setup";
  remember("game", undefined);
  prepare();
  listGames();
}

at("rematch").addEventListener("click", () => {
  start(match, opposite(match.mine));
  go();
});
at("flip").addEventListener("click", flip);
at("analyse").addEventListener("click", () => analyse(Tree.of(match.game).pgn()));
at("review").addEventListener("click", () => review(Tree.of(match.game).pgn()));

function flip() {
  view = opposite(view);
  draw();
}

// The current game, which survives a reload

function store() {
  const { game, stage, mine, opponent, minutes, increment, why } = match;
  if (stage === "setup") return;
  const played = game.moves.map(({ uci }) => uci);
  const { fen, tags, result } = game;
  remember("game", { fen, tags, result, played, stage, mine, opponent, minutes, increment, why, left: clock.left });
}

/** Restores and shows a saved game; returns whether there was one. */
function restore() {
  const kept = recall("game");
  if (!kept) return false;
  try {
    const game = new Game(kept.fen, kept.tags);
    for (const uci of kept.played) game.play(game.legal(uci));
    game.result = kept.result;
    const { stage, mine, opponent, minutes, increment, why } = kept;
    match = { game, stage, mine, opponent, minutes, increment, why, fen: kept.fen };
    [view, ply] = [mine, game.moves.length];
    clock.set(minutes, increment, kept.left);
    seat();
  } catch {
    remember("game", undefined);
    return false;
  }
  if (match.stage === "playing") go();
  else step(ply);
  return true;
}
addEventListener("pagehide", () => {
  clock.settle();
  store();
});

/** Handles a key that steps through the moves. */
export function press(key) {
  const steps = { ArrowLeft: ply - 1, ArrowRight: ply + 1, Home: 0, End: Infinity };
  if (key in steps) step(steps[key]);
  else if (key === "f") flip();
  else return false;
  return true;
}

export function begin() {
  setup.begin({ preview: prepare, start: startChosen });
  if (!restore()) prepare();
  listGames();
}

/** Opens the tab; the URL may contain a position to start from. */
export async function enter(fen) {
  board.redraw();
  if (!fen || fen === match.fen) return;
  const isRunning = match.stage === "playing" && match.game.moves.length > 0;
  if (isRunning && !(await confirmed("Leave this game for the position of the link?", "New game"))) return;
  leaveGame();
  setup.startFrom(fen);
}
export const leave = () => {};

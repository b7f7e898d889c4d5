// Games against the server's players.

import * as address from "./address.js";
import { isAbort, post } from "./api.js";
import { Board } from "./board.js";
import { Clock } from "./clock.js";
import { analyse, confirmed, finder, playFrom, review, trouble } from "./dom.js";
import { answerDraw } from "./draw.js";
import { fenOf, readFen } from "./fen.js";
import { Game, opposite } from "./game.js";
import { showTaken } from "./material.js";
import { message, t } from "./messages.js";
import { MoveList } from "./movelist.js";
import { openingOf } from "./openings.js";
import { asked, searches } from "./opponents.js";
import { listGames } from "./played.js";
import * as setup from "./setup.js";
import { play as sound, playMove } from "./sound.js";
import { keep, recall, recallHere, remember, rememberHere } from "./store.js";
import { Tree } from "./tree.js";

/** Minimum time in milliseconds that an opponent's move takes. */
const PACE = 350;
/** Why a game ended when a clock ran out. */
const TIME = message("time forfeit");
/** Why a game is drawn when a side that cannot mate has time left. */
const CANNOT_MATE = { white: message("time forfeit, but White cannot mate"), black: message("time forfeit, but Black cannot mate") };

const at = finder("play");
const board = new Board(at("board"), { play: playMine, typed: at("typed"), premoved: () => say(status()) });
const moves = new MoveList(at("moves"), { choose: ({ ply }) => step(ply) });
const clock = new Clock({ mine: at("mine"), theirs: at("theirs"), flag: lost });

/** The game: its settings, who plays which side, and its stage: `setup`, `playing` or `over`. */
let match = { game: new Game(), mine: "white", stage: "setup" };
/** The side at the bottom of the board, and the number of moves on the board. */
let view = "white";
let ply = 0;
/** The pending request for the opponent's move or for a hint. */
let waiting;
/** Whether the request for the opponent's move failed. */
let isUnanswered = false;

const say = (text) => (at("status").textContent = text);
const isLive = () => ply === match.game.moves.length;
const isMine = () => match.game.position.turn === match.mine;

// The display

function draw() {
  const { game, stage } = match;
  const shown = game.at(ply);
  const canMove = isLive() && stage !== "over" && isMine();
  const canPremove = isLive() && stage === "playing" && !isMine();
  const [mine, ahead] = [canMove, canPremove].map((can) => (can ? match.mine : undefined));
  board.show(shown, { orientation: view, mine, ahead, why: whyNot() });
  showTaken(at("mine").querySelector(".taken"), shown, match.mine);
  showTaken(at("theirs").querySelector(".taken"), shown, opposite(match.mine));
  const tree = Tree.of(game);
  moves.show(tree, tree.at(ply));
  at("record").hidden = at("tools").hidden = stage === "setup";
  at("form").hidden = stage !== "setup";
  for (const name of ["hint", "draw", "resign"]) at(name).hidden = stage !== "playing";
  for (const name of ["rematch", "review", "from"]) at(name).hidden = stage !== "over";
  at("back").disabled = game.moves.length === 0;
  at("hint").disabled = !canMove;
  at("draw").disabled = !canMove || match.offered === game.moves.length;
  nameOpening(shown);
}

/** Returns why no move can be made now. */
function whyNot() {
  if (match.stage === "over") return t("The game is over: take a move back, or start a new one.");
  if (!isLive()) return t("This is an earlier position: choose the last move to go back to the game.");
  return match.stage === "setup" ? t("Your opponent moves first: press Start game.") : t("It is your opponent's move.");
}

async function nameOpening(game) {
  const name = await openingOf(game);
  if (game === board.game) at("opening").textContent = name ?? "";
}

function seat() {
  const { name, shown = name ?? t("Opponent"), measured } = match.opponent ?? {};
  at("theirs").firstElementChild.textContent = measured ? `${shown} (${measured})` : shown;
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
  if (!isLive()) return t("An earlier position: choose the last move to go back to the game.");
  if (stage === "setup") return isMine() ? t("Make a move to start.") : t("Your opponent moves first.");
  if (stage === "over") {
    const winner = { "1-0": "white", "0-1": "black" }[game.result];
    const outcome = winner ? (winner === mine ? t("You win") : t("You lose")) : t("A draw");
    return `${outcome}: ${t(why)}. ${game.result}`;
  }
  if (!isMine()) {
    const premove = board.premove();
    const next = premove ? ` ${t("Your next move is {move}: click the board to cancel it.", { move: premove })}` : "";
    return t("Your opponent is thinking.") + next;
  }
  const last = game.moves.at(-1);
  const played = last ? t("Your opponent plays {move}.", { move: last.san }) : "";
  const check = game.position.isCheck() ? t("You are in check.") : "";
  return [played, t("Your move."), check].filter(Boolean).join(" ");
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
  match = { ...settings, game, mine, stage: "playing", why: undefined };
  // The position of a link is not asked for again.
  address.write("play");
  [view, ply] = [mine, 0];
  const name = `Tessera (${opponent.name.toLowerCase()})`;
  const [white, black] = mine === "white" ? ["You", name] : [name, "You"];
  const control = settings.minutes ? `${60 * settings.minutes}+${settings.increment}` : "-";
  game.tags = { Event: "Tessera", Site: location.host, ...timeTags(), White: white, Black: black, TimeControl: control };
  if (opponent.elo) game.tags[mine === "white" ? "BlackElo" : "WhiteElo"] = String(opponent.elo);
  clock.set(settings.minutes, settings.increment);
  seat();
  sound("start");
}

/** Returns the tags that tell when a game began, which also tell it from others. */
function timeTags() {
  const now = new Date();
  const [date, time] = now.toISOString().slice(0, 19).split("T");
  const local = [now.getFullYear(), now.getMonth() + 1, now.getDate()].map((it) => String(it).padStart(2, "0"));
  return { Date: local.join("."), UTCDate: date.replaceAll("-", "."), UTCTime: time };
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
}

function lost(side) {
  const loser = side === "mine" ? match.mine : opposite(match.mine);
  const winner = opposite(loser);
  // FIDE Laws 6.9: if no series of legal moves lets the opponent mate, the game is drawn.
  if (match.game.position.hasInsufficientMaterial(winner)) {
    return end("1/2-1/2", CANNOT_MATE[winner]);
  }
  end(loser === "white" ? "0-1" : "1-0", TIME);
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
  playFor("mine", move);
}

/** Plays a side's move, and continues the game. */
function playFor(side, move) {
  clock.moved(side);
  const played = match.game.play(move);
  if (clock.isOn) played.clock = clock.left[side] / 1000;
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
  const began = performance.now();
  const asking = ask(request, go);
  const { signal } = waiting;
  const answer = await asking;
  if (!answer) return;
  // People take their time, which the answer states.
  const time = Math.max(PACE, answer.thinking_ms ?? 0) - (performance.now() - began);
  await new Promise((resolve) => setTimeout(resolve, time));
  const isWanted = match.game === game && match.stage === "playing" && game.moves.length === count;
  if (signal.aborted || !isWanted) return;
  playFor("theirs", game.legal(answer.move.uci));
  board.playPremove();
}

/** Requests a move; returns nothing if it is no longer wanted. After a failure, `retry` is offered. */
async function ask(request, retry) {
  waiting = new AbortController();
  isUnanswered = false;
  trouble("");
  try {
    return await post("/v1/move", request, waiting.signal);
  } catch (error) {
    if (!isAbort(error)) {
      trouble(error.message, retry);
      if (isMine()) return;
      clock.stop();
      isUnanswered = true;
      say(t("Your opponent cannot answer: try again, or take a move back."));
    }
  }
}

at("back").addEventListener("click", () => {
  stop();
  const { game, mine, why } = match;
  const count = game.moves.length;
  if (match.stage === "over") {
    // The finished game stays kept; this is another one.
    match.stage = "playing";
    delete game.tags.Termination;
    Object.assign(game.tags, timeTags());
    // Without time left, the game continues without a clock.
    if (why?.startsWith(TIME)) {
      Object.assign(match, { minutes: 0, increment: 0 });
      game.tags.TimeControl = "-";
      clock.set(0, 0);
    }
  }
  // Return to a position in which it is my turn.
  const wasMine = game.positions[count - 1]?.turn === mine;
  game.truncate(Math.max(0, count - (wasMine ? 1 : 2)));
  go();
});

async function hint() {
  const { game } = match;
  const count = game.moves.length;
  const answer = await ask({ ...game.request(), agent: "mcts", limits: { movetime_ms: 1000 } }, hint);
  if (!answer?.move || match.game !== game || game.moves.length !== count || !isLive()) return;
  board.arrows([{ uci: answer.move.uci, share: 0.7 }], "blue");
  say(t("Hint: {move}.", { move: answer.move.san }));
}
at("hint").addEventListener("click", hint);

async function offerDraw() {
  const own = match;
  const { game, opponent, mine } = own;
  const count = (own.offered = game.moves.length);
  at("draw").disabled = true;
  waiting = new AbortController();
  const { signal } = waiting;
  try {
    const { isAccepted, text } = await answerDraw(game, opponent, opposite(mine), signal);
    if (signal.aborted || match.game !== game || game.moves.length !== count) return;
    if (isAccepted) end("1/2-1/2", message("agreement"));
    else say(text);
  } catch (error) {
    own.offered = undefined;
    if (isAbort(error) || match !== own) return;
    draw();
    trouble(error.message, offerDraw);
  }
}
at("draw").addEventListener("click", offerDraw);

at("resign").addEventListener("click", async () => {
  const { game } = match;
  if (!(await confirmed(t("Resign this game?"), t("Resign")))) return;
  if (match.game !== game || match.stage !== "playing") return;
  end(match.mine === "white" ? "0-1" : "1-0", message("resignation"));
  // The button that had the focus is hidden now.
  at("review").focus();
});

at("new").addEventListener("click", async () => {
  const isRunning = match.stage === "playing" && match.game.moves.length > 0;
  if (isRunning && !(await confirmed(t("Leave this game? It is kept as unfinished."), t("New game")))) return;
  leaveGame();
});

/** Abandons the current game, which is saved, for a new one: from the position `fen` with the side to move, if it is given. */
function leaveGame(fen, color) {
  stop();
  if (match.stage === "playing" && match.game.moves.length) keep(Tree.of(match.game));
  match.stage = "setup";
  keepOther(otherGame());
  remember("game", undefined);
  rememberHere("game", undefined);
  setup.startFrom(fen, color);
  listGames();
}

at("rematch").addEventListener("click", () => {
  start(match, opposite(match.mine));
  go();
});
at("flip").addEventListener("click", flip);
at("from").addEventListener("click", () => playFrom(fenOf(match.game.at(ply).position)));
at("analyse").addEventListener("click", () => analyse(Tree.of(match.game).pgn(), ply));
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
  const clocks = game.moves.map((move) => move.clock);
  const { fen, tags, result } = game;
  const other = otherGame();
  const stored = { fen, tags, result, played, clocks, stage, mine, opponent, minutes, increment, why, left: clock.left };
  // Another window may store its own game.
  rememberHere("game", stored);
  if (other && goesOn(other, stored)) return;
  keepOther(other);
  remember("game", stored);
}

/** Returns a stored game. */
function gameOf({ fen, tags, result, played, clocks }) {
  const game = new Game(fen, tags);
  played.forEach((uci, ply) => (game.play(game.legal(uci)).clock = clocks?.[ply] ?? undefined));
  game.result = result;
  return game;
}

function isGame(stored) {
  try {
    return Boolean(gameOf(stored) && stored.opponent.agent && stored.stage && stored.tags);
  } catch {
    return false;
  }
}

/** Returns whether stored games began as one. */
const beganAs = (one, other) => one?.tags?.UTCTime === other.tags.UTCTime && one.tags.UTCDate === other.tags.UTCDate;
/** Returns whether a game's moves begin with other moves. */
const beginsWith = (played, others) => others.every((uci, ply) => played[ply] === uci);

/** Returns the game that another window has stored since this one did, if there is one. */
function otherGame() {
  const other = recall("game", undefined, isGame);
  const own = recallHere("game");
  const isOwn = other && beganAs(own, other) && String(own.played) === String(other.played) && own.stage === other.stage;
  return isOwn ? undefined : other;
}

/** Returns whether a stored game is a later state of another. */
function goesOn(later, earlier) {
  const isLater = later.played.length > earlier.played.length || later.stage === "over";
  return isLater && beganAs(later, earlier) && beginsWith(later.played, earlier.played);
}

/** Keeps the unfinished game of another window, unless this window's game contains it. */
function keepOther(other) {
  if (other?.stage !== "playing" || !other.played.length) return;
  const { tags, moves } = match.game;
  const isContained = beganAs(other, { tags }) && beginsWith(moves.map(({ uci }) => uci), other.played);
  if (!isContained) keep(Tree.of(gameOf(other)));
}

/** Restores and shows a saved game; returns whether there was one. */
function restore() {
  const own = recallHere("game");
  const kept = own && isGame(own) ? own : recall("game", undefined, isGame);
  if (!kept) return false;
  const { stage, mine, opponent, minutes, increment, why, fen } = kept;
  match = { game: gameOf(kept), stage, mine, opponent, minutes, increment, why, fen };
  [view, ply] = [mine, match.game.moves.length];
  clock.set(minutes, increment, kept.left);
  seat();
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
  if (!fen && isUnanswered && match.stage === "playing" && !isMine()) return go();
  if (!fen) return;
  trouble("");
  if (match.stage === "setup" && fen === match.fen) return;
  let color;
  try {
    color = readFen(fen).turn;
  } catch (error) {
    address.write("play");
    return trouble(`${t("The position in the link cannot be shown: it may be cut off.")} ${error.message}`);
  }
  const isRunning = match.stage === "playing" && match.game.moves.length > 0;
  const isLeft = !isRunning || (await confirmed(t("Leave this game for this position? It is kept as unfinished."), t("New game")));
  if (!isLeft) return address.write("play");
  leaveGame(fen, color);
}
export const leave = () => {};

// Games against the server's players.

import { isAbort, post } from "./api.js";
import { Board, element } from "./board.js";
import { asked, chosenPlayer, listPlayers, searches, server } from "./choice.js";
import { Game, opposite } from "./game.js";
import { Clock } from "./clock.js";
import { copy, forget, keep, kept, save } from "./kept.js";

const at = (name) => document.getElementById(`play-${name}`);
const form = at("form");
const board = new Board(at("board"), { play: playMine });
const clock = new Clock({ mine: at("mine"), theirs: at("theirs"), flag: lost });

/** The game: who plays what, against whom. */
let match = { game: new Game(), mine: "white", view: "white" };
/** What waits for the opponent's move, or a hint. */
let waiting;

const say = (text) => (at("status").textContent = text);
const trouble = (detail) => dispatchEvent(new CustomEvent("trouble", { detail }));
const isOver = () => match.game.result !== "*" || !match.player;

function draw() {
  const { game, mine, view } = match;
  board.show(game, { orientation: view, mine, isOver: isOver() });
  at("moves").replaceChildren(
    ...game.moves.map(({ san }, index) => {
      const before = game.positions[index];
      const number = before.turn === "white" || index === 0 ? `${before.fullmoves}. ` : "";
      return element("li", { textContent: `${number}${san} ` });
    }),
  );
  at("moves").scrollTop = at("moves").scrollHeight;
  at("back").disabled = game.moves.length === 0 || !match.player;
  at("hint").disabled = isOver() || game.position.turn !== mine;
  at("resign").disabled = isOver();
  at("rematch").disabled = !match.player;
}

function start(settings) {
  stop();
  if (match.game.moves.length && match.game.result === "*") keep(match.game);
  const game = new Game(settings.fen || undefined);
  const name = `${settings.player.agent} (${settings.player.title}${settings.player.ratings ? ` ${settings.elo}` : ""})`;
  const names = settings.mine === "white" ? ["You", name] : [name, "You"];
  game.tags = {
    Event: "Tessera",
    Site: location.host,
    Date: new Date().toISOString().slice(0, 10).replaceAll("-", "."),
    White: names[0],
    Black: names[1],
  };
  match = { ...settings, game, view: settings.mine };
  clock.set(settings.minutes, settings.increment);
  at("theirs").firstElementChild.textContent = name;
  tellKept();
  go();
}

/** Goes on: tells whose turn it is, and asks the opponent. */
function go() {
  const { game, mine } = match;
  const ending = game.ending();
  if (ending) return end(ending.result, ending.why);
  draw();
  const isMine = game.position.turn === mine;
  clock.run(isMine ? "mine" : "theirs");
  say(isMine ? `Your move${game.position.isCheck() ? ": check" : ""}.` : "The opponent thinks.");
  if (!isMine) theirMove();
}

function end(result, why) {
  stop();
  match.game.result = result;
  match.game.tags.Termination = why;
  keep(match.game);
  draw();
  const winner = { "1-0": "white", "0-1": "black" }[result];
  const outcome = winner ? (winner === match.mine ? "You win" : "You lose") : "A draw";
  say(`${outcome}: ${why}. ${result}`);
  tellKept();
}

function lost(side) {
  const loser = side === "mine" ? match.mine : opposite(match.mine);
  end(loser === "white" ? "0-1" : "1-0", "time forfeit");
}

function stop() {
  waiting?.abort();
  waiting = undefined;
  clock.stop();
}

function limits() {
  if (match.minutes) return { clock: clock.told("theirs") };
  return searches(match.player) ? { nodes: Number(match.nodes) } : {};
}

async function theirMove() {
  const { game, player, elo } = match;
  const request = { ...game.request(), ...asked(player, elo), limits: limits() };
  const answer = await ask(request);
  if (!answer || match.game !== game) return;
  clock.moved("theirs");
  const { san } = game.play(game.legal(answer.move.uci));
  say(`The opponent plays ${san}.`);
  go();
}

/** Asks for a move; nothing where nobody waits for it any more. */
async function ask(request) {
  waiting = new AbortController();
  trouble("");
  try {
    return await post("/v1/move", request, waiting.signal);
  } catch (error) {
    if (!isAbort(error)) {
      clock.stop();
      trouble(error.message);
      say("The opponent cannot answer. Take back, or begin a new game.");
    }
  }
}

function playMine(move) {
  if (isOver() || match.game.position.turn !== match.mine) return draw();
  waiting?.abort();
  clock.moved("mine");
  match.game.play(move);
  go();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const { color, elo, nodes, minutes, increment, fen } = Object.fromEntries(new FormData(form));
  const colors = ["white", "black"];
  const mine = color === "random" ? colors[Math.floor(2 * Math.random())] : color;
  const player = chosenPlayer(form.elements.player);
  try {
    start({ player, elo, nodes, mine, fen, minutes: Number(minutes), increment: Number(increment) });
    trouble("");
  } catch (error) {
    trouble(`This position cannot be played: ${error.message}`);
  }
});

at("back").addEventListener("click", () => {
  stop();
  const { game, mine } = match;
  const count = game.moves.length;
  // Back to a position in which it is my turn.
  const isMine = game.positions[count - 1]?.turn === mine;
  game.truncate(Math.max(0, count - (isMine ? 1 : 2)));
  delete game.tags.Termination;
  go();
});

at("hint").addEventListener("click", async () => {
  const { game } = match;
  const answer = await ask({ ...game.request(), agent: "mcts", limits: { movetime_ms: 1000 } });
  if (!answer?.move || match.game !== game) return;
  board.arrows([{ uci: answer.move.uci, share: 0.7 }], "blue");
  say(`Hint: ${answer.move.san}.`);
});

at("resign").addEventListener("click", () => end(match.mine === "white" ? "0-1" : "1-0", "resignation"));
at("rematch").addEventListener("click", () => start({ ...match, mine: opposite(match.mine), fen: match.fen }));
at("flip").addEventListener("click", () => {
  match.view = opposite(match.view);
  draw();
});

function tellKept() {
  at("pgn").value = kept().join("\n");
  at("count").textContent = `(${kept().length})`;
}
at("copy").addEventListener("click", () => copy(at("pgn").value));
at("save").addEventListener("click", () => save(at("pgn").value));
at("forget").addEventListener("click", () => {
  forget();
  tellKept();
});
at("analyse").addEventListener("click", () => {
  dispatchEvent(new CustomEvent("analyse", { detail: match.game.pgn() }));
});

function suit() {
  const player = chosenPlayer(form.elements.player);
  form.elements.elo.parentElement.hidden = !player.ratings;
  form.elements.nodes.parentElement.hidden = !searches(player);
}
form.elements.player.addEventListener("change", suit);

export function begin() {
  listPlayers(form.elements.player, "human");
  form.elements.nodes.max = server.limits.nodes;
  suit();
  tellKept();
  say("Choose an opponent, and begin.");
  draw();
}

export const enter = () => board.redraw();
export const leave = () => {};
draw();

// What a new game is to be like.

import { finder, trouble } from "./dom.js";
import { edit } from "./editor.js";
import { readFen } from "./fen.js";
import { chosenPlayer, listPlayers, searches, server, usualPlayer } from "./opponents.js";
import { recall, remember } from "./store.js";

const at = finder("play");
const form = at("form");
/** The fields that are kept from one visit to the next. */
const KEPT = ["kind", "clock", "minutes", "increment", "color", "nodes"];

/** The opponent that is chosen, with its name. */
function opponent({ kind, elo, nodes }) {
  const other = chosenPlayer(form.elements.player);
  if (other) {
    const level = other.ratings ? ` ${elo}` : "";
    return { ...other, elo, nodes, name: `${other.agent} (${other.title}${level})` };
  }
  if (kind === "engine") return { ...usualPlayer("mcts"), name: "Full strength" };
  const human = usualPlayer("human");
  return human.ratings ? { ...human, elo, name: `Like a player rated ${elo}` } : { ...human, name: "Plays like people" };
}

/** The settings of the game, as the form has them. */
export function chosen() {
  const fields = Object.fromEntries(new FormData(form));
  const [minutes, increment] = fields.clock === "custom" ? [fields.minutes, fields.increment] : fields.clock.split("+");
  return {
    opponent: opponent(fields),
    minutes: Number(minutes),
    increment: Number(increment),
    color: fields.color,
    fen: fields.fen.trim() || undefined,
  };
}

/** Starts games from this position. */
export function startFrom(fen) {
  form.elements.fen.value = fen;
  if (!checkFen()) form.querySelector("details").open = true;
  form.dispatchEvent(new Event("change"));
}

/** Says what is wrong with the FEN, if it is. */
function checkFen() {
  const { fen } = form.elements;
  let problem = "";
  try {
    if (fen.value.trim()) readFen(fen.value);
  } catch (error) {
    problem = error.message;
  }
  at("fen-problem").textContent = problem;
  fen.setAttribute("aria-invalid", Boolean(problem));
  return !problem;
}

function suit() {
  const other = chosenPlayer(form.elements.player);
  const isLevelled = (other ?? usualPlayer("human")).ratings;
  at("rated").hidden = !isLevelled || (!other && form.elements.kind.value !== "human");
  at("nodes").hidden = !other || !searches(other);
  at("custom").hidden = form.elements.clock.value !== "custom";
}

/** Fills the form; `preview` is called when the game to come has changed, `start` when it
 * is to begin. */
export function begin({ preview, start }) {
  listPlayers(form.elements.player, undefined, "as chosen above");
  form.elements.nodes.max = server.limits.nodes;
  const kept = recall("setup", {});
  for (const name of KEPT) if (kept[name] !== undefined) form.elements[name].value = kept[name];
  suit();
  form.addEventListener("change", () => {
    const fields = Object.fromEntries(new FormData(form));
    remember("setup", Object.fromEntries(KEPT.map((name) => [name, fields[name]])));
    suit();
    if (checkFen()) preview();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!checkFen()) return form.elements.fen.focus();
    trouble("");
    start();
  });
  at("edit").addEventListener("click", async () => {
    const fen = await edit(form.elements.fen.value);
    if (fen) startFrom(fen);
  });
}

// The settings of a new game.

import { finder, offer, trouble } from "./dom.js";
import { edit } from "./editor.js";
import { readFen } from "./fen.js";
import { t } from "./messages.js";
import { chosenPlayer, listPlayers, searches, server, usualPlayer } from "./opponents.js";
import { recall, remember } from "./store.js";

const at = finder("play");
const form = at("form");
/** The fields that are stored between visits. */
const KEPT = ["kind", "clock", "minutes", "increment", "color", "nodes"];

/** Measured ratings at full strength, by network; /docs#strength has the measurement. */
const MEASURED = { "tessera-xs": "2100–2400" };

/** Returns the chosen opponent with its name in PGN and the name that is shown. */
function opponent({ kind, elo, nodes }) {
  const other = chosenPlayer(form.elements.player);
  if (other) {
    const level = other.ratings ? ` ${elo}` : "";
    return { ...other, elo, nodes, name: `${other.agent} (${other.title}${level})`, shown: `${other.title}${level}` };
  }
  if (kind === "engine") {
    const engine = usualPlayer("mcts");
    return { ...engine, name: "Full strength", shown: t("Full strength"), measured: MEASURED[engine.title] };
  }
  const human = usualPlayer("human");
  if (!human.ratings) return { ...human, name: "Plays like people", shown: t("Plays like people") };
  return { ...human, elo, name: `Like a player rated ${elo}`, shown: `${t("Like a player rated")} ${elo}` };
}

/** Returns the game's settings from the form. */
export function chosen() {
  const fields = Object.fromEntries(new FormData(form));
  const [minutes, increment] = fields.clock === "custom" ? [fields.minutes, fields.increment] : fields.clock.split("+");
  return {
    opponent: opponent(fields),
    minutes: Number(minutes),
    increment: Number(increment),
    color: fields.color,
    fen: (checkFen() && fields.fen.trim()) || undefined,
  };
}

/** Starts games from this position, or from the initial one, with this colour, or with the one that was chosen last. */
export function startFrom(fen = "", color = recall("setup", {}).color ?? "white") {
  form.elements.fen.value = fen;
  form.elements.color.value = color;
  if (!checkFen()) form.querySelector("details").open = true;
  form.dispatchEvent(new Event("change"));
}

/** Shows an explanation if the FEN is invalid. */
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
  at("strength").hidden = Boolean(other) || form.elements.kind.value !== "engine" || !chosen().opponent.measured;
  offer(at("nodes"), other && searches(other));
  offer(at("custom"), form.elements.clock.value === "custom");
}

/** Fills in the form. `preview` is called when the game that is being set up has changed, and `start` when it should
 * begin. */
export function begin({ preview, start }) {
  listPlayers(form.elements.player, undefined, t("as chosen above"));
  form.elements.nodes.max = server.limits.nodes;
  const kept = recall("setup", {});
  for (const name of KEPT) if (kept[name] !== undefined) form.elements[name].value = kept[name];
  suit();
  form.addEventListener("change", ({ target }) => {
    const { name, value } = target;
    if (KEPT.includes(name)) remember("setup", { ...recall("setup", {}), [name]: value });
    suit();
    preview();
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

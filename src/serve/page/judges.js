// The judge that scores the moves in a review: Stockfish on the server, Stockfish in this browser, or Tessera itself.

import { NODES } from "./judging.js";
import { number, t } from "./messages.js";
import { server } from "./opponents.js";
import { setting } from "./settings.js";
import { script } from "./stockfish.js";

const fields = document.querySelectorAll("#settings [name=judge]");
const note = document.getElementById("settings-judge-note");

/** The available judges, the better ones first, with their names and their nodes per position. */
const available = new Map();

/** Finds out which judges there are. */
export async function begin() {
  if (server.judge) available.set("server", { ...server.judge, name: t("{name} on the server", server.judge) });
  if (await script()) available.set("browser", { name: t("Stockfish in this browser"), nodes: NODES });
  else note.textContent = t("This page comes without Stockfish.");
  available.set("none", { name: "Tessera" });
  for (const field of fields) field.disabled = !available.has(field.value);
}

/** Returns the judge to use, `server`, `browser` or `none`: the one chosen in the settings, if it is available. */
export function chosenJudge() {
  const [best] = available.keys();
  return available.has(setting("judge")) ? setting("judge") : best;
}

/** Returns the judge that can be shown beside Tessera, `server` or `browser`, if there is one. */
export function otherJudge() {
  const [best] = available.keys();
  return [chosenJudge(), best].find((judge) => judge !== "none");
}

/** Returns how to get Stockfish, if there is none. */
export const missing = () => (available.size > 1 ? undefined : note.textContent);

/** Describes the judge to use, and how to get a better one if there is none. */
export function describeJudge() {
  const { name, nodes } = available.get(chosenJudge());
  if (nodes) return t("Judge: {name}, {nodes} nodes a position.", { name, nodes: number(nodes) });
  return `${t("No judge: the marks come from Tessera's own scores.")} ${missing() ?? ""}`.trim();
}

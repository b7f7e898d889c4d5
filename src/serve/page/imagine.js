// The future imagined by a network of the diffusion family.

import { post } from "./api.js";
import { Board } from "./board.js";
import { finder, trouble } from "./dom.js";
import { t } from "./messages.js";
import { server } from "./opponents.js";

const details = document.getElementById("imagine");
const at = finder("imagine");
const form = at("form");
const board = new Board(at("board"));
board.ground.set({ animation: { enabled: false }, coordinates: false });

let game;
let imagined;

/** Shows another position. */
export function show(position) {
  game = position;
  imagined = undefined;
}

/** Converts a board of letters, from a1 to h8, to the first field of a FEN. */
function placement(letters) {
  const rows = [7, 6, 5, 4, 3, 2, 1, 0].map((row) => letters.slice(8 * row, 8 * row + 8));
  return rows.map((row) => row.replace(/\.+/g, (gap) => gap.length)).join("/");
}

function draw() {
  if (!imagined) return;
  const { step, ply } = form.elements;
  const { boards, moves } = imagined.steps[step.value - 1];
  const { pieces, known } = boards[ply.value - 1];
  const custom = new Map();
  [...known].forEach((it, index) => {
    if (it === "0") custom.set("abcdefgh"[index % 8] + (1 + (index >> 3)), "unknown");
  });
  board.ground.set({ fen: placement(pieces), highlight: { custom }, movable: { color: undefined } });
  const told = moves.map(({ uci, probability, known }) => `${uci} ${Math.round(100 * probability)}\u00a0%${known ? "" : "?"}`);
  const values = { number: ply.value, step: step.value, moves: told.join(", "), line: imagined.line.join(" ") };
  at("status").textContent = t("Half-move {number} after step {step}; grey squares are not known yet. Moves: {moves}. Legal line: {line}.", values);
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const denoiser = server.networks.find(({ family }) => family === "diffusion");
  const steps = Number(form.elements.steps.value);
  try {
    const answer = await post("/v1/explain", { ...game.request(), network: denoiser.name, steps });
    imagined = answer.denoising;
    const { step, ply } = form.elements;
    step.max = step.value = imagined.steps.length;
    ply.max = imagined.steps[0].boards.length;
    draw();
    trouble("");
  } catch (error) {
    trouble(error.message, () => form.requestSubmit());
  }
});
form.addEventListener("input", draw);
details.addEventListener("toggle", () => board.redraw());

export function begin() {
  details.hidden = !server.networks.some(({ family }) => family === "diffusion");
}

export const redraw = () => board.redraw();

// What networks see and imagine in the position that is analysed.

import { html, isAbort, post } from "./api.js";
import { Board, element } from "./board.js";
import { listNetworks, network, server } from "./choice.js";
import { Game } from "./game.js";
import { save } from "./kept.js";

const at = (name) => document.getElementById(name);
const [seeing, comparing, imagining] = ["see", "compare", "imagine"].map((name) => at(`${name}-form`));
const trouble = (error) => {
  if (error && isAbort(error)) return;
  dispatchEvent(new CustomEvent("trouble", { detail: error?.message ?? "" }));
};

let board;
let game = new Game();
/** The square that was clicked. */
let square;
/** What was imagined. */
let imagined;
const small = new Board(at("imagine-board"));
small.ground.set({ animation: { enabled: false }, coordinates: false });

/** Lights squares up on this board. */
export const use = (given) => (board = given);

/** The position has changed. */
export function show(position) {
  game = position;
  square = undefined;
  imagined = undefined;
  if (at("compare").open) compare();
}

// Attention

/** Shows where a square looks. */
export async function look(name) {
  if (!at("see").open) return;
  square = name;
  const { network: of, layer, head } = Object.fromEntries(new FormData(seeing));
  const asked = game;
  const request = { ...game.request(), network: of, layer: Number(layer), head: Number(head) };
  try {
    const seen = await post("/v1/attention", request);
    if (game !== asked || square !== name) return;
    const index = name.charCodeAt(0) - 97 + 8 * (Number(name[1]) - 1);
    board.light(seen.weights[index]);
    seeing.elements.layer.max = seen.layers;
    seeing.elements.head.max = seen.heads;
    at("see-status").textContent = `${name} in layer ${seen.layer} of ${seen.layers}, head ${seen.head} of ${seen.heads}: ${strongest(seen.weights[index])}`;
    trouble();
  } catch (error) {
    trouble(error);
  }
}

function strongest(weights) {
  const squares = weights.map((weight, index) => [weight, "abcdefgh"[index % 8] + (1 + (index >> 3))]);
  squares.sort(([one], [other]) => other - one);
  return squares.slice(0, 4).map(([weight, name]) => `${name} ${Math.round(100 * weight)} %`).join(", ");
}

for (const name of ["network", "layer", "head"]) {
  seeing.elements[name].addEventListener("change", () => square && look(square));
}
seeing.addEventListener("submit", async (event) => {
  event.preventDefault();
  at("see-status").textContent = "The network is being looked into.";
  try {
    const page = await html("/v1/explain", { ...game.request(), network: seeing.elements.network.value });
    save(page, "explanation.html", "text/html");
    at("see-status").textContent = "The explanation is saved as a page of its own.";
    trouble();
  } catch (error) {
    trouble(error);
  }
});

// Two side by side

async function evaluation(which) {
  const name = comparing.elements[which].value;
  const request = { ...game.request(), network: name };
  if (network(name)?.ratings) request.elo = Number(comparing.elements[`${which}-elo`].value);
  return post("/v1/eval", request);
}

async function compare() {
  const asked = game;
  for (const which of ["first", "second"]) {
    const label = comparing.elements[`${which}-elo`].parentElement;
    label.hidden = !network(comparing.elements[which].value)?.ratings;
  }
  try {
    const [first, second] = await Promise.all([evaluation("first"), evaluation("second")]);
    if (game !== asked) return;
    const priors = new Map(second.policy.map(({ san, prior }) => [san, prior]));
    const both = first.policy.map(({ san, prior }) => [san, prior, priors.get(san) ?? 0]);
    both.sort((one, other) => Math.max(...other.slice(1)) - Math.max(...one.slice(1)));
    const cell = (share) => {
      const meter = element("meter", { value: share });
      const percent = `${Math.round(100 * share)} %`;
      meter.ariaLabel = percent;
      return element("td", { className: "bar" }, percent, meter);
    };
    const wins = (it) => (it.wdl ? `wins ${Math.round(100 * it.wdl.win)} %, loses ${Math.round(100 * it.wdl.loss)} %` : "");
    const head = element("tr", {}, element("th", { textContent: "move" }), element("th", { textContent: `first: ${wins(first)}` }), element("th", { textContent: `second: ${wins(second)}` }));
    const rows = both.slice(0, 8).map(([san, one, other]) => element("tr", {}, element("th", { textContent: san }), cell(one), cell(other)));
    at("compare-table").replaceChildren(head, ...rows);
    trouble();
  } catch (error) {
    trouble(error);
  }
}
comparing.addEventListener("change", compare);
comparing.addEventListener("submit", (event) => event.preventDefault());
at("compare").addEventListener("toggle", () => at("compare").open && compare());

// Imagined futures

/** A board of letters, from a1 to h8, as a FEN has it. */
function placement(letters) {
  const rows = [7, 6, 5, 4, 3, 2, 1, 0].map((row) => letters.slice(8 * row, 8 * row + 8));
  return rows.map((row) => row.replace(/\.+/g, (gap) => gap.length)).join("/");
}

function draw() {
  if (!imagined) return;
  const { step, ply } = imagining.elements;
  const { boards, moves } = imagined.steps[step.value - 1];
  const { pieces, known } = boards[ply.value - 1];
  const custom = new Map();
  [...known].forEach((it, index) => {
    if (it === "0") custom.set("abcdefgh"[index % 8] + (1 + (index >> 3)), "unknown");
  });
  small.ground.set({ fen: placement(pieces), highlight: { custom }, movable: { color: undefined } });
  const told = moves.map(({ uci, probability, known }) => `${uci} ${Math.round(100 * probability)} %${known ? "" : "?"}`);
  const line = `Ply ${ply.value} after step ${step.value}; grey squares are not known yet. Moves: ${told.join(", ")}. Legal line: ${imagined.line.join(" ")}.`;
  at("imagine-status").textContent = line;
}

imagining.addEventListener("submit", async (event) => {
  event.preventDefault();
  const denoiser = server.networks.find(({ family }) => family === "diffusion");
  const steps = Number(imagining.elements.steps.value);
  try {
    const answer = await post("/v1/explain", { ...game.request(), network: denoiser.name, steps });
    imagined = answer.denoising;
    const { step, ply } = imagining.elements;
    step.max = step.value = imagined.steps.length;
    ply.max = imagined.steps[0].boards.length;
    draw();
    trouble();
  } catch (error) {
    trouble(error);
  }
});
imagining.addEventListener("input", draw);
at("imagine").addEventListener("toggle", () => small.redraw());

export function begin() {
  const isPlayer = ({ family }) => family !== "gpt";
  listNetworks(seeing.elements.network, isPlayer, "main");
  listNetworks(comparing.elements.first, () => true, "human");
  listNetworks(comparing.elements.second, () => true, "human");
  at("imagine").hidden = !server.networks.some(({ family }) => family === "diffusion");
}

export const redraw = () => small.redraw();

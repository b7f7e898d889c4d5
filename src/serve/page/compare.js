// Two networks, or two ratings, compared with each other.

import { post } from "./api.js";
import { element, trouble } from "./dom.js";
import { t } from "./messages.js";
import { listNetworks, network } from "./opponents.js";
import { percent } from "./score.js";

const details = document.getElementById("compare");
const form = document.getElementById("compare-form");
const table = document.getElementById("compare-table");

let game;

/** Shows another position. */
export function show(position) {
  game = position;
  if (details.open) compare();
}

async function evaluation(which) {
  const name = form.elements[which].value;
  const request = { ...game.request(), network: name };
  if (network(name)?.ratings) request.elo = Number(form.elements[`${which}-elo`].value);
  return post("/v1/eval", request);
}

async function compare() {
  const asked = game;
  for (const which of ["first", "second"]) {
    const label = form.elements[`${which}-elo`].closest(".rated");
    label.hidden = !network(form.elements[which].value)?.ratings;
  }
  try {
    const both = await Promise.all([evaluation("first"), evaluation("second")]);
    if (game === asked) draw(...both);
    trouble("");
  } catch (error) {
    trouble(error.message, compare);
  }
}

function draw(first, second) {
  const priors = new Map(second.policy.map(({ san, prior }) => [san, prior]));
  const moves = first.policy.map(({ san, prior }) => [san, prior, priors.get(san) ?? 0]);
  moves.sort((one, other) => Math.max(...other.slice(1)) - Math.max(...one.slice(1)));
  const cell = (share) => {
    const meter = element("meter", { value: share, ariaLabel: percent(share) });
    return element("td", { className: "bar" }, percent(share), meter);
  };
  const told = ({ win, loss }, name) => t("{name}: wins {win}, loses {loss}", { name, win: percent(win), loss: percent(loss) });
  const head = (it, name) => element("th", { textContent: it.wdl ? told(it.wdl, name) : name });
  const rows = moves.slice(0, 8).map(([san, one, other]) => element("tr", {}, element("th", { textContent: san }), cell(one), cell(other)));
  table.hidden = false;
  table.replaceChildren(element("tr", {}, element("th", { textContent: t("move") }), head(first, t("first")), head(second, t("second"))), ...rows);
}

form.addEventListener("change", compare);
form.addEventListener("submit", (event) => event.preventDefault());
details.addEventListener("toggle", () => details.open && game && compare());

export function begin() {
  listNetworks(form.elements.first, () => true, "human");
  listNetworks(form.elements.second, () => true, "human");
}

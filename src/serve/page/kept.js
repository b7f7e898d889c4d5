// The list of kept analyses.

import * as analyses from "./analyses.js";
import { confirmed, element, finder } from "./dom.js";
import { locale, t } from "./messages.js";
import { describe } from "./pgn.js";
import * as studying from "./study.js";

/** Number of characters that show the moves of an analysis without a name. */
const SHOWN = 40;

const at = finder("analyse");
const dates = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });

/** Returns an analysis's name, or else its players, its first moves, or its position. */
function nameOf({ name, pgn }) {
  const moves = pgn.slice(pgn.indexOf("\n\n") + 2).replace(/\s+/g, " ").replace(/ ?\*? ?$/, "");
  return name || describe(pgn) || moves.slice(0, SHOWN) || pgn.match(/^\[FEN "(.*)"\]/m)?.[1] || t("Position");
}

function draw() {
  const kept = analyses.list();
  at("count").textContent = kept.length ? `(${kept.length})` : "";
  at("list").replaceChildren(...kept.map((analysis) => {
    const name = nameOf(analysis);
    const open = element("button", { type: "button" }, element("span", { textContent: name }), `, ${dates.format(analysis.date)}`);
    if (analysis.isHere) open.setAttribute("aria-current", "true");
    open.addEventListener("click", () => studying.resume(analysis.key));
    const remove = element("button", { type: "button", textContent: t("Delete"), ariaLabel: t("Delete {name}", { name }) });
    remove.addEventListener("click", async () => {
      if (await confirmed(t("Delete the analysis “{name}”? It cannot be brought back.", { name }), t("Delete"))) analyses.remove(analysis.key);
    });
    return element("li", {}, open, remove);
  }));
}

/** Shows the name of the analysis on the board. */
export function show() {
  if (at("name") !== document.activeElement) at("name").value = studying.study.name;
}

at("name").addEventListener("change", ({ target }) => studying.rename(target.value.trim()));
addEventListener("analyses", draw);
// Another window has kept or deleted an analysis.
addEventListener("storage", draw);
draw();

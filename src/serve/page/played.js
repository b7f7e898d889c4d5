// Finished games, which the browser stores.

import { analyse, confirmed, element, finder } from "./dom.js";
import { plural, t } from "./messages.js";
import { copy, forget, games, save } from "./store.js";

const at = finder("play");

/** Lists the games, latest first; clicking one opens it in the analysis. */
export function listGames() {
  const played = games();
  at("count").textContent = played.length ? `(${played.length})` : "";
  at("kept").hidden = !played.length;
  at("games").replaceChildren(...played.toReversed().map((pgn) => {
    const tag = (name) => pgn.match(new RegExp(`\\[${name} "([^"]*)"\\]`))?.[1] ?? "?";
    const button = element("button", { textContent: `${tag("Result")}  ${tag("White")} – ${tag("Black")}, ${tag("Date")}` });
    button.addEventListener("click", () => analyse(pgn));
    return element("li", {}, button);
  }));
}

const text = () => games().join("\n");
at("copy").addEventListener("click", () => copy(text()));
at("save").addEventListener("click", () => save(text()));
at("forget").addEventListener("click", async () => {
  const count = games().length;
  const question = plural(count, t("Forget the game that this browser keeps? It cannot be brought back."), t("Forget all {count} games that this browser keeps? They cannot be brought back.", { count }));
  if (!(await confirmed(question, t("Forget all")))) return;
  forget();
  listGames();
});

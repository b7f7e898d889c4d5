// The lines of an analysis, whose moves are played by a click.

import { element } from "./dom.js";
import { numberedMoves } from "./game.js";
import { scoreText } from "./score.js";

/** Moves of a line that are shown. */
const MOST = 14;

/** Shows lines in a list; `choose` is called with the moves of a line up to the one that
 * is clicked. */
export function showLines(list, { lines, turn }, fullmoves, choose) {
  list.replaceChildren(...lines.map(({ score, moves }) => {
    const shown = moves.slice(0, MOST);
    const words = numberedMoves(shown.map(({ san }) => san), turn, fullmoves);
    const buttons = words.flatMap((textContent, index) => {
      const button = element("button", { type: "button", textContent });
      button.addEventListener("click", () => choose(moves.slice(0, index + 1)));
      return [button, " "];
    });
    return element("li", {}, element("b", { textContent: scoreText(score, turn) }), element("span", {}, ...buttons));
  }));
}

// The lines of an analysis, whose moves can be played with a click.

import { element } from "./dom.js";
import { numberedMoves } from "./game.js";
import { scoreText } from "./score.js";

/** Maximum number of moves shown per line. */
const MOST = 14;

/** Shows lines in a list; `choose` is called with the moves of a line up to the clicked one. */
export function showLines(list, { lines, turn }, fullmoves, choose) {
  list.replaceChildren(...lines.map(({ score, moves }) => {
    const shown = moves.slice(0, MOST);
    const words = numberedMoves(shown.map(({ san }) => san), turn, fullmoves);
    const buttons = words.flatMap((textContent, index) => {
      const button = element("button", { type: "button", textContent });
      button.addEventListener("click", () => choose(moves.slice(0, index + 1)));
      return [button, " "];
    });
    return element("li", {}, element("b", { textContent: scoreText(score, turn) }), " ", element("span", {}, ...buttons));
  }));
}

// The captured pieces, and the difference in material.

import { element } from "./dom.js";
import { opposite } from "./game.js";
import { message, t } from "./messages.js";

/** Usual values of the pieces, most valuable first. */
const VALUES = { queen: 9, rook: 5, bishop: 3, knight: 3, pawn: 1 };

/** Returns the roles of the pieces that a side has captured in a game, most valuable first. */
function captured(game, side) {
  const taken = game.moves.flatMap(({ isCapture, move }, ply) => {
    const { board, turn } = game.positions[ply];
    // The square of a pawn captured en passant is empty.
    return isCapture && turn === side ? [board.get(move.to)?.role ?? "pawn"] : [];
  });
  const order = Object.keys(VALUES);
  return taken.sort((one, other) => order.indexOf(one) - order.indexOf(other));
}

/** The names of captured pieces, which stand in a list. */
const NAMES = { queen: message("queen"), rook: message("rook"), bishop: message("bishop"), knight: message("knight"), pawn: message("pawn") };

const worth = ({ board }, side) => Object.entries(VALUES).reduce((sum, [role, value]) => sum + value * board.pieces(side, role).size(), 0);

/** Shows what a side has captured, and by how much it is ahead. */
export function showTaken(place, game, side) {
  const taken = captured(game, side);
  const lead = worth(game.position, side) - worth(game.position, opposite(side));
  const pieces = taken.map((role, index) => {
    const className = `${role} ${opposite(side)}${role === taken[index - 1] ? " same" : ""}`;
    return element("piece", { className });
  });
  place.replaceChildren(...pieces, ...(lead > 0 ? [element("b", { textContent: `+${lead}` })] : []));
  place.setAttribute("role", "img");
  const names = taken.map((role) => t(NAMES[role])).join(", ");
  const words = taken.length ? t("Captured: {pieces}.", { pieces: names }) : t("Nothing captured.");
  place.ariaLabel = lead > 0 ? `${words} ${t("Ahead by {lead}.", { lead })}` : words;
}

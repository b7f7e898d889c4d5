// The choice of a promotion piece, which is shown next to the pawn.

import { element } from "./dom.js";
import { message, t } from "./messages.js";

const ROLES = [message("queen"), message("knight"), message("rook"), message("bishop")];
const LETTERS = { q: "queen", n: "knight", r: "rook", b: "bishop" };

/** Asks on a board which piece the pawn that moves to a square (0…63) becomes; returns nothing if the user cancels.
 * `orientation` is the side at the bottom of the board. */
export function askPromotion(wrap, square, orientation) {
  const color = square > 55 ? "white" : "black";
  const isAbove = color === orientation;
  const file = orientation === "white" ? square % 8 : 7 - (square % 8);
  const chooser = element("div", { className: "promotion" });
  chooser.setAttribute("role", "dialog");
  chooser.ariaLabel = t("The pawn becomes a");
  const buttons = ROLES.map((role, index) => {
    const button = element("button", { type: "button", ariaLabel: t(role), title: t(role) }, element("piece", { className: `${role} ${color}` }));
    button.style.left = `${12.5 * file}%`;
    button.style.top = `${12.5 * (isAbove ? index : 7 - index)}%`;
    return button;
  });
  chooser.append(...buttons);
  wrap.append(chooser);
  buttons[0].focus({ preventScroll: true });
  return new Promise((resolve) => {
    const close = (role) => {
      chooser.remove();
      resolve(role);
    };
    buttons.forEach((button, index) => button.addEventListener("click", () => close(ROLES[index])));
    chooser.addEventListener("click", (event) => event.target === chooser && close());
    chooser.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return close();
      const role = LETTERS[event.key.toLowerCase()];
      if (role) return close(role);
      const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      const at = buttons.indexOf(document.activeElement);
      buttons[(at + step + buttons.length) % buttons.length].focus();
    });
  });
}

// Elements, and messages that all parts show on the page.

import { hash } from "./address.js";
import { t } from "./messages.js";

const SVG = "http://www.w3.org/2000/svg";

/** Creates an element with properties and children. */
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** Creates an SVG element with attributes and children. */
export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

/** Finds the elements of a tab by name: `play-board` is `finder("play")("board")`. */
export const finder = (part) => (name) => document.getElementById(`${part}-${name}`);

/** Shows or hides fields. Hidden ones are disabled: an invalid value would keep a form from being sent, without a word. */
export function offer(place, isOffered) {
  place.hidden = !isOffered;
  for (const field of place.querySelectorAll("input, select")) field.disabled = !isOffered;
}

/** Shows an error message above every tab; an empty text removes it. `retry`, if given, is offered as a button. */
export const trouble = (text, retry) => dispatchEvent(new CustomEvent("trouble", { detail: { text, retry } }));

/** Opens a game, as text, in the analysis: at the position after `ply` moves, if given, and the moves of `line`, in UCI
 * notation. */
export const analyse = (text, ply, line) => dispatchEvent(new CustomEvent("analyse", { detail: { text, ply, line } }));

/** Opens the choice of side and opponent for a game from a position. */
export const playFrom = (fen) => (location.hash = hash("play", fen));

/** Reviews a game, as PGN. */
export const review = (detail) => dispatchEvent(new CustomEvent("review", { detail }));

/** Asks the user to confirm `action` before something is lost; returns the answer. */
export function confirmed(question, action) {
  const dialog = element("dialog", { className: "confirm" });
  const form = element("form", { method: "dialog" }, element("p", { textContent: question }));
  form.append(
    element("div", { className: "buttons" },
      element("button", { value: "no", textContent: t("Cancel"), autofocus: true }),
      element("button", { value: "yes", textContent: action, className: "danger" })),
  );
  dialog.append(form);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
  });
}

/** Returns a function that calls `act` once it has not been called again for `wait` milliseconds. */
export function settled(act, wait) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), wait);
  };
}

// The moves of a game as a table, including variations, marks and clocks.

import { element } from "./dom.js";
import { moveNumber } from "./tree.js";

/** Formats a clock: hours, if there are any, minutes and seconds. */
function clockText(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const pad = (number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${pad(minutes)}:${pad(rest)}` : `${minutes}:${pad(rest)}`;
}

export class MoveList {
  /** `choose` is called with the clicked node. `about`, if given, returns what is known about a node's move: its
   * `sign`, its `mark` and the mark's `title`, and a `note` that follows it. A node has its `clock` in seconds, if that
   * is known. */
  constructor(list, { choose, about = () => ({}) }) {
    Object.assign(this, { list, choose, about });
  }

  show(tree, current) {
    const hadFocus = this.list.contains(document.activeElement);
    this.current = current;
    this.list.replaceChildren();
    this.append(this.list, tree.root, true);
    const here = this.list.querySelector("[aria-current]");
    if (hadFocus) here?.focus({ preventScroll: true });
    if (here) reveal(this.list, here);
    else this.list.scrollTo(0, 0);
  }

  /** Adds the moves after a node; a move that does not directly follow another move gets its number. */
  append(list, node, isFirst) {
    while (node.children.length) {
      const [main, ...others] = node.children;
      const { note } = this.about(main);
      list.append(element("li", { className: node.position.turn }, this.button(main, isFirst)));
      if (note) list.append(element("li", { className: "note", textContent: note }));
      for (const other of others) {
        const variation = element("ol", { className: "variation" });
        variation.append(element("li", {}, this.button(other, true)));
        this.append(variation, other, false);
        list.append(element("li", { className: "branch" }, variation));
      }
      isFirst = others.length > 0 || Boolean(note);
      node = main;
    }
  }

  button(node, isFirst) {
    const { sign = "", mark = "", title = "" } = this.about(node);
    const isNumbered = isFirst || node.parent.position.turn === "white";
    const button = element("button", { type: "button", className: mark, title });
    if (isNumbered) button.append(element("i", { textContent: moveNumber(node) }));
    button.append(node.san + sign);
    if (node.clock !== undefined) button.append(" ", element("time", { textContent: clockText(node.clock) }));
    button.dataset.ply = node.ply;
    if (node === this.current) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => this.choose(node));
    return button;
  }
}

/** Scrolls the list, but never the page, until one of its elements is visible. */
function reveal(list, it) {
  const [outer, inner] = [list.getBoundingClientRect(), it.getBoundingClientRect()];
  if (inner.top < outer.top || inner.bottom > outer.bottom) list.scrollTop += inner.top - outer.top - outer.height / 2;
}

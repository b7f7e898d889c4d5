// The moves of a game, including variations, as buttons.

import { element } from "./dom.js";
import { moveNumber } from "./tree.js";

export class MoveList {
  /** `choose` is called with the clicked node; `decorate`, if given, is called with each button and its node. */
  constructor(list, { choose, decorate = () => {} }) {
    Object.assign(this, { list, choose, decorate });
  }

  show(tree, current) {
    this.current = current;
    this.list.replaceChildren();
    this.append(this.list, tree.root, true);
    const here = this.list.querySelector("[aria-current]");
    if (here) reveal(this.list, here);
    else this.list.scrollTo(0, 0);
  }

  /** Adds the moves after a node; a move that does not directly follow another move gets its number. */
  append(list, node, isFirst) {
    while (node.children.length) {
      const [main, ...others] = node.children;
      list.append(element("li", {}, this.button(main, isFirst)));
      for (const other of others) {
        const variation = element("ol", { className: "variation" });
        variation.append(element("li", {}, this.button(other, true)));
        this.append(variation, other, false);
        list.append(element("li", { className: "branch" }, variation));
      }
      isFirst = others.length > 0;
      node = main;
    }
  }

  button(node, isFirst) {
    const isNumbered = isFirst || node.parent.position.turn === "white";
    const button = element("button", { type: "button", textContent: (isNumbered ? moveNumber(node) : "") + node.san });
    if (node === this.current) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => this.choose(node));
    this.decorate(button, node);
    return button;
  }
}

/** Scrolls the list, but never the page, until one of its elements is visible. */
function reveal(list, it) {
  const [outer, inner] = [list.getBoundingClientRect(), it.getBoundingClientRect()];
  if (inner.top < outer.top || inner.bottom > outer.bottom) list.scrollTop += inner.top - outer.top - outer.height / 2;
  if (inner.left < outer.left || inner.right > outer.right) list.scrollLeft += inner.left - outer.left - outer.width / 2;
}

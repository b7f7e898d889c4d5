// The board: chessground, with a field for moves that are typed and words for those who
// do not see it.

import { Chessground } from "/board/chessground.js";
import { chessgroundDests } from "/board/chessops/compat.js";
import { makeFen } from "/board/chessops/fen.js";
import { makeSquare, parseSquare } from "/board/chessops/util.js";
import { describe } from "./game.js";

/** An element with properties and children. */
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** What a pawn becomes: asks in a dialog. */
function askPromotion() {
  const dialog = element("dialog", { className: "promotion" });
  const form = element("form", { method: "dialog" });
  form.append(element("p", { textContent: "The pawn becomes a" }));
  for (const role of ["queen", "rook", "bishop", "knight"]) {
    form.append(element("button", { value: role, textContent: role }));
  }
  dialog.append(form);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue || undefined);
    });
  });
}

export class Board {
  /** `play` is called with a legal move, `select` with the name of a square. */
  constructor(wrap, { play, select } = {}) {
    this.wrap = wrap;
    this.play = play;
    this.words = element("p", { className: "hidden" });
    this.words.setAttribute("aria-live", "off");
    wrap.after(this.words);
    wrap.setAttribute("role", "img");
    this.ground = Chessground(wrap, {
      coordinates: true,
      movable: { free: false, events: { after: (from, to) => this.moved(from, to) } },
      drawable: { enabled: false },
      events: { select },
      disableContextMenu: true,
    });
    if (play) this.addField();
  }

  addField() {
    const id = `${this.wrap.id}-move`;
    this.list = element("datalist", { id: `${id}s` });
    this.field = element("input", { id, autocomplete: "off", spellcheck: false });
    this.field.setAttribute("list", this.list.id);
    this.field.placeholder = "e4, Nf3, O-O, e2e4";
    const form = element("form", { className: "typed" });
    form.append(element("label", { htmlFor: id, textContent: "Your move" }), this.field, this.list);
    form.append(element("button", { textContent: "Play" }));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const move = this.field.value && this.isMine && this.game.legal(this.field.value);
      this.field.setCustomValidity(move ? "" : "no legal move");
      if (!move) return this.field.reportValidity();
      this.field.value = "";
      this.play(move);
    });
    this.field.addEventListener("input", () => this.field.setCustomValidity(""));
    this.words.after(form);
  }

  async moved(from, to) {
    const move = { from: parseSquare(from), to: parseSquare(to) };
    const pawn = this.game.position.board.get(move.from)?.role === "pawn";
    if (pawn && (move.to < 8 || move.to > 55)) {
      move.promotion = await askPromotion();
      if (!move.promotion) return this.show(this.game, this.options);
    }
    const text = from + to + ({ queen: "q", rook: "r", bishop: "b", knight: "n" }[move.promotion] ?? "");
    this.play(this.game.legal(text));
  }

  /** Shows a game's last position. `mine` is the colour that may move, or `both`. */
  show(game, options = {}) {
    this.game = game;
    this.options = options;
    const { orientation = "white", mine } = options;
    const position = game.position;
    const isOver = options.isOver ?? false;
    this.isMine = !isOver && (mine === "both" || mine === position.turn);
    const last = game.moves.at(-1)?.uci;
    this.ground.set({
      fen: makeFen(position.toSetup()),
      orientation,
      turnColor: position.turn,
      check: position.isCheck(),
      lastMove: last ? [last.slice(0, 2), last.slice(2, 4)] : [],
      movable: {
        color: this.isMine ? mine : undefined,
        dests: this.isMine ? chessgroundDests(position) : new Map(),
      },
      highlight: { custom: new Map() },
    });
    const sans = this.list && this.isMine ? game.sans() : [];
    this.list?.replaceChildren(...sans.map((value) => element("option", { value })));
    this.arrows([]);
    const words = describe(position);
    this.wrap.ariaLabel = `Board. ${words}`;
    this.words.textContent = words;
  }

  /** Draws arrows: `{ uci, share }`, the share being 0…1. */
  arrows(moves, brush = "green") {
    const shapes = moves.map(({ uci, share }) => ({
      orig: uci.slice(0, 2),
      dest: uci.slice(2, 4),
      brush,
      modifiers: { lineWidth: Math.round(2 + 14 * share) },
    }));
    this.ground.setAutoShapes(shapes);
  }

  /** Lights squares up: 64 numbers in 0…1 from a1 to h8. */
  light(weights) {
    const most = Math.max(...weights, 1e-6);
    const custom = new Map();
    weights.forEach((weight, square) => {
      const tenth = Math.round((10 * weight) / most);
      if (tenth > 0) custom.set(makeSquare(square), `seen seen-${tenth}`);
    });
    this.ground.set({ highlight: { custom } });
  }

  redraw() {
    this.ground.redrawAll();
  }
}

// The board: chessground, with a description for people who cannot see it.

import { Chessground } from "/board/chessground.js";
import { chessgroundDests } from "/board/chessops/compat.js";
import { makeSquare, parseSquare } from "/board/chessops/util.js";
import { element } from "./dom.js";
import { fenOf } from "./fen.js";
import { describe } from "./game.js";
import { t } from "./messages.js";
import { askPromotion } from "./promotion.js";
import { TypedMoves } from "./typed.js";

const LETTERS = { queen: "q", rook: "r", bishop: "b", knight: "n" };
/** Number of milliseconds after which a resting finger draws, and the pixels that it may move meanwhile. */
const LONG_TOUCH = 450;
const REST = 10;

export class Board {
  /** `play` is called with a legal move, which may also be typed in the form `typed`; `select` is called with the
   * name of a square, and `premoved` when a premove is set or cancelled. */
  constructor(wrap, { play, typed, select, premoved } = {}) {
    this.wrap = wrap;
    this.play = play;
    this.words = element("p", { className: "hidden" });
    wrap.after(this.words);
    wrap.setAttribute("role", "img");
    this.ground = Chessground(wrap, {
      coordinates: true,
      movable: { free: false, events: { after: (from, to, { premove }) => this.moved(from, to, premove) } },
      premovable: { enabled: false, events: { set: premoved, unset: premoved } },
      events: { select },
      disableContextMenu: true,
    });
    this.drawByTouch();
    if (typed) this.typed = new TypedMoves(typed, play);
  }

  /** Lets a long touch draw circles and arrows, as the right mouse button does. */
  drawByTouch() {
    let timer;
    let start;
    let shapes;
    const draw = ({ target, clientX, clientY }) => {
      this.ground.cancelMove();
      // The touch has erased them.
      this.ground.setShapes(shapes);
      const options = { bubbles: true, cancelable: true, button: 2, buttons: 2, clientX, clientY };
      target.dispatchEvent(new MouseEvent("mousedown", options));
    };
    const listen = (name, act) => this.wrap.addEventListener(name, act, { passive: false, capture: true });
    listen("touchstart", ({ touches }) => {
      clearTimeout(timer);
      start = touches[0];
      ({ shapes } = this.ground.state.drawable);
      if (touches.length === 1) timer = setTimeout(draw, LONG_TOUCH, start);
    });
    listen("touchmove", (event) => {
      const [{ clientX, clientY }] = event.touches;
      if (Math.hypot(clientX - start.clientX, clientY - start.clientY) > REST) clearTimeout(timer);
      if (this.ground.state.drawable.current) event.preventDefault();
    });
    for (const name of ["touchend", "touchcancel"]) {
      listen(name, (event) => {
        clearTimeout(timer);
        // Otherwise the browser would send a click, which erases drawings.
        if (this.ground.state.drawable.current && event.cancelable) event.preventDefault();
      });
    }
  }

  async moved(from, to, isPremove) {
    const move = { from: parseSquare(from), to: parseSquare(to) };
    const { game, options } = this;
    const pawn = game.position.board.get(move.from)?.role === "pawn";
    let letter = "";
    if (pawn && (move.to < 8 || move.to > 55)) {
      const role = isPremove ? "queen" : await askPromotion(this.wrap, move.to, this.ground.state.orientation);
      // The game may have changed in the meantime.
      if (this.game !== game) return;
      if (!role) return this.show(game, options);
      letter = LETTERS[role];
    }
    this.play(game.legal(from + to + letter));
  }

  /** Returns the squares of the premove, such as `e2–e4`; nothing if there is none. */
  premove() {
    return this.ground.state.premovable.current?.join("–");
  }

  /** Plays the premove, if there is one and it is legal now. */
  playPremove() {
    this.ground.playPremove();
  }

  /** Shows the last position of a game. `mine` is the colour that may move, or `both`; `ahead` is a colour that may
   * choose its next move before the opponent has moved; `why` states why no other move can be made. A plain board does
   * not mark the last move. */
  show(game, options = {}) {
    this.game = game;
    this.options = options;
    const { orientation = "white", mine, ahead, why, isPlain } = options;
    const { position } = game;
    const isMine = mine === "both" || mine === position.turn;
    const last = game.moves.at(-1)?.uci;
    this.wrap.querySelector(".promotion")?.remove();
    if (!isMine && !ahead) this.ground.cancelPremove();
    const fen = fenOf(position);
    // A new position erases drawings.
    const shapes = fen === this.fen ? this.ground.state.drawable.shapes : [];
    this.fen = fen;
    this.ground.set({
      fen,
      orientation,
      turnColor: position.turn,
      check: position.isCheck(),
      lastMove: last && !isPlain ? [last.slice(0, 2), last.slice(2, 4)] : [],
      movable: {
        color: isMine ? mine : ahead,
        dests: isMine ? chessgroundDests(position) : new Map(),
      },
      premovable: { enabled: Boolean(ahead) },
      drawable: { shapes },
      highlight: { custom: new Map() },
    });
    this.typed?.offer(isMine ? game : undefined, why ?? t("It is not your move."));
    this.arrows([]);
    const words = describe(position);
    this.wrap.ariaLabel = t("Board. {words}", { words });
    this.words.textContent = words;
  }

  /** Draws arrows `{ uci, share }`, where the share is in 0…1. */
  arrows(moves, brush = "green") {
    const shapes = moves.map(({ uci, share }) => ({
      orig: uci.slice(0, 2),
      dest: uci.slice(2, 4),
      brush,
      // Wider lines would have arrowheads that cover a square.
      modifiers: { lineWidth: Math.round(3 + 5 * share) },
    }));
    this.ground.setAutoShapes(shapes);
  }

  /** Colours squares by 64 values from a1 to h8; the strongest gets the full colour. Values below 0 have a different
   * colour. */
  light(weights) {
    const most = Math.max(...weights.map(Math.abs), 1e-6);
    const custom = new Map();
    weights.forEach((weight, square) => {
      const tenth = Math.round((10 * Math.abs(weight)) / most);
      if (tenth > 0) custom.set(makeSquare(square), `seen seen-${tenth}${weight < 0 ? " against" : ""}`);
    });
    this.ground.set({ highlight: { custom } });
  }

  redraw() {
    this.ground.redrawAll();
  }
}

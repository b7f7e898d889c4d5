// The board: chessground, with a description for people who cannot see it.

import { Chessground } from "/board/chessground.js";
import { chessgroundDests } from "/board/chessops/compat.js";
import { makeSquare, parseSquare } from "/board/chessops/util.js";
import { element } from "./dom.js";
import { fenOf } from "./fen.js";
import { describe } from "./game.js";
import { askPromotion } from "./promotion.js";
import { TypedMoves } from "./typed.js";

const LETTERS = { queen: "q", rook: "r", bishop: "b", knight: "n" };

export class Board {
  /** `play` is called with a legal move, which may also be typed in the form `typed`; `select` is called with the
   * name of a square. */
  constructor(wrap, { play, typed, select } = {}) {
    this.wrap = wrap;
    this.play = play;
    this.words = element("p", { className: "hidden" });
    wrap.after(this.words);
    wrap.setAttribute("role", "img");
    this.ground = Chessground(wrap, {
      coordinates: true,
      movable: { free: false, events: { after: (from, to) => this.moved(from, to) } },
      premovable: { enabled: false },
      drawable: { enabled: false },
      events: { select },
      disableContextMenu: true,
    });
    if (typed) this.typed = new TypedMoves(typed, play);
  }

  async moved(from, to) {
    const move = { from: parseSquare(from), to: parseSquare(to) };
    const { game, options } = this;
    const pawn = game.position.board.get(move.from)?.role === "pawn";
    let letter = "";
    if (pawn && (move.to < 8 || move.to > 55)) {
      const role = await askPromotion(this.wrap, move.to, this.ground.state.orientation);
      // The game may have changed in the meantime.
      if (this.game !== game) return;
      if (!role) return this.show(game, options);
      letter = LETTERS[role];
    }
    this.play(game.legal(from + to + letter));
  }

  /** Shows the last position of a game. `mine` is the colour that may move, or `both`; `why` states why no other move
   * can be made. A plain board does not mark the last move. */
  show(game, options = {}) {
    this.game = game;
    this.options = options;
    const { orientation = "white", mine, why, isPlain } = options;
    const { position } = game;
    const isMine = mine === "both" || mine === position.turn;
    const last = game.moves.at(-1)?.uci;
    this.wrap.querySelector(".promotion")?.remove();
    this.ground.set({
      fen: fenOf(position),
      orientation,
      turnColor: position.turn,
      check: position.isCheck(),
      lastMove: last && !isPlain ? [last.slice(0, 2), last.slice(2, 4)] : [],
      movable: {
        color: isMine ? mine : undefined,
        dests: isMine ? chessgroundDests(position) : new Map(),
      },
      highlight: { custom: new Map() },
    });
    this.typed?.offer(isMine ? game : undefined, why ?? "It is not your move.");
    this.arrows([]);
    const words = describe(position);
    this.wrap.ariaLabel = `Board. ${words}`;
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

// Retrying a mistake: the better move has to be found on the board.

import { isAbort } from "./api.js";
import { trouble } from "./dom.js";
import { reviewMove } from "./review_judged.js";
import { MARKS, arrowMoves, fenAt, isBad, lineOf, make, nextMark, winAt, written } from "./review_parts.js";
import { actions, arrow, at, badge, button, buttons, draw, fill, go, open, show, state } from "./review_view.js";

/** Hints at what to look for, by the kind of reason for the best move. */
const TOPICS = {
  mate: "a forced mate",
  back_rank: "a weak back rank",
  hanging: "a piece that can be taken",
  fork: "a fork",
  pin: "a pin",
  skewer: "a skewer",
  discovered: "a discovered attack",
  trapped: "a trapped piece",
  defender: "a piece without its defender",
  recapture: "a piece to take back",
  threat: "a threat to parry",
  passed_pawn: "a passed pawn",
};

class Retry {
  /** A bad move in the report. Its positions were searched with `settings`, the nodes and the rating, and scored by
   * `by`, the judge. */
  constructor(ply, settings, by) {
    this.ply = ply;
    this.settings = settings;
    this.by = by;
    this.start = fenAt(state.report, ply.ply - 1);
    this.best = ply.best.moves[0];
    this.isSolved = false;
    /** The comment on the last attempt, and the game after it. */
    this.said = undefined;
    this.played = undefined;
  }

  /** Returns whether a move is expected. */
  isMoving() {
    return !this.played && !this.isSolved && !state.line;
  }

  leave() {
    this.waiting?.abort();
  }

  before() {
    return state.game.at(this.ply.ply - 1);
  }

  /** Handles a move on the board. */
  async attempt(move) {
    if (!this.isMoving()) return draw();
    const game = this.before();
    const tried = game.play(move);
    this.waiting = new AbortController();
    [this.played, this.said] = [game, undefined];
    draw();
    try {
      this.said = await this.judge(tried);
      if (state.trying === this) draw();
    } catch (error) {
      if (isAbort(error)) return;
      trouble(error.message);
      if (state.trying === this) this.again();
    }
  }

  /** Returns a comment on a move, based on a review of the game that it leads to. */
  async judge({ uci, san }) {
    const { ply, best } = this;
    const bestScore = written(ply.best.evaluation);
    if (uci === best.uci) {
      this.isSolved = true;
      return { isRight: true, text: `${san} is the best move: ${bestScore}.`, facts: ply.reasons.best, line: ["Line", ply.best, this.start] };
    }
    if (uci === ply.uci) return { text: `${san} was played in the game. Find another move.`, facts: [] };
    const variant = state.report.game.tags.filter(([name]) => name === "Variant");
    const tried = await reviewMove(this.start, san, this.settings, this.by, this.waiting.signal, variant);
    const isRight = !isBad(tried);
    this.isSolved = isRight;
    const text = `${san} ${isRight ? "is good as well" : "is not good enough"}: ${written(tried.evaluation) || "the game is over"} instead of ${bestScore}${this.fall(tried.win)}.`;
    return { isRight, text, facts: tried.reasons.played, line: tried.reply && ["Answer", tried.reply, tried.fen], tried };
  }

  /** Says how much lower the winning chances are than with the best move, given White's in percent. */
  fall(win) {
    const own = (chances) => Math.round(this.ply.side === "white" ? chances : 100 - chances);
    const [best, tried] = [winAt(state.report, this.ply.ply - 1), win].map(own);
    return tried < best ? `. Your winning chances are ${tried} % and not ${best} %` : "";
  }

  again() {
    [this.played, this.said, state.line] = [undefined, undefined, null];
    draw();
  }

  /** Shows which piece has to move, and what to look for. */
  hint() {
    const { role } = this.before().position.board.get(number(this.best.from));
    const found = this.ply.reasons.best.map(({ topic }) => TOPICS[topic]).find(Boolean);
    const look = found ? `Look for ${found}. ` : "";
    this.said = { text: `${look}The ${role} on ${this.best.from} moves.`, facts: [], squares: [this.best.from] };
    draw();
  }

  answer() {
    const { best, reasons } = this.ply;
    const text = `The best move is ${this.best.san}: ${written(best.evaluation)}.`;
    [this.isSolved, this.played, state.line] = [true, undefined, null];
    this.said = { text, facts: reasons.best, shapes: [arrow({ ...this.best, kind: "best" })], line: ["Line", best, this.start] };
    draw();
  }

  draw() {
    if (!state.line) this.drawBoard();
    const { ply, said } = this;
    const side = ply.side === "white" ? "White" : "Black";
    const waiting = this.played ? "The move is being looked at." : `${side} is to move: play it on the board, or type it.`;
    const parts = [make("p", { class: said?.isRight ? "right" : "" }, said?.text ?? waiting)];
    for (const { text } of said?.facts ?? []) parts.push(make("p", {}, text));
    if (said?.line) parts.push(lineOf(...said.line, open, state.line));
    parts.push(buttons(...this.choices(), button("Back to the game", () => go(ply.ply))));
    fill(`Find a better move than ${ply.number} ${ply.san}`, this.isSolved ? "good" : "", parts);
  }

  drawBoard() {
    const { ply, said, played } = this;
    const squares = said?.squares ?? said?.facts?.flatMap((fact) => fact.squares) ?? [];
    if (!played) return show(this.before(), said?.shapes, squares, this.isMoving() ? ply.side : undefined);
    const last = played.moves.at(-1).uci.slice(2, 4);
    const mark = said?.tried?.mark ?? "blunder";
    const sign = said?.isRight ? badge(last, "good", "✓") : badge(last, mark, said?.tried ? MARKS[mark].sign : "✗");
    const answer = said?.tried ? arrowMoves(said.tried).filter(({ kind }) => kind === "reply") : [];
    show(played, said ? [...answer.map(arrow), sign] : [], squares);
  }

  /** Returns the possible next actions. */
  choices() {
    if (this.isSolved) {
      const next = nextMark(state.report, this.ply.ply, 1, (it) => isBad(it) && it.best);
      return next ? [button("Next mistake", () => actions.tryAgain(next), "main")] : [];
    }
    const answer = button("Show the answer", () => this.answer());
    if (this.played) return this.said ? [button("Once more", () => this.again(), "main"), answer] : [answer];
    return this.said ? [answer] : [button("Hint", () => this.hint()), answer];
  }
}

/** Converts the name of a square to its number. */
const number = (name) => "abcdefgh".indexOf(name[0]) + 8 * (name[1] - 1);

/** Starts retrying a bad move of the report. */
export function tryAgain(ply, settings, by) {
  go(ply.ply);
  state.trying = new Retry(ply, settings, by);
  draw();
}

// Retrying a mistake: the better move has to be found on the board.

import { isAbort } from "./api.js";
import { trouble } from "./dom.js";
import { message, t } from "./messages.js";
import { reviewMove } from "./review_judged.js";
import { MARKS, arrowMoves, fenAt, isBad, lineOf, make, nextMark, winAt, written } from "./review_parts.js";
import { actions, arrow, at, badge, button, buttons, draw, fill, go, open, show, state } from "./review_view.js";

/** Hints at what to look for, by the kind of reason for the best move, and at the piece that moves. */
const TOPICS = {
  mate: message("Look for a forced mate."),
  back_rank: message("Look for a weak back rank."),
  hanging: message("Look for a piece that can be taken."),
  fork: message("Look for a fork."),
  pin: message("Look for a pin."),
  skewer: message("Look for a skewer."),
  discovered: message("Look for a discovered attack."),
  trapped: message("Look for a trapped piece."),
  defender: message("Look for a piece without its defender."),
  recapture: message("Look for a piece to take back."),
  threat: message("Look for a threat to parry."),
  passed_pawn: message("Look for a passed pawn."),
};

const PIECES = {
  king: message("The king on {square} moves."), queen: message("The queen on {square} moves."), rook: message("The rook on {square} moves."),
  bishop: message("The bishop on {square} moves."), knight: message("The knight on {square} moves."), pawn: message("The pawn on {square} moves."),
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
      return { isRight: true, text: t("{move} is the best move: {score}.", { move: san, score: bestScore }), facts: ply.reasons.best, line: [t("Line"), ply.best, this.start] };
    }
    if (uci === ply.uci) return { text: t("{move} was played in the game. Find another move.", { move: san }), facts: [] };
    const variant = state.report.game.tags.filter(([name]) => name === "Variant");
    const tried = await reviewMove(this.start, san, this.settings, this.by, this.waiting.signal, variant);
    const isRight = !isBad(tried);
    this.isSolved = isRight;
    const values = { move: san, score: written(tried.evaluation) || t("the game is over"), best: bestScore };
    const verdict = isRight ? t("{move} is good as well: {score} instead of {best}.", values) : t("{move} is not good enough: {score} instead of {best}.", values);
    const text = `${verdict} ${this.fall(tried.win)}`.trim();
    return { isRight, text, facts: tried.reasons.played, line: tried.reply && [t("Answer"), tried.reply, tried.fen], tried };
  }

  /** Says how much lower the winning chances are than with the best move, given White's in percent. */
  fall(win) {
    const own = (chances) => Math.round(this.ply.side === "white" ? chances : 100 - chances);
    const [best, tried] = [winAt(state.report, this.ply.ply - 1), win].map(own);
    const values = { tried: `${tried}\u00a0%`, best: `${best}\u00a0%` };
    return tried < best ? t("Your winning chances are {tried} and not {best}.", values) : "";
  }

  again() {
    [this.played, this.said, state.line] = [undefined, undefined, null];
    draw();
  }

  /** Shows which piece has to move, and what to look for. */
  hint() {
    const { role } = this.before().position.board.get(number(this.best.from));
    const found = this.ply.reasons.best.map(({ topic }) => TOPICS[topic]).find(Boolean);
    const moves = t(PIECES[role], { square: this.best.from });
    this.said = { text: found ? `${t(found)} ${moves}` : moves, facts: [], squares: [this.best.from] };
    draw();
  }

  answer() {
    const { best, reasons } = this.ply;
    const text = t("The best move is {move}: {score}.", { move: this.best.san, score: written(best.evaluation) });
    [this.isSolved, this.played, state.line] = [true, undefined, null];
    this.said = { text, facts: reasons.best, shapes: [arrow({ ...this.best, kind: "best" })], line: [t("Line"), best, this.start] };
    draw();
  }

  draw() {
    if (!state.line) this.drawBoard();
    const { ply, said } = this;
    const turn = ply.side === "white" ? t("White is to move: play it on the board, or type it.") : t("Black is to move: play it on the board, or type it.");
    const waiting = this.played ? t("The move is being looked at.") : turn;
    const parts = [make("p", { class: said?.isRight ? "right" : "" }, said?.text ?? waiting)];
    for (const { text } of said?.facts ?? []) parts.push(make("p", { lang: "en" }, text));
    if (said?.line) parts.push(lineOf(...said.line, open, state.line));
    parts.push(buttons(...this.choices(), button(t("Back to the game"), () => go(ply.ply))));
    fill(t("Find a better move than {move}", { move: `${ply.number} ${ply.san}` }), this.isSolved ? "good" : "", parts);
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
      return next ? [button(t("Next mistake"), () => actions.tryAgain(next), "main")] : [];
    }
    const answer = button(t("Show the answer"), () => this.answer());
    if (this.played) return this.said ? [button(t("Once more"), () => this.again(), "main"), answer] : [answer];
    return this.said ? [answer] : [button(t("Hint"), () => this.hint()), answer];
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

// The input field for typed moves.

import { element } from "./dom.js";
import { whyIllegal } from "./illegal.js";
import { t } from "./messages.js";

export class TypedMoves {
  /** Fills in `form`; `play` is called with a legal move. */
  constructor(form, play) {
    const id = `${form.id}-move`;
    this.list = element("datalist", { id: `${id}s` });
    this.field = element("input", { id, autocomplete: "off", spellcheck: false, autocapitalize: "off", enterKeyHint: "go" });
    this.field.setAttribute("list", this.list.id);
    this.field.setAttribute("aria-describedby", `${id}-problem`);
    this.field.placeholder = "e4, Nf3";
    this.problem = element("p", { id: `${id}-problem`, className: "problem" });
    this.problem.setAttribute("role", "alert");
    const label = element("label", { htmlFor: id, textContent: t("Type a move") });
    form.append(label, this.field, this.list, element("button", { textContent: t("Enter") }), this.problem);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.enter(play);
    });
    this.field.addEventListener("input", () => this.complain(""));
  }

  /** Offers the moves of a game; without a game, no move can be made now, for the reason in `why`. */
  offer(game, why) {
    Object.assign(this, { game, why });
    const options = (game?.sans() ?? []).map((value) => element("option", { value }));
    this.list.replaceChildren(...options);
    this.complain("");
  }

  enter(play) {
    const text = this.field.value.trim();
    if (!text) return;
    const move = this.game?.legal(text);
    if (!move) return this.complain(this.game ? whyIllegal(this.game.position, text) : this.why);
    this.field.value = "";
    play(move);
  }

  complain(text) {
    this.problem.textContent = text;
    this.field.setAttribute("aria-invalid", Boolean(text));
  }
}

// The bar next to the board, which shows White's expected score. It is empty until an evaluation is
// available.

import { element } from "./dom.js";
import { t } from "./messages.js";
import { expected, percent, scoreText, whites } from "./score.js";

export class EvalBar {
  constructor(place) {
    this.place = place;
    this.fill = element("i");
    this.text = element("b");
    place.append(this.fill, this.text);
    place.setAttribute("role", "meter");
    place.setAttribute("aria-valuemin", "0");
    place.setAttribute("aria-valuemax", "100");
    this.clear();
  }

  /** Shows a line's score and result probabilities, which are for the side to move. */
  show({ score, wdl }, turn) {
    const results = whites(wdl, turn);
    const share = 100 * expected(results);
    const [win, draw, loss] = results.map(percent);
    this.place.classList.add("known");
    this.place.classList.toggle("black", share < 50);
    this.fill.style.height = `${share}%`;
    const text = scoreText(score, turn).replace(/[+−]/, "");
    this.text.textContent = text.includes(".") ? Number(text).toFixed(1) : text;
    this.place.setAttribute("aria-valuenow", Math.round(share));
    this.say(t("Evaluation {score}: White wins {win}, draw {draw}, Black wins {loss}", { score: scoreText(score, turn), win, draw, loss }));
  }

  clear() {
    this.place.classList.remove("known", "black");
    this.fill.style.height = "0";
    this.text.textContent = "";
    this.place.setAttribute("aria-valuenow", "50");
    this.say(t("Evaluation: not known yet"));
  }

  /** Puts White's end of the bar at White's side of the board. */
  turn(orientation) {
    this.place.classList.toggle("flipped", orientation === "black");
  }

  say(words) {
    this.place.title = words;
    this.place.ariaLabel = words;
    this.place.setAttribute("aria-valuetext", words);
  }
}

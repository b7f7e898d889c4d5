// A single rating scale for all parts: the ratings at which the network of human play is queried.

import { recall, remember } from "./store.js";

const SCALE = { min: 600, max: 2600, step: 50 };

/** Turns all fields `[data-rating]` into sliders. The number in a slider's label follows it, and a name in
 * `data-rating` is the key under which its value is stored. */
export function setUpSliders() {
  for (const field of document.querySelectorAll("input[data-rating]")) {
    const key = field.dataset.rating && `rating-${field.dataset.rating}`;
    const usual = field.getAttribute("value");
    Object.assign(field, { type: "range", ...SCALE, value: key ? recall(key, usual) : usual });
    const number = field.closest(".rated").querySelector("b");
    const tell = () => (number.textContent = field.value);
    field.addEventListener("input", () => {
      tell();
      if (key) remember(key, field.value);
    });
    tell();
  }
}

// One scale of ratings everywhere: that at which the network of people's play is asked.

import { recall, remember } from "./store.js";

const SCALE = { min: 600, max: 2600, step: 50 };

/** Makes sliders of all fields `[data-rating]`; the number in their label follows them, and
 * those with a name in `data-rating` are kept under it. */
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

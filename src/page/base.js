"use strict";
const data = JSON.parse(document.querySelector("script[type='application/json']").textContent);

/* Elements and numbers */

/** Fills an element with those parts that exist. Its section is hidden where there is none. */
function fill(id, parts) {
  const place = document.getElementById(id);
  place.replaceChildren(...parts.filter(Boolean));
  place.closest("section").hidden = !place.hasChildNodes();
}

function short(value) {
  // A maximum of nothing is infinite.
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return `${+(value / 1e9).toPrecision(4)} G`;
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(4)} M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(4)} k`;
  if (size > 0 && size < 1e-3) return value.toExponential(1);
  return String(+value.toPrecision(4));
}
const percent = (value) => (Number.isFinite(value) ? `${(100 * value).toFixed(2)} %` : "–");

/** Round numbers that part a range into about `count` pieces. */
function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough);
  const first = Math.ceil(low / step - 1e-9);
  const found = [];
  for (let number = first; number * step <= high + step * 1e-9; number++) found.push(+(number * step).toPrecision(12));
  return found;
}

// Line charts, as SVG.

import { element, svg } from "./dom.js";

const WIDTH = 360;
const HEIGHT = 200;
const MARGIN = { top: 8, right: 52, bottom: 30, left: 38 };
/** Minimum distance between the names at the ends of the lines. */
const LEADING = 13;

/** Draws lines through `points` `[x, y]`, each with a `name` at its end. An axis has `from`, `to`, `ticks` and a
 * `label`, and may have a `format`; `marked` is the x of a vertical rule. */
export function chart(lines, { x, y, marked, words }) {
  const across = scale(x, MARGIN.left, WIDTH - MARGIN.right);
  const up = scale(y, HEIGHT - MARGIN.bottom, MARGIN.top);
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart", role: "img", "aria-label": words });
  for (const tick of y.ticks) {
    drawing.append(
      svg("line", { class: "grid", x1: MARGIN.left, x2: WIDTH - MARGIN.right, y1: up(tick), y2: up(tick) }),
      svg("text", { class: "tick", x: MARGIN.left - 5, y: up(tick) + 3.5, "text-anchor": "end" }, label(y, tick)),
    );
  }
  for (const tick of x.ticks) {
    // The lines' names are to the right of the last tick.
    const anchor = tick === x.to ? "end" : "middle";
    drawing.append(svg("text", { class: "tick", x: across(tick), y: HEIGHT - MARGIN.bottom + 14, "text-anchor": anchor }, label(x, tick)));
  }
  drawing.append(svg("text", { class: "tick", x: (MARGIN.left + WIDTH - MARGIN.right) / 2, y: HEIGHT - 3, "text-anchor": "middle" }, x.label));
  if (marked !== undefined) {
    drawing.append(svg("line", { class: "marked", x1: across(marked), x2: across(marked), y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }));
  }
  const ends = spread(lines.map(({ points }) => up(points.at(-1)[1])));
  for (const [index, { name, points }] of lines.entries()) {
    const path = points.map(([px, py], at) => `${at ? "L" : "M"}${across(px).toFixed(1)} ${up(py).toFixed(1)}`).join("");
    drawing.append(
      svg("path", { class: `line line-${index}`, d: path }, svg("title", {}, name)),
      svg("text", { class: `name line-${index}`, x: WIDTH - MARGIN.right + 6, y: ends[index] + 4 }, name),
    );
  }
  return drawing;
}

const label = ({ format = String }, tick) => format(tick);

function scale({ from, to }, low, high) {
  return (value) => low + ((value - from) / (to - from)) * (high - low);
}

/** Moves labels apart that are too close to be readable, keeping their order: first downwards, then up again from
 * the bottom. */
function spread(places) {
  const order = places.map((_, index) => index).sort((one, other) => places[one] - places[other]);
  const moved = [...places];
  let least = -Infinity;
  for (const index of order) {
    moved[index] = Math.max(moved[index], least);
    least = moved[index] + LEADING;
  }
  let most = HEIGHT - LEADING;
  for (const index of order.reverse()) {
    moved[index] = Math.min(moved[index], most);
    most = moved[index] - LEADING;
  }
  return moved;
}

/** Creates the colour key of a line, which is shown next to its name in a list. */
export const key = (index) => element("i", { className: `key line-${index}` });

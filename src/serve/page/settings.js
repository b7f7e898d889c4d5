// A person's settings for the page, stored in the browser.

import { svg } from "./dom.js";
import { keepFields } from "./fields.js";
import { recall, remember } from "./store.js";

const USUAL = { language: "auto", theme: "auto", board: "wood", pieces: "cburnett", sound: true, coordinates: true };
const LETTERS = { pawn: "p", knight: "n", bishop: "b", rook: "r", queen: "q", king: "k" };

const dialog = document.getElementById("settings");
const form = dialog.querySelector("form");
const NAMES = [...Object.keys(USUAL), "judge"];
const chosen = { ...USUAL, ...Object.fromEntries(Object.entries(recall("settings", {})).filter(([name]) => NAMES.includes(name))) };

/** Returns a setting; `undefined` if it has no usual value and was not chosen. */
export const setting = (name) => chosen[name];

function apply() {
  const { dataset } = document.documentElement;
  dataset.theme = chosen.theme;
  dataset.board = chosen.board;
  dataset.pieces = chosen.pieces;
  dataset.coordinates = chosen.coordinates ? "on" : "off";
  if (chosen.pieces === "tessera") drawPieces();
}

/** Creates the second set of pieces from its drawings, once. */
async function drawPieces() {
  if (document.adoptedStyleSheets.length) return;
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  const text = await (await fetch("/page/pieces.svg")).text();
  const drawings = new DOMParser().parseFromString(`<svg xmlns="http://www.w3.org/2000/svg">${text}</svg>`, "image/svg+xml");
  const rules = Object.entries(LETTERS).flatMap(([role, letter]) => {
    const drawing = drawings.getElementById(`piece-${letter}`);
    return ["white", "black"].map((color) => {
      const image = `data:image/svg+xml,${encodeURIComponent(picture(drawing, color, role))}`;
      return `[data-pieces="tessera"] .cg-wrap piece.${role}.${color} { background-image: url("${image}"); }`;
    });
  });
  sheet.replaceSync(rules.join("\n"));
}

function picture(drawing, color, role) {
  const [fill, stroke] = color === "white" ? ["#fdfdfb", "#2b2b2e"] : ["#2b2b2e", "#0f1013"];
  const style = `stroke-width="1.3" stroke-linejoin="round" fill="${fill}" stroke="${stroke}"`;
  // The king's cross is drawn outside the piece, on the square.
  const mark = color === "white" || role === "king" ? stroke : "#d8d6d0";
  const inside = drawing.innerHTML.replaceAll('class="mark"', `stroke="${mark}"`);
  const root = svg("svg", { viewBox: "3 3 34 34" });
  return root.outerHTML.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"').replace("></svg>", `><g ${style}>${inside}</g></svg>`);
}

form.addEventListener("change", ({ target: { name, type, checked, value } }) => {
  chosen[name] = type === "checkbox" ? checked : value;
  remember("settings", chosen);
  if (name === "language") {
    // The page is translated while it loads.
    keepFields();
    return location.reload();
  }
  apply();
  dispatchEvent(new CustomEvent("settings"));
});

/** Opens the dialog. `shown` are settings that are in effect whatever was chosen. */
export function openSettings(shown) {
  for (const [name, value] of Object.entries({ ...chosen, ...shown })) {
    const field = form.elements[name];
    if (typeof value === "boolean") field.checked = value;
    else field.value = value;
  }
  dialog.showModal();
}
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
apply();

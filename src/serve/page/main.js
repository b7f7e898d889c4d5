// The parts of the page, and what they share.

import { agents } from "./api.js";
import * as analyse from "./analyse.js";
import { server } from "./choice.js";
import * as generate from "./generate.js";
import * as play from "./play.js";

const parts = { play, analyse, generate };

/** Shows the part that the address names. */
function show() {
  const name = location.hash.slice(1) in parts ? location.hash.slice(1) : "play";
  for (const main of document.querySelectorAll("main")) main.hidden = main.id !== name;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  for (const [other, part] of Object.entries(parts)) {
    if (other !== name) part.leave();
  }
  parts[name].enter();
}

/** Opens a game in the analysis, as text. */
addEventListener("analyse", ({ detail }) => {
  analyse.load(detail);
  location.hash = "#analyse";
});

/** Says what went wrong, until something else is done. */
addEventListener("trouble", ({ detail }) => {
  const trouble = document.getElementById("trouble");
  trouble.textContent = detail;
  trouble.hidden = !detail;
});

/** Arrow keys go through the moves, unless they are needed where they are pressed. */
addEventListener("keydown", (event) => {
  const isField = event.target.closest("input, select, textarea, dialog");
  if (isField || event.ctrlKey || event.metaKey || event.altKey) return;
  const part = Object.keys(parts).find((name) => !document.getElementById(name).hidden);
  if (parts[part].press?.(event.key)) event.preventDefault();
});

addEventListener("hashchange", show);
show();
try {
  Object.assign(server, await agents());
  for (const part of Object.values(parts)) part.begin();
  document.body.dataset.ready = "true";
} catch (error) {
  dispatchEvent(new CustomEvent("trouble", { detail: error.message }));
}

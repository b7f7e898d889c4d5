// The tabs of the page and their shared state.

import * as address from "./address.js";
import * as analyse from "./analyse.js";
import { agents } from "./api.js";
import { element, trouble } from "./dom.js";
import * as explain from "./explain.js";
import { restoreFields } from "./fields.js";
import * as generate from "./generate.js";
import * as judges from "./judges.js";
import { t } from "./messages.js";
import { server } from "./opponents.js";
import * as play from "./play.js";
import * as mistakes from "./practice.js";
import { setUpSliders } from "./rating.js";
import * as review from "./review.js";
import { openSettings } from "./settings.js";

const parts = { play, analyse, review, mistakes, explain, generate };
let isReady = false;
/** The tab that is shown. */
let shown;

/** Returns the tab that the URL names. */
const current = () => (Object.hasOwn(parts, address.read().part) ? address.read().part : "play");

/** Shows the tab that the URL names. */
function show() {
  const name = current();
  for (const main of document.querySelectorAll("main")) main.hidden = main.id !== name;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  // A tab begins at its top, however far the previous one was scrolled.
  if (name !== shown) scrollTo(0, 0);
  shown = name;
  if (!isReady) return;
  for (const [other, part] of Object.entries(parts)) {
    if (other !== name) part.leave();
  }
  const { part, fen, isDamaged } = address.read();
  parts[name].enter(part === name ? fen : "");
  if (isDamaged) trouble(t("The link is damaged, so its position is missing: it may have been cut off."));
  if (part && part !== name) trouble(t("The link names no part of this page: there is no “{part}”.", { part }));
}

/** Opens a game, given as text, in the analysis. */
addEventListener("analyse", ({ detail: { text, ...place } }) => {
  analyse.load(text, place);
  location.hash = "#analyse";
});

/** Reviews a game, given as PGN. */
addEventListener("review", ({ detail }) => {
  location.hash = "#review";
  review.load(detail);
});

/** Shows an error message until the user does something else. */
addEventListener("trouble", ({ detail: { text, retry } }) => {
  const place = document.getElementById("trouble");
  const button = element("button", { textContent: t("Try again") });
  button.addEventListener("click", retry);
  place.replaceChildren(text, ...(retry ? [" ", button] : []));
  place.hidden = !text;
});

/** Keys step through the moves, unless the focused element needs them. */
addEventListener("keydown", (event) => {
  const isField = event.target.closest("input, select, textarea, dialog, .promotion");
  if (isField || event.ctrlKey || event.metaKey || event.altKey || !isReady) return;
  if (parts[current()].press(event.key)) event.preventDefault();
});

/** A closed group would hide the field that the browser complains about. */
addEventListener("invalid", ({ target }) => {
  const group = target.closest("details");
  if (group) group.open = true;
}, { capture: true });

document.getElementById("trouble").addEventListener("click", () => trouble(""));
document.getElementById("settings-open").addEventListener("click", () => openSettings({ judge: judges.chosenJudge() }));
addEventListener("hashchange", show);
setUpSliders();
show();
try {
  Object.assign(server, await agents());
  await judges.begin();
  for (const part of Object.values(parts)) part.begin();
  restoreFields();
  isReady = true;
  show();
  document.body.dataset.ready = "true";
} catch (error) {
  trouble(error.message, () => location.reload());
}

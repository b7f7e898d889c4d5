// The link to a review, on servers that share reviews.

import { post } from "./api.js";
import { locale, t } from "./messages.js";
import { server } from "./opponents.js";

const dialog = document.getElementById("share");
const at = (name) => document.getElementById(`share-${name}`);
const dates = new Intl.DateTimeFormat(locale, { dateStyle: "long", timeStyle: "short" });

/** Returns whether the server shares reviews. */
export const canShare = () => server.limits.shared_s !== null;

/** Asks the server for a link to the review that it makes of a request. */
export async function linkTo(request) {
  const { path, expires } = await post("/v1/review/share", request);
  return { address: new URL(path, location.href).href, expires };
}

/** Shows a link. */
export function showLink({ address, expires }) {
  at("about").textContent = t("Anyone with this link can read the review until {date}.", { date: dates.format(1000 * expires) });
  at("link").value = address;
  at("status").textContent = "";
  dialog.showModal();
  at("link").select();
}

at("copy").addEventListener("click", async () => {
  at("link").select();
  try {
    await navigator.clipboard.writeText(at("link").value);
    at("status").textContent = t("Copied");
  } catch {
    at("status").textContent = t("The browser does not let this page copy. The link is selected: copy it yourself.");
  }
});
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());

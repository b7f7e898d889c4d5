// What was typed into forms, kept when the page reloads itself.

import { recallHere, rememberHere } from "./store.js";

const KEY = "fields";
const FORMS = ["analyse-form", "review-form", "generate-form"];

const fieldsOf = (form) => [...document.forms[form].elements].filter(({ name, type }) => name && !["file", "radio", "checkbox"].includes(type));

/** Keeps the fields for the next load of this window. */
export function keepFields() {
  rememberHere(KEY, FORMS.map((form) => fieldsOf(form).map(({ name, value }) => [name, value])));
}

/** Fills in the fields that were kept. */
export function restoreFields() {
  const kept = recallHere(KEY);
  rememberHere(KEY, undefined);
  if (!Array.isArray(kept)) return;
  for (const [index, form] of FORMS.entries()) {
    const values = new Map(Array.isArray(kept[index]) ? kept[index].filter(Array.isArray) : []);
    for (const field of fieldsOf(form)) {
      const value = values.get(field.name);
      if (typeof value !== "string" || value === field.value) continue;
      // A list does not have every value any more.
      if (field.options && ![...field.options].some((it) => it.value === value)) continue;
      field.value = value;
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }
  }
}

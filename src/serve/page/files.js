// Files that people choose or drop.

import { trouble } from "./dom.js";
import { t } from "./messages.js";

/** Decodes a text file in UTF-8, UTF-16 or, as is usual in older PGN, Latin-1. */
function decode(bytes) {
  const [first, second] = bytes;
  const wide = (encoding) => new TextDecoder(encoding).decode(bytes);
  if ((first === 0xff && second === 0xfe) || second === 0) return wide("utf-16le");
  if ((first === 0xfe && second === 0xff) || first === 0) return wide("utf-16be");
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

/** Calls `read` with the text of each file that is chosen in `field` or dropped on `place`, unless it is empty. */
export function takeFiles(place, field, read) {
  const take = async ([file]) => {
    if (!file) return;
    const text = decode(new Uint8Array(await file.arrayBuffer()));
    if (text.trim()) read(text);
    else trouble(t("The file is empty."));
  };
  field.addEventListener("change", async () => {
    await take(field.files);
    // The same file can be chosen again.
    field.value = "";
  });
  place.addEventListener("dragover", (event) => event.preventDefault());
  place.addEventListener("drop", (event) => {
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    take(event.dataTransfer.files);
  });
}

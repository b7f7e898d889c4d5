// The URL fragment: the tab that is shown and its position, as in
// `#analyse/8/8/8/4k3/8/8/8/4P3/4K3_w_-_-_0_1`.

/** Returns the tab and the position in the URL, and whether the URL is damaged. */
export function read() {
  const [, part, rest] = location.hash.match(/^#([^/]*)\/?(.*)$/) ?? ["", "", ""];
  try {
    return { part, fen: decodeURIComponent(rest).replaceAll("_", " ") };
  } catch {
    return { part, fen: "", isDamaged: true };
  }
}

export const hash = (part, fen) => (fen ? `#${part}/${fen.replaceAll(" ", "_")}` : `#${part}`);

/** Changes the URL without adding an entry to the browser's history. */
export const write = (part, fen) => history.replaceState(null, "", hash(part, fen));

// The URL fragment: the tab that is shown and its position, as in
// `#analyse/8/8/8/4k3/8/8/4P3/4K3_w_-_-_0_1`.

export function read() {
  const [, part, rest] = location.hash.match(/^#(\w*)\/?(.*)$/) ?? ["", "", ""];
  return { part, fen: decodeURIComponent(rest).replaceAll("_", " ") };
}

export const hash = (part, fen) => (fen ? `#${part}/${fen.replaceAll(" ", "_")}` : `#${part}`);

/** Changes the URL without adding an entry to the browser's history. */
export const write = (part, fen) => history.replaceState(null, "", hash(part, fen));

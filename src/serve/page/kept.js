// The games played, kept in the browser as PGN.

const KEY = "games";
/** Games that are kept, the last ones. */
const MOST = 200;

export const kept = () => JSON.parse(localStorage.getItem(KEY) ?? "[]");

export function keep(game) {
  localStorage.setItem(KEY, JSON.stringify([...kept(), game.pgn()].slice(-MOST)));
}

export const forget = () => localStorage.removeItem(KEY);

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    dispatchEvent(new CustomEvent("trouble", { detail: "The browser does not let this page copy: save instead." }));
  }
}

/** Saves text as a file. */
export function save(text, name = "games.pgn", type = "application/x-chess-pgn") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

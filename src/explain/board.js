let isFlipped = data.black;

function place(square) {
  const [file, rank] = [square % 8, square >> 3];
  return isFlipped ? [40 * (7 - file), 40 * rank] : [40 * file, 40 * (7 - rank)];
}

/** A board of pieces, starting at a1: the probability of each in percent, or null if it is known, and the class of
 * its frame. */
function board(pieces, sure, framed) {
  const svg = make("svg", { viewBox: "0 0 320 320", class: "board", role: "img" });
  for (let square = 0; square < 64; square++) {
    const [x, y] = place(square);
    const isLight = (square + (square >> 3)) % 2 === 1;
    const share = sure(square);
    const chance = share === null ? "" : ` (${share} %)`;
    const group = make("g", {}, make("title", {}, `${"abcdefgh"[square % 8]}${1 + (square >> 3)}${chance}`));
    const fill = `fill: var(--${isLight ? "light" : "dark"})`;
    group.append(make("rect", { x, y, width: 40, height: 40, style: fill, class: share === null ? "" : "unknown" }));
    const piece = pieces[square];
    if (piece !== ".") {
      const opacity = share === null ? 1 : Math.max(0.08, share / 100);
      group.append(make("use", { href: `#piece-${piece.toLowerCase()}`, x, y, width: 40, height: 40, opacity, class: piece < "a" ? "white" : "black" }));
    }
    const frame = framed(square);
    if (frame) group.append(make("rect", { x: x + 1, y: y + 1, width: 38, height: 38, class: frame }));
    svg.append(group);
  }
  return svg;
}

/** A table of items with probabilities, except those that would be shown as 0.00 %. */
function likely(head, items, probability, row, texts) {
  const shown = items.filter((it, place) => place === 0 || probability(it) >= 0.5e-4);
  const others = items.length - shown.length;
  return make("div", {}, table(head, shown.map(row), texts), others ? make("p", { class: "note" }, `${others} more, each below 0.005 %.`) : null);
}

/** Shows the page, and again whenever its boards are flipped. */
function shown(show) {
  document.getElementById("flip").addEventListener("click", () => { isFlipped = !isFlipped; show(); });
  document.addEventListener("keydown", (event) => { if (event.key === "f") document.getElementById("flip").click(); });
  show();
}


let isFlipped = data.black;

function place(square) {
  const [file, rank] = [square % 8, square >> 3];
  return isFlipped ? [40 * (7 - file), 40 * rank] : [40 * file, 40 * (7 - rank)];
}

/** A board: pieces from a1, `known` and `sure` by square; squares in `before` were known already. */
function board(pieces, known, sure, before) {
  const svg = make("svg", { viewBox: "0 0 320 320", class: "board", role: "img" });
  for (let square = 0; square < 64; square++) {
    const [x, y] = place(square);
    const isLight = (square + (square >> 3)) % 2 === 1;
    const isKnown = known[square] === "1";
    const fill = `fill: var(--${isLight ? "light" : "dark"})`;
    const chance = isKnown ? "" : ` (${sure[square]} %)`;
    const group = make("g", {}, make("title", {}, `${"abcdefgh"[square % 8]}${1 + (square >> 3)}${chance}`));
    group.append(make("rect", { x, y, width: 40, height: 40, style: fill, class: isKnown ? "" : "unknown" }));
    const piece = pieces[square];
    if (piece !== ".") {
      const opacity = isKnown ? 1 : Math.max(0.08, sure[square] / 100);
      group.append(make("use", { href: `#piece-${piece.toLowerCase()}`, x, y, width: 40, height: 40, opacity, class: piece < "a" ? "white" : "black" }));
    }
    if (isKnown && before && before[square] === "0") group.append(make("rect", { x: x + 1, y: y + 1, width: 38, height: 38, class: "new" }));
    svg.append(group);
  }
  return svg;
}

function show() {
  const steps = document.getElementById("steps");
  steps.replaceChildren();
  const all = "1".repeat(64);
  data.steps.forEach((step, number) => {
    const row = make("div", { class: "step" });
    row.append(make("figure", {}, make("figcaption", {}, "now"), board(data.pieces, all, [], null)));
    step.boards.forEach((frame, ply) => {
      const earlier = number > 0 ? data.steps[number - 1].boards[ply].known : "0".repeat(64);
      const played = step.moves[ply];
      const said = played ? `then ${played.uci} ${played.known ? "•" : ""} ${percent(played.probability)}` : "";
      row.append(make("figure", {}, make("figcaption", {}, `ply ${ply + 1}`), board(frame.pieces, frame.known, frame.sure, earlier), make("p", { class: "note" }, said)));
    });
    const unknown = step.boards.reduce((sum, frame) => sum + [...frame.known].filter((it) => it === "0").length, 0);
    steps.append(make("h2", {}, `Step ${number + 1}: ${unknown} of ${64 * step.boards.length} squares unknown`), row);
  });
}

document.getElementById("fen").textContent = data.fen;
document.getElementById("line").textContent = data.line.length > 1 ? `Imagined line: ${data.line.join(" ")}` : "No line is imagined.";
document.getElementById("moves").append(table(["move", "probability"], data.moves.map((it) => [it.uci, percent(it.prior)])));
document.getElementById("flip").addEventListener("click", () => { isFlipped = !isFlipped; show(); });
document.addEventListener("keydown", (event) => { if (event.key === "f") document.getElementById("flip").click(); });
show();

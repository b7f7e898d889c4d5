let isFlipped = data.black;

function place(square) {
  const [file, rank] = [square % 8, square >> 3];
  return isFlipped ? [40 * (7 - file), 40 * rank] : [40 * file, 40 * (7 - rank)];
}

/** A board: pieces from a1, how sure each is in percent; frames where it is not as in `truth`. */
function board(pieces, sure, truth) {
  const svg = make("svg", { viewBox: "0 0 320 320", class: "board", role: "img" });
  for (let square = 0; square < 64; square++) {
    const [x, y] = place(square);
    const isLight = (square + (square >> 3)) % 2 === 1;
    const chance = sure ? ` (${sure[square]} %)` : "";
    const group = make("g", {}, make("title", {}, `${"abcdefgh"[square % 8]}${1 + (square >> 3)}${chance}`));
    group.append(make("rect", { x, y, width: 40, height: 40, style: `fill: var(--${isLight ? "light" : "dark"})` }));
    const piece = pieces[square];
    if (piece !== ".") {
      const opacity = sure ? Math.max(0.08, sure[square] / 100) : 1;
      group.append(make("use", { href: `#piece-${piece.toLowerCase()}`, x, y, width: 40, height: 40, opacity, class: piece < "a" ? "white" : "black" }));
    }
    if (piece !== truth[square]) group.append(make("rect", { x: x + 2, y: y + 2, width: 36, height: 36, class: "wrong" }));
    svg.append(group);
  }
  return svg;
}

/** Tokens with how likely they are; those that are not legal are struck out. */
function said(tokens) {
  const line = make("p", { class: "note" });
  tokens.forEach((it, number) => {
    if (number > 0) line.append(", ");
    line.append(make("span", { class: it.legal ? "" : "illegal" }, it.text), ` ${percent(it.probability)}`);
  });
  return line;
}

function show() {
  const layers = document.getElementById("layers");
  layers.replaceChildren();
  data.layers.forEach((layer, number) => {
    const most = Math.max(...layer.looks);
    const tokens = make("div", { class: "tokens" });
    data.tokens.forEach((token, at) => {
      const share = layer.looks[at];
      const shade = `background: rgb(0 114 178 / ${(0.7 * share / most).toFixed(3)})`;
      tokens.append(make("span", { style: shade, title: percent(share) }, token));
    });
    const seen = make("div", {});
    const known = layer.board;
    if (known) seen.append(make("figure", {}, make("figcaption", {}, `${known.right} of 64 squares right`), board(known.pieces, known.sure, data.pieces)));
    seen.append(said(layer.next));
    layers.append(make("h2", {}, `Layer ${number + 1}`), make("div", { class: "layer" }, seen, tokens));
  });
}

document.getElementById("fen").textContent = data.fen;
const ends = data.outcome ? ` White wins ${percent(data.outcome[0])}, draw ${percent(data.outcome[1])}, Black wins ${percent(data.outcome[2])}.` : "";
document.getElementById("summary").textContent = `${percent(data.legal_mass)} of the probability is legal.${ends}`;
document.getElementById("next").append(table(["what follows", "probability", "legal"], data.next.map((it) => [it.text, percent(it.probability), it.legal ? "yes" : "no"]), [2]));
document.getElementById("flip").addEventListener("click", () => { isFlipped = !isFlipped; show(); });
document.addEventListener("keydown", (event) => { if (event.key === "f") document.getElementById("flip").click(); });
show();

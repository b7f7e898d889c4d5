/** Lists tokens with their probabilities; illegal ones are struck out. */
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
    if (known) seen.append(make("figure", {}, make("figcaption", {}, `${known.right} of 64 squares right`), board(known.pieces, (square) => known.sure[square], (square) => (known.pieces[square] === data.pieces[square] ? "" : "wrong"))));
    seen.append(said(layer.next));
    layers.append(make("h2", {}, `Layer ${number + 1}`), make("div", { class: "layer" }, seen, tokens));
  });
}

document.getElementById("fen").textContent = data.fen;
const ends = data.outcome ? ` White wins ${percent(data.outcome[0])}, draw ${percent(data.outcome[1])}, Black wins ${percent(data.outcome[2])}.` : "";
document.getElementById("summary").textContent = `${percent(data.legal_mass)} of the probability is legal.${ends}`;
document.getElementById("next").append(likely(["what follows", "probability", "legal"], data.next, (it) => it.probability, (it) => [it.text, percent(it.probability), it.legal ? "yes" : "no"], [2]));
shown(show);

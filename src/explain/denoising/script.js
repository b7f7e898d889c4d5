/** A board at one step: its known squares, the probabilities of the rest in percent, and the squares known `before`. */
function frame(pieces, known, sure, before) {
  const isKnown = (square) => known[square] === "1";
  const isNew = (square) => isKnown(square) && before && before[square] === "0";
  return board(pieces, (square) => (isKnown(square) ? null : sure[square]), (square) => (isNew(square) ? "new" : ""));
}

function show() {
  const steps = document.getElementById("steps");
  steps.replaceChildren();
  const all = "1".repeat(64);
  data.steps.forEach((step, number) => {
    const row = make("div", { class: "step" });
    row.append(make("figure", {}, make("figcaption", {}, "now"), frame(data.pieces, all, [], null)));
    step.boards.forEach((future, ply) => {
      const earlier = number > 0 ? data.steps[number - 1].boards[ply].known : "0".repeat(64);
      const played = step.moves[ply];
      const said = played ? `then ${played.uci} ${played.known ? "•" : ""} ${percent(played.probability)}` : "";
      row.append(make("figure", {}, make("figcaption", {}, `ply ${ply + 1}`), frame(future.pieces, future.known, future.sure, earlier), make("p", { class: "note" }, said)));
    });
    const unknown = step.boards.reduce((sum, future) => sum + [...future.known].filter((it) => it === "0").length, 0);
    steps.append(make("h2", {}, `Step ${number + 1}: ${unknown} of ${64 * step.boards.length} squares unknown`), row);
  });
}

document.getElementById("fen").textContent = data.fen;
document.getElementById("line").textContent = data.line.length > 1 ? `Imagined line: ${data.line.join(" ")}` : "No line is imagined.";
document.getElementById("moves").append(likely(["move", "probability"], data.moves, (it) => it.prior, (it) => [it.uci, percent(it.prior)]));
shown(show);

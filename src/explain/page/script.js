
/* Squares and boards */

const FILES = "abcdefgh";
const squareName = (square) => FILES[square % 8] + (1 + (square >> 3));
const settings = { flipped: false, square: data[0].moves[data[0].chosen].from, target: data[0].moves[data[0].chosen].uci };

/** Returns the pieces in a FEN by square: a letter, or nothing. */
function placement(fen) {
  const pieces = Array(64).fill(null);
  fen.split(" ")[0].split("/").forEach((rank, row) => {
    let file = 0;
    for (const letter of rank) {
      if (letter >= "1" && letter <= "8") file += Number(letter);
      else pieces[8 * (7 - row) + file++] = letter;
    }
  });
  return pieces;
}

/** Returns the left and top edges of a square; squares are 40 wide. */
function corner(square) {
  const file = square % 8, rank = square >> 3;
  return settings.flipped ? [40 * (7 - file), 40 * rank] : [40 * file, 40 * (7 - rank)];
}

const HATCH = "M2 14L14 2M2 26L26 2M2 38L38 2M14 38L38 14M26 38L38 26";

/** Creates a board with pieces. `paint` shades the squares by values, where null means no value. */
function board(fen, label, choose) {
  const svg = make("svg", { viewBox: "0 0 320 320", role: "img", "aria-label": label, class: choose ? "board choice" : "board" });
  const pieces = placement(fen);
  const cells = pieces.map((piece, square) => {
    const [x, y] = corner(square);
    const shade = make("rect", { class: "shade", width: 40, height: 40, opacity: 0 });
    const hatch = make("path", { class: "hatch", d: HATCH, visibility: "hidden" });
    const frame = make("rect", { class: "frame", x: 1.5, y: 1.5, width: 37, height: 37, visibility: "hidden" });
    const text = make("text", { x: 38, y: 11, "text-anchor": "end" });
    const title = make("title");
    const colour = (square + (square >> 3)) % 2 ? "light" : "dark";
    const used = piece && make("use", { href: `#piece-${piece.toLowerCase()}`, width: 40, height: 40, class: piece < "a" ? "white" : "black" });
    const coordinates = [
      x === 0 && make("text", { class: "coordinate", x: 2, y: 8 }, squareName(square)[1]),
      y === 280 && make("text", { class: "coordinate", x: 38, y: 38, "text-anchor": "end" }, squareName(square)[0]),
    ];
    const cell = make("g", { transform: `translate(${x} ${y})`, "data-square": squareName(square) }, title,
      make("rect", { class: `square ${colour}`, width: 40, height: 40 }), shade, hatch, ...coordinates.filter(Boolean), used, frame, text);
    svg.append(cell);
    return { shade, hatch, frame, text, title };
  });
  const paint = (values, { most, describe, marked, numbers } = {}) => {
    const highest = most ?? Math.max(1e-9, ...values.map((value) => Math.abs(value ?? 0)));
    cells.forEach(({ shade, hatch, frame, text, title }, square) => {
      const value = values[square];
      const share = Math.min(1, Math.abs(value ?? 0) / highest);
      shade.setAttribute("class", value === null ? "absent" : value < 0 ? "shade minus" : "shade");
      shade.setAttribute("opacity", value === null ? 1 : 0.85 * share);
      hatch.setAttribute("visibility", value < 0 && share > 0.08 ? "visible" : "hidden");
      hatch.setAttribute("opacity", share);
      frame.setAttribute("visibility", square === marked ? "visible" : "hidden");
      text.textContent = numbers && share > 0.15 ? numbers(value) : "";
      title.textContent = `${squareName(square)}${describe ? `: ${describe(square)}` : ""}`;
    });
  };
  if (choose) {
    svg.setAttribute("tabindex", 0);
    svg.addEventListener("click", (event) => {
      const cell = event.target.closest("[data-square]");
      if (cell) choose(FILES.indexOf(cell.dataset.square[0]) + 8 * (Number(cell.dataset.square[1]) - 1));
    });
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!step) return;
      event.preventDefault();
      const sign = settings.flipped ? -1 : 1;
      const file = (settings.square % 8) + sign * step[0], rank = (settings.square >> 3) + sign * step[1];
      if (file >= 0 && file < 8 && rank >= 0 && rank < 8) choose(8 * rank + file);
    });
  }
  return { svg, paint };
}

/** Creates an arrow between two squares, thicker for a higher probability. */
function arrow(from, to, share) {
  const middle = (square) => corner(square).map((edge) => edge + 20);
  const [x, y] = middle(from), [toX, toY] = middle(to);
  const length = Math.hypot(toX - x, toY - y) || 1;
  const [dx, dy] = [(toX - x) / length, (toY - y) / length];
  const half = 1 + 4 * Math.sqrt(share), head = half + 5;
  const at = (along, across) => `${(x + dx * along - dy * across).toFixed(1)} ${(y + dy * along + dx * across).toFixed(1)}`;
  const neck = length - 4 - 2 * head * 0.7;
  return make("path", { class: "arrow", opacity: 0.35 + 0.5 * share,
    d: `M${at(8, half)}L${at(neck, half)} ${at(neck, head)} ${at(length - 4, 0)} ${at(neck, -head)} ${at(neck, -half)} ${at(8, -half)}Z` });
}

const signed = (value, digits = 2) => (Number.isFinite(value) ? `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}` : "–");
const share = (value) => (Number.isFinite(value) ? `${value < 0 ? "−" : ""}${Math.abs(100 * value).toFixed(1)} %` : "–");
const labelOf = ({ network, ratings }) => network + (ratings ? `, rated ${ratings.map((rating) => rating || "unknown").join(" against ")}` : "");
const withBar = (value) => make("span", {}, make("i", { class: "bar", style: `width: ${(60 * value).toFixed(1)}px` }), share(value));

/** Makes a table row selectable with the mouse or Enter. */
function choosable(row, choose) {
  row.tabIndex = 0;
  row.addEventListener("click", choose);
  row.addEventListener("keydown", (event) => event.key === "Enter" && choose());
}

/** Shows one figure per explanation, next to each other. */
const sideBySide = (id, draw) => fill(id, data.map(draw));

/* Position and moves */

function position(one) {
  const { svg, paint } = board(one.fen, `The position with the policy of ${labelOf(one)}`);
  paint(Array(64).fill(0));
  for (const { from, to, prior } of one.moves.filter(({ prior }) => prior >= 0.03).reverse()) svg.append(arrow(from, to, prior));
  const { q, wdl, moves_left: left, error } = one.evaluation;
  const bar = make("div", { class: "wdl" }, ...["win", "draw", "loss"].map((name, place) =>
    make("span", { class: name, style: `flex: ${wdl[place]}`, title: `${name} ${share(wdl[place])}` }, wdl[place] > 0.12 ? `${name} ${share(wdl[place])}` : "")));
  const facts = [`expected result ${signed(q, 3)}`];
  if (error !== null) facts.push(`± ${Math.sqrt(error).toFixed(2)} expected`);
  if (left !== null) facts.push(`${left.toFixed(0)} plies left`);
  const { best, gap, is_large: isLarge, usual_gap: usual } = one.lookahead;
  const after = make("div", { class: "note" }, `after its best moves ${best.map((index) => `${one.moves[index].san}\u00a0${signed(one.moves[index].q, 3)}`).join(", ")}`);
  const disagrees = isLarge && make("div", { class: "note doubt" }, `The network disagrees with itself: it expects ${Math.abs(gap).toFixed(2)} ${gap > 0 ? "more" : "less"} here than after its best move. Usually the difference is ${usual.toFixed(2)}. A search goes by the values after the moves.`);
  return make("figure", {}, make("figcaption", {}, labelOf(one), make("small", {}, one.moves.slice(0, 3).map(({ san, prior }) => `${san} ${share(prior)}`).join(", "))),
    svg, bar, make("div", { class: "note" }, facts.join(", ")), after, ...(disagrees ? [disagrees] : []));
}

function moves() {
  const head = ["move", ...data.flatMap((one) => data.length > 1 ? [`prior, ${labelOf(one)}`, "value after it"] : ["prior", "value after it", "win, draw, loss"])];
  const rows = data[0].moves.map(({ uci, san }) => [san, ...data.flatMap((one) => {
    const { prior, q, wdl, ending } = one.moves.find((move) => move.uci === uci);
    const value = signed(q, 3) + (ending ? ` (${ending})` : "");
    return data.length > 1 ? [withBar(prior), value] : [withBar(prior), value, wdl.map(share).join(", ")];
  })]);
  const drawn = table(head, rows);
  drawn.rows[1 + data[0].chosen].className = "chosen";
  moveRows = [...drawn.rows].slice(1);
  if (data.some((one) => one.transcoder)) {
    document.getElementById("choose-move").hidden = false;
    moveRows.forEach((row, index) => choosable(row, () => explainTarget(data[0].moves[index].uci)));
    markMove();
  }
  document.getElementById("moves").replaceChildren(drawn);
}

/* Search */

function search(one) {
  const { search } = one;
  if (!search) return null;
  const rows = [];
  /** Returns the moves of one position, with the rows of all moves that follow each. */
  const walk = (parent, depth) => parent.moves.flatMap((move, place) => {
    const starred = place === 0 && parent.disagrees;
    const row = [make("span", { style: `padding-left: ${1.4 * depth}rem` }, `${starred ? "★ " : ""}${move.san}`), move.visits, share(move.prior), signed(move.q, 3), starred ? parent.policy_first : ""];
    const index = rows.push(row) - 1;
    const below = walk(move, depth + 1);
    row.below = below;
    return [index, ...below];
  });
  walk(search, 0);
  const isStarred = rows.some((row) => row[4]);
  const drawn = table(["move", "visits", "prior", "expected result", ...(isStarred ? ["the policy's first"] : [])], rows.map((row) => (isStarred ? row : row.slice(0, 4))), [4]);
  const lines = [...drawn.rows].slice(1);
  const folded = new Set();
  const draw = () => {
    const hidden = new Set([...folded].flatMap((index) => rows[index].below));
    lines.forEach((line, index) => {
      line.hidden = hidden.has(index);
      if (rows[index].below.length) line.setAttribute("aria-expanded", !folded.has(index));
    });
  };
  lines.forEach((line, index) => {
    if (!rows[index].below.length) return;
    const fold = () => {
      if (!folded.delete(index)) folded.add(index);
      draw();
    };
    choosable(line, fold);
    // The first line of play stays expanded.
    if (index > 0 && rows[index - 1].below[0] !== index) folded.add(index);
  });
  draw();
  const [best] = search.moves;
  const verdict = !best ? "no move was visited" : search.disagrees ? `the search plays ${best.san}, the policy ${search.policy_first}` : `search and policy agree on ${best.san}`;
  return make("div", { class: "scroll viewer" }, make("p", {}, data.length > 1 ? make("strong", {}, `${labelOf(one)}: `) : null,
    `${search.nodes} visits: ${verdict}. Priors are at temperature ${short(search.policy_temperature)}, flatter than the policy above.`), drawn);
}

/* Attention */

/** Unpacks bytes to maps of 64 · 64 values, one per head. */
function unpack({ low, step, bytes }) {
  const packed = Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0));
  return low.map((least, head) => Float32Array.from(packed.subarray(4096 * head, 4096 * (head + 1)), (byte) => least + step[head] * byte));
}

/** Returns the softmax of each row of logits. */
function softmax(logits) {
  const found = new Float32Array(4096);
  for (let row = 0; row < 4096; row += 64) {
    const top = Math.max(...logits.subarray(row, row + 64));
    let sum = 0;
    for (let at = row; at < row + 64; at++) sum += found[at] = Math.exp(logits[at] - top);
    for (let at = row; at < row + 64; at++) found[at] /= sum;
  }
  return found;
}

const PARTS = { weights: "content and position", products: "content (dot product)", bias: "position and attacks", attacks: "attacks" };
const viewers = [];

/** Creates the view of one explanation's attention: selectors, two boards, and all heads of a layer. */
function viewer(one, number) {
  const { attention } = one;
  if (!attention) return data.some(({ attention }) => attention) && make("p", { class: "none" }, `${labelOf(one)} has no attention.`);
  const state = (viewers[number] ??= { place: attention.layers.length - 1, head: 0, part: "weights", maps: new Map() });
  const heads = attention.heads;
  const parts = Object.keys(PARTS).filter((part) => part === "attacks" ? attention.attacks : attention.layers[0][part]);
  /** Returns a part of the current layer, both as stored and as attention. */
  const maps = (part) => {
    const key = `${part} ${part === "attacks" ? "" : state.place}`;
    if (!state.maps.has(key)) {
      const stored = unpack(part === "attacks" ? attention.attacks : attention.layers[state.place][part]);
      state.maps.set(key, { stored, shown: part === "weights" ? stored : stored.map(softmax) });
    }
    return state.maps.get(key);
  };
  const option = (value, text) => make("option", { value }, text);
  const layers = make("select", { "aria-label": "layer", name: "layer" }, ...attention.layers.map(({ layer }, place) => option(place, `layer ${layer} of ${attention.count}`)));
  const chooser = make("select", { "aria-label": "head", name: "head" }, ...Array.from({ length: heads }, (_, head) => option(head, `head ${head + 1}`)));
  const part = make("select", { "aria-label": "part of the attention", name: "part" }, ...parts.map((name) => option(name, PARTS[name])));
  const choose = (square) => {
    settings.square = square;
    viewers.forEach((viewer) => viewer?.paint());
  };
  const to = board(one.fen, "What the square attends to", choose), from = board(one.fen, "What attends to the square", choose);
  const captions = [make("figcaption"), make("figcaption")];
  const small = Array.from({ length: heads }, (_, head) => {
    const { svg, paint } = board(one.fen, `Head ${head + 1}`);
    const button = make("button", { type: "button", "aria-pressed": "false" }, svg, `head ${head + 1}`);
    button.addEventListener("click", () => state.set({ head }));
    return { button, paint };
  });
  state.paint = () => {
    const { square } = settings, { shown } = maps(state.part);
    layers.value = state.place;
    chooser.value = state.head;
    part.value = state.part;
    const row = (map) => [...map.subarray(64 * square, 64 * square + 64)];
    const logits = (looking, seen) => parts.map((name) => `${PARTS[name]} ${name === "weights" ? share(maps(name).stored[state.head][64 * looking + seen]) : signed(maps(name).stored[state.head][64 * looking + seen])}`).join(", ");
    const attended = row(shown[state.head]);
    to.paint(attended, { marked: square, describe: (seen) => logits(square, seen), numbers: (value) => (100 * value).toFixed(0) });
    const attending = Array.from({ length: 64 }, (_, looking) => shown[state.head][64 * looking + square]);
    from.paint(attending, { marked: square, describe: (looking) => logits(looking, square), numbers: (value) => (100 * value).toFixed(0) });
    const name = squareName(square);
    const most = (values) => values.map((value, at) => [value, squareName(at)]).sort(([a], [b]) => b - a).slice(0, 3).map(([value, at]) => `${at} ${share(value)}`).join(", ");
    captions[0].replaceChildren(`${name} attends to`, make("small", {}, most(attended)));
    captions[1].replaceChildren(`attend to ${name}`, make("small", {}, most(attending)));
    small.forEach(({ button, paint }, head) => {
      paint(row(shown[head]), { marked: square });
      button.setAttribute("aria-pressed", head === state.head);
    });
  };
  state.set = (change) => {
    Object.assign(state, change);
    state.place = Math.max(0, Math.min(attention.layers.length - 1, state.place));
    state.head = Math.max(0, Math.min(heads - 1, state.head));
    if (!parts.includes(state.part)) state.part = "weights";
    state.paint();
  };
  /** Shows the head with these numbers, if the page contains it. */
  state.show = (layer, head) => {
    const place = attention.layers.findIndex((it) => it.layer === layer);
    if (place >= 0) state.set({ place, head: head - 1 });
  };
  layers.addEventListener("input", () => state.set({ place: Number(layers.value) }));
  chooser.addEventListener("input", () => state.set({ head: Number(chooser.value) }));
  part.addEventListener("input", () => state.set({ part: part.value }));
  state.paint();
  return make("div", { class: "viewer" }, make("div", { class: "choosers" }, data.length > 1 ? make("strong", {}, labelOf(one)) : null, layers, chooser, part),
    make("div", { class: "grid" }, make("figure", {}, captions[0], to.svg), make("figure", {}, captions[1], from.svg)),
    make("div", { class: "grid heads" }, ...small.map(({ button }) => button)));
}

/* After each layer */

function lens(one) {
  if (!one.lens) return make("p", { class: "note" }, `No lens belongs to ${labelOf(one)}. tessera-train lens fits one to the network, and tessera explain --lens shows what it reads.`);
  const best = (policy) => policy.map((prior, move) => [prior, move]).sort(([a], [b]) => b - a).slice(0, 3).map(([prior, move]) => `${one.moves[move].san} ${share(prior)}`).join(", ");
  const { positions, held_out: heldOut, layers } = one.lens;
  const rows = layers.map(({ layer, policy, q, divergence, usual }) => [
    layer ? `layer ${layer}` : "embedding", share(policy[one.chosen]), best(policy), signed(q, 3), short(divergence),
    ...(usual ? [short(usual.divergence), short(usual.q)] : ["–", "–"])]);
  const drawn = table(["after", one.moves[one.chosen].san, "first moves", "expected result", "nats from the policy", "usually", "value usually off by"], rows, [2]);
  return make("div", { class: "scroll viewer" }, data.length > 1 ? make("p", {}, make("strong", {}, labelOf(one))) : null, drawn,
    make("p", { class: "note" }, `The lens was fitted to ${positions} positions; "usually" is a mean over ${heldOut} positions of other games.`));
}

/* Attribution */

function attribution(one) {
  const { occlusion, gradients } = one, { san } = one.moves[one.chosen];
  const pieces = (worth) => {
    const values = Array(64).fill(0);
    for (const piece of occlusion.pieces) values[piece.square] = worth(piece);
    return values;
  };
  const known = (value, change) => (value === null ? null : change(value));
  const figure = (title, method, values, describe, note) => {
    const { svg, paint } = board(one.fen, `${title}, ${method}`);
    paint(values, { numbers: (value) => signed(value), describe });
    return make("figure", {}, make("figcaption", {}, title, make("small", {}, method)), svg, make("div", { class: "note" }, note));
  };
  const value = pieces(({ q }) => known(q, (q) => occlusion.q - q));
  const move = pieces(({ prior }) => known(prior, (prior) => Math.log(occlusion.prior / prior)));
  const before = (values, from, to) => (square) => {
    const piece = occlusion.pieces.find((piece) => piece.square === square);
    return piece ? `${from} with it, ${to(piece)} without` : short(values[square]);
  };
  const sum = ({ baseline, output, remainder }) => `${signed(output, 3)} against ${signed(baseline, 3)} of the kings alone, ${share(Math.abs(remainder))} missing`;
  return make("div", { class: "viewer" }, data.length > 1 ? make("p", {}, make("strong", {}, labelOf(one))) : null,
    make("div", { class: "grid few" },
      figure("Value", "occlusion", value, before(value, signed(occlusion.q, 3), ({ q }) => (q === null ? "not legal" : signed(q, 3))), `${signed(occlusion.q, 3)} with all pieces`),
      figure(san, "occlusion", move, before(move, share(occlusion.prior), ({ prior }) => (prior === null ? "not possible" : share(prior))), `logarithm of its probability, ${share(occlusion.prior)} with all pieces`),
      figure("Value", "integrated gradients", gradients.value.squares, (square) => signed(gradients.value.squares[square], 4), sum(gradients.value)),
      figure(san, "integrated gradients", gradients.move.squares, (square) => signed(gradients.move.squares[square], 4), `logarithm of its probability, ${sum(gradients.move)}`)),
    make("p", { class: "note" }, `The gradients took ${gradients.steps} steps.`));
}

/* Features */

/** Number of features that are listed in favour of a move, and of features against it. */
const EACH_WAY = 6;
const VALUE = "value";
const featured = [];
/** The rows of the table of moves, in the order of the first explanation. */
let moveRows = [];

const markMove = () => moveRows.forEach((row, index) => row.setAttribute("aria-selected", data[0].moves[index].uci === settings.target));

/** Shows the effects of features on a move in UCI notation, or on the value. */
function explainTarget(target) {
  settings.target = target;
  markMove();
  featured.forEach((it) => it?.draw());
}

/** Lists one explanation's features for and against the target, and shows boards of a selected feature. */
function transcoder(one, number) {
  const { transcoder } = one;
  if (!transcoder) return null;
  const { layer, features, top_k: most, explained_variance: explained, dead, present, ablated, active } = transcoder;
  const chooser = make("select", { "aria-label": "what the features speak for", name: "target" }, make("option", { value: VALUE }, "the value"),
    ...one.moves.map(({ uci, san, prior }) => make("option", { value: uci }, `${san}, ${share(prior)}`)));
  const listed = make("div", { class: "scroll" }), boards = make("div", { class: "grid few" });
  const draw = () => {
    const place = one.moves.findIndex(({ uci }) => uci === settings.target);
    const isValue = place < 0;
    chooser.value = isValue ? VALUE : settings.target;
    const effect = (feature) => (isValue ? feature.value : feature.moves[place]);
    const without = (feature) => (isValue ? signed(one.evaluation.q - effect(feature), 3) : share(one.moves[place].prior * Math.exp(-effect(feature))));
    const squares = (feature) => feature.squares.map((value, square) => [value, square]).filter(([value]) => value > 0).sort(([a], [b]) => b - a).slice(0, 3).map(([, square]) => squareName(square)).join(", ");
    const sorted = [...active].sort((a, b) => effect(b) - effect(a));
    const shown = [...sorted.slice(0, EACH_WAY).filter((it) => effect(it) > 0), ...sorted.slice(-EACH_WAY).filter((it) => effect(it) < 0)];
    const largest = Math.max(1e-9, ...shown.map((it) => Math.abs(effect(it))));
    const bar = (value) => make("span", {}, make("i", { class: value < 0 ? "bar minus" : "bar", style: `width: ${(60 * Math.abs(value) / largest).toFixed(1)}px` }), signed(value, 3));
    const [heading, now] = isValue ? ["adds to the value", signed(one.evaluation.q, 3)] : [`speaks for ${one.moves[place].san}`, share(one.moves[place].prior)];
    const drawn = table(["feature", heading, `without it (${now} with)`, "most active on", "predicts"],
      shown.map((it) => [it.feature, bar(effect(it)), without(it), squares(it), it.themes.map(({ theme }) => theme).join(", ") || "–"]), [3, 4]);
    const rows = [...drawn.rows].slice(1);
    const show = (index) => {
      rows.forEach((row, at) => row.setAttribute("aria-selected", at === index));
      boards.replaceChildren(...(shown[index] ? featureBoards(one, shown[index]) : []));
    };
    rows.forEach((row, index) => choosable(row, () => show(index)));
    listed.replaceChildren(drawn);
    show(0);
  };
  featured[number] = { draw };
  chooser.addEventListener("input", () => explainTarget(chooser.value));
  draw();
  const counted = ablated < present ? `${present} are active here, of which the ${ablated} strongest were taken out` : `${present} are active here`;
  return make("div", { class: "viewer" },
    make("p", {}, `${labelOf(one)}, layer ${layer}: ${features} features, at most ${most} on a square; they explain ${share(explained)} of the block's variance, and ${share(dead)} are never active. ${counted}.`),
    make("div", { class: "choosers" }, make("label", {}, "For and against ", chooser)), listed, boards);
}

/** Shows where a feature is active in the position, and the positions that activate it most. */
function featureBoards(one, { feature, strength, squares, strongest, themes }) {
  const { svg, paint } = board(one.fen, `Feature ${feature}`);
  paint(squares, { numbers: (value) => value.toFixed(1), describe: (square) => short(squares[square]) });
  const known = themes.map(({ theme, precision, recall }) => `${theme} (precision ${share(precision)}, recall ${share(recall)})`);
  const others = strongest.map(({ fen, square, activation }) => {
    const other = board(fen, `Strongly active: ${fen}`);
    other.paint(Array.from({ length: 64 }, (_, at) => (at === square ? activation : 0)), { marked: square });
    return make("figure", {}, make("figcaption", {}, `${squareName(square)} ${activation.toFixed(1)}`, make("small", {}, `${fen.split(" ")[1] === "w" ? "White" : "Black"} to move`)), other.svg);
  });
  return [make("figure", {}, make("figcaption", {}, `Feature ${feature} here`, make("small", {}, [`adds ${short(strength)}`, ...known].join(", "))), svg), ...others];
}

/* Heads */

const RELATIONS = {
  identity: "the square itself", rook_line: "rook lines", bishop_line: "bishop lines", knight_move: "knight's moves", king_move: "neighbours",
  own_pieces: "own pieces", enemy_pieces: "enemy pieces", attacks: "attacks", attacked_by: "attacked by", defends: "defends", defended_by: "defended by",
  pawn_structure: "pawn structure",
};

function heads(one, number) {
  if (!one.heads.length) return null;
  const { san, prior } = one.moves[one.chosen];
  const sampled = one.heads[0].ablation?.sample?.positions;
  const by = make("select", { "aria-label": "order of the heads" }, make("option", { value: "" }, "by layer"), make("option", { value: "ablation" }, "by what changes without it"),
    ...Object.entries(RELATIONS).map(([name, text]) => make("option", { value: name }, `by ${text}`)));
  const place = make("div", { class: "scroll" });
  const score = (head, name) => head.relations.find(({ relation }) => relation === name).score;
  const draw = () => {
    const order = { "": () => 0, ablation: (head) => -(head.ablation?.sample?.divergence ?? head.ablation?.divergence ?? 0) }[by.value] ?? ((head) => -score(head, by.value));
    const sorted = [...one.heads].sort((a, b) => order(a) - order(b));
    const rows = sorted.map((head) => {
      const best = [...head.relations].sort((a, b) => b.score - a.score).slice(0, 2);
      const without = head.ablation;
      return [`layer ${head.layer}, head ${head.head}`, best.map(({ relation, score }) => `${RELATIONS[relation]} ${share(score)}`).join(", "),
        ...(by.value in RELATIONS ? [share(score(head, by.value))] : []),
        share(without?.prior), signed(without ? without.q - one.evaluation.q : NaN, 3), short(without?.divergence), without ? (one.moves.find(({ uci }) => uci === without.first)?.san ?? "–") : "–",
        ...(sampled ? [short(without?.sample.divergence), share(without?.sample.changed)] : [])];
    });
    const columns = ["head", "looks along", ...(by.value in RELATIONS ? [RELATIONS[by.value]] : []), `${san} without it (${share(prior)} with)`, "value changes by", "policy changes by (nats)", "first move without it",
      ...(sampled ? [`nats over ${sampled} positions`, "other first moves there"] : [])];
    const drawn = table(columns, rows, [1]);
    const lines = [...drawn.rows].slice(1);
    lines.forEach((row, index) => choosable(row, () => {
      lines.forEach((line, at) => line.setAttribute("aria-selected", at === index));
      viewers[number]?.show(sorted[index].layer, sorted[index].head);
      document.getElementById("attention").scrollIntoView();
    }));
    place.replaceChildren(drawn);
  };
  by.addEventListener("input", draw);
  draw();
  return make("div", { class: "viewer" }, make("div", { class: "choosers" }, data.length > 1 ? make("strong", {}, labelOf(one)) : null, by), place);
}

/* The page */

function draw() {
  document.querySelector(".overview").classList.toggle("side-by-side", data.length > 1);
  sideBySide("position", position);
  moves();
  sideBySide("search", search);
  sideBySide("attention", viewer);
  sideBySide("lens", lens);
  sideBySide("attribution", attribution);
  sideBySide("transcoder", transcoder);
  sideBySide("heads", heads);
}

document.getElementById("fen").textContent = data[0].fen;
document.getElementById("mover").textContent = `${data[0].fen.split(" ")[1] === "w" ? "White" : "Black"} to move. Values are those of the side to move.`;
const stated = data.filter(({ attention }) => attention).map((one) => {
  const { layers, count } = one.attention;
  const steps = layers.flatMap(({ weights }) => weights.step);
  const left = layers.length < count ? `; of ${count} layers it holds ${layers.map(({ layer }) => layer).join(", ")}, others by --layers` : "";
  return `${labelOf(one)}: this page holds attention in 8 bits, in steps of at most ${short(Math.max(...steps))}${left}; --json has all in 32 bits.`;
});
document.getElementById("about").textContent = stated.join(" ");
document.getElementById("flip").addEventListener("click", () => {
  settings.flipped = !settings.flipped;
  draw();
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.("select, input")) return;
  if (event.key === "f") document.getElementById("flip").click();
  const part = Object.keys(PARTS)[Number(event.key) - 1];
  for (const viewer of viewers.filter(Boolean)) {
    const change = { "[": { place: viewer.place - 1 }, "]": { place: viewer.place + 1 }, ",": { head: viewer.head - 1 }, ".": { head: viewer.head + 1 } }[event.key];
    if (change) viewer.set(change);
    else if (part) viewer.set({ part });
  }
});
draw();

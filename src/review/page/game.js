const NAMES = { blunder: "Blunder", mistake: "Mistake", inaccuracy: "Inaccuracy", good: "Only move" };
const SIGNS = { blunder: "??", mistake: "?", inaccuracy: "?!", good: "!" };
const plies = data.plies;
const byId = (id) => document.getElementById(id);
let isFlipped = data.side === "black";
/** Plies played in the position shown, and a line from there, where one is looked at: its moves and how many are played. */
let at = 0;
let line = null;

const written = (evaluation) => {
  if (evaluation === null || evaluation === undefined) return "";
  if ("mate" in evaluation) return `#${evaluation.mate}`;
  const pawns = evaluation.centipawns / 100;
  return (pawns < 0 ? "−" : "+") + Math.abs(pawns).toFixed(2);
};
const time = (seconds) => {
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.floor(seconds % 60)];
  const pad = (number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${pad(minutes)}:${pad(rest)}` : `${minutes}:${pad(rest)}`;
};

/* The board */

function place(square) {
  const [file, rank] = ["abcdefgh".indexOf(square[0]), square[1] - 1];
  return isFlipped ? [40 * (7 - file), 40 * rank] : [40 * file, 40 * (7 - rank)];
}
const center = (square) => place(square).map((at) => at + 20);

function arrow(from, to, kind) {
  const [[x1, y1], [x2, y2]] = [center(from), center(to)];
  const length = Math.hypot(x2 - x1, y2 - y1);
  if (!length) return [];
  const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
  const [x, y] = [x2 - 12 * dx, y2 - 12 * dy];
  const corners = [[x2, y2], [x - 7 * dy, y + 7 * dx], [x + 7 * dy, y - 7 * dx]].map((corner) => corner.join(" "));
  return [
    make("path", { d: `M${x1} ${y1}L${x} ${y}`, class: `arrow ${kind}` }),
    make("path", { d: `M${corners.join("L")}Z`, class: `head ${kind}` }),
  ];
}

/** A board of the first field of a FEN, with squares of the last move and of facts, and arrows. */
function board(placement, played, facts, arrows, label) {
  const svg = make("svg", { viewBox: "0 0 320 320", class: "board", role: "img", "aria-label": label });
  const rows = placement.split(" ")[0].split("/");
  rows.forEach((row, down) => {
    let file = 0;
    for (const letter of row.replace(/\d/g, (count) => ".".repeat(count))) {
      const square = "abcdefgh"[file] + (8 - down);
      const [x, y] = place(square);
      const isLight = (file + down) % 2 === 0;
      svg.append(make("rect", { x, y, width: 40, height: 40, class: isLight ? "square light" : "square" }));
      if (played.includes(square)) svg.append(make("rect", { x, y, width: 40, height: 40, class: "played" }));
      if (x === 0) svg.append(make("text", { x: x + 2, y: y + 9 }, square[1]));
      if (y === 280) svg.append(make("text", { x: x + 34, y: y + 38 }, square[0]));
      if (letter !== ".") svg.append(make("use", { href: `#piece-${letter.toLowerCase()}`, x, y, width: 40, height: 40, class: letter < "a" ? "white" : "black" }));
      file++;
    }
  });
  for (const square of facts) {
    const [x, y] = place(square);
    svg.append(make("rect", { x: x + 2, y: y + 2, width: 36, height: 36, rx: 4, class: "fact" }));
  }
  svg.append(...arrows.flat());
  return svg;
}

function showBoard() {
  const ply = plies[at - 1];
  const reasons = ply ? [...ply.reasons.played, ...ply.reasons.best] : [];
  const arrows = [];
  let [placement, played, facts] = [ply ? ply.fen : data.start.fen, ply ? [ply.from, ply.to] : [], []];
  let label = ply ? `Position after ${ply.number} ${ply.san}` : "First position";
  if (line) {
    const shown = line.moves[line.step - 1];
    if (shown) {
      placement = shown.board;
      played = [shown.from, shown.to];
      label = `Position after ${shown.number} ${shown.san} in a line`;
    } else {
      placement = line.start;
      played = [];
    }
  } else if (ply) {
    facts = [...new Set(reasons.flatMap((fact) => fact.squares))];
    if (ply.best) arrows.push(arrow(ply.best.moves[0].from, ply.best.moves[0].to, "best"));
    if (ply.reply) arrows.push(arrow(ply.reply.moves[0].from, ply.reply.moves[0].to, "reply"));
    if (!ply.mark || ply.mark === "good") arrows.length = 0;
  }
  byId("board").replaceChildren(board(placement, played, facts, arrows, label));
  const win = ply ? ply.win : data.start.win;
  byId("bar").className = isFlipped ? "flipped" : "";
  byId("bar").firstElementChild.style.height = `${win ?? 50}%`;
  byId("bar").style.visibility = win === null ? "hidden" : "";
}

function showPlayers() {
  const name = (side) => {
    const own = data[side];
    const last = plies.slice(0, at).filter((ply) => ply.side === side && ply.clock !== null).pop();
    const rating = own.rating ? ` (${own.rating})` : "";
    return [`${own.name ?? (side === "white" ? "White" : "Black")}${rating}`, make("span", {}, last ? time(last.clock) : "")];
  };
  byId("above").replaceChildren(...name(isFlipped ? "white" : "black"));
  byId("below").replaceChildren(...name(isFlipped ? "black" : "white"));
}

/* The words */

function lineOf(name, report, start) {
  const moves = report.moves.map((mv, place) => {
    const number = place === 0 || mv.number.endsWith(".") && !mv.number.endsWith("...") ? `${mv.number} ` : "";
    const button = make("button", { type: "button" }, `${number}${mv.san}`);
    const isShown = line && line.moves === report.moves && line.step === place + 1;
    if (isShown) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => { line = { moves: report.moves, step: place + 1, start }; show(); });
    return button;
  });
  return make("p", { class: "line" }, make("b", {}, name), ...moves, ` ${written(report.evaluation)}`);
}

function showWords() {
  const ply = plies[at - 1];
  const told = [];
  byId("told").className = ply?.mark ?? "";
  if (!ply) {
    byId("moment").textContent = "First position";
    told.push(make("p", { class: "soft" }, "The arrow keys ← and → step through the game, ↓ and ↑ from mark to mark."));
  } else {
    const sign = ply.mark ? SIGNS[ply.mark] : "";
    const name = ply.mark ? `: ${NAMES[ply.mark]}` : "";
    byId("moment").textContent = `${ply.number} ${ply.san}${sign}${name}`;
    const before = at > 1 ? plies[at - 2].fen : data.start.fen;
    const loss = ply.loss !== null && ply.loss >= 0.5 ? `loses ${ply.loss.toFixed(0)} points of 100` : "";
    const score = [written(ply.evaluation), loss].filter(Boolean).join(", ");
    if (score) told.push(make("p", { class: "soft" }, score));
    for (const fact of ply.reasons.played) told.push(make("p", {}, fact.text));
    if (ply.reply && ply.mark !== "good") told.push(lineOf("Answer", ply.reply, ply.fen));
    if (ply.best) told.push(lineOf("Best", ply.best, before));
    for (const fact of ply.reasons.best) told.push(make("p", {}, fact.text));
    for (const words of ply.words) told.push(make("p", { class: "soft" }, words));
    if (at === plies.length && data.game.ending) told.push(make("p", {}, `The game ended by ${data.game.ending}.`));
  }
  for (const draw of data.game.draws) if (draw.ply === at) told.push(make("p", {}, draw.text));
  if (at === 0) for (const warning of data.game.warnings) told.push(make("p", { class: "warning" }, warning));
  byId("why").replaceChildren(...told);
}

/* The graph */

const [WIDTH, HEIGHT] = [600, 150];
const across = (ply) => (plies.length ? (WIDTH * ply) / plies.length : 0);

function graph() {
  const wins = [data.start.win, ...plies.map((ply) => ply.win)];
  const points = wins.map((win, ply) => [across(ply), win]).filter(([, win]) => win !== null).map(([x, win]) => [x, HEIGHT * (1 - win / 100)]);
  const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "White's expected score by move" });
  svg.append(make("rect", { x: 0, y: 0, width: WIDTH, height: HEIGHT, class: "black" }));
  if (points.length) {
    const top = points.map((point) => point.map((it) => it.toFixed(1)).join(" ")).join("L");
    svg.append(make("path", { d: `M${points[0][0]} ${HEIGHT}L${top}L${points[points.length - 1][0]} ${HEIGHT}Z`, class: "white" }));
  }
  svg.append(make("path", { d: `M0 ${HEIGHT / 2}H${WIDTH}`, class: "half" }));
  plies.forEach((ply, place) => {
    const before = place ? plies[place - 1].phase : "opening";
    if (ply.phase !== before) svg.append(make("path", { d: `M${across(place)} 0V${HEIGHT}`, class: "phase" }), make("text", { x: across(place) + 4, y: 12 }, ply.phase));
  });
  const longest = Math.max(...plies.map((ply) => ply.clock ?? 0));
  for (const [side, colour] of longest > 0 ? [["white", "--run-1"], ["black", "--run-3"]] : []) {
    const clocks = plies.filter((ply) => ply.side === side && ply.clock !== null);
    const path = clocks.map((ply) => `${across(ply.ply).toFixed(1)} ${(HEIGHT * (1 - ply.clock / longest)).toFixed(1)}`).join("L");
    if (clocks.length > 1) svg.append(make("path", { d: `M${path}`, class: "clock", style: `stroke: var(${colour})` }, make("title", {}, `${side === "white" ? "White" : "Black"}'s clock`)));
  }
  for (const ply of plies) {
    if (ply.mark && ply.mark !== "inaccuracy" && ply.win !== null) {
      const dot = make("circle", { cx: across(ply.ply), cy: HEIGHT * (1 - ply.win / 100), r: 4, class: ply.mark });
      dot.append(make("title", {}, `${ply.number} ${ply.san}${SIGNS[ply.mark]}`));
      svg.append(dot);
    }
  }
  svg.append(make("path", { class: "now", d: "" }));
  svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect();
    go(Math.round((plies.length * (event.clientX - box.left)) / box.width));
  });
  const clocks = longest > 0 ? [make("p", { class: "note" }, `Lines: the clocks of White and Black, up to ${time(longest)}.`)] : [];
  byId("graph").replaceChildren(svg, ...clocks);
}

/* The moves */

function list() {
  const cells = [];
  plies.forEach((ply, place) => {
    const isWhite = ply.side === "white";
    if (isWhite || place === 0) cells.push(make("span", {}, ply.number.replace(/\.+$/, "")));
    if (!isWhite && place === 0) cells.push(make("span", {}, "…"));
    const button = make("button", { type: "button", class: ply.mark ?? "", "data-ply": ply.ply }, ply.san + (ply.mark ? SIGNS[ply.mark] : ""));
    if (ply.mark) button.title = NAMES[ply.mark];
    button.addEventListener("click", () => go(ply.ply));
    cells.push(button);
    if (ply.ply === data.game.book_plies && data.game.opening && ply.ply < plies.length) {
      if (isWhite) cells.push(make("span"));
      cells.push(make("em", {}, `Here the game leaves the table of openings: ${data.game.opening}`));
      if (isWhite) cells.push(make("span", {}, ply.number.replace(/\.+$/, "")), make("span", {}, "…"));
    }
  });
  if (!cells.length) cells.push(make("em", {}, "There are no moves."));
  byId("moves").replaceChildren(...cells);
}

/* People */

function curve() {
  const ply = plies[at - 1];
  const shares = ply?.shares;
  byId("curve").closest("section").hidden = !plies.some((it) => it.shares);
  if (!shares) {
    byId("by-rating").textContent = "Go to a move to see how many players of each rating play it.";
    byId("curve").replaceChildren();
    return;
  }
  const [width, height, left, bottom] = [400, 160, 34, 18];
  const ratings = data.ratings;
  const x = (place) => left + ((width - left - 8) * place) / (ratings.length - 1);
  const isOther = shares.best && ply.best;
  const most = Math.max(0.1, ...shares.played, ...(isOther ? shares.best : []));
  const top = Math.min(1, Math.ceil(most * 10) / 10);
  const y = (share) => 8 + (height - 8 - bottom) * (1 - share / top);
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Shares of players by rating" });
  for (const share of [0, top / 2, top]) {
    svg.append(make("path", { d: `M${left} ${y(share)}H${width - 8}`, class: "axis" }), make("text", { x: 0, y: y(share) + 4 }, `${Math.round(100 * share)} %`));
  }
  ratings.forEach((rating, place) => { if (place % 2 === 0) svg.append(make("text", { x: x(place) - 12, y: height - 2 }, rating)); });
  const path = (values) => "M" + values.map((share, place) => `${x(place).toFixed(1)} ${y(share).toFixed(1)}`).join("L");
  svg.append(make("path", { d: path(shares.played), class: "played" }));
  if (isOther) svg.append(make("path", { d: path(shares.best), class: "best" }));
  const key = (colour, text) => make("b", { style: `--colour: var(${colour})` }, text);
  const parts = ["Players who play ", key("--run-1", ply.san), ...(isOther ? [" and the best move, ", key("--run-0", ply.best.moves[0].san)] : []), ", by rating."];
  byId("by-rating").replaceChildren(...parts);
  byId("curve").replaceChildren(svg);
}

/* The summary */

function summary() {
  const number = (value, digits = 0) => (value === null ? "–" : value.toFixed(digits));
  const rating = (side) => (side.estimate ? `${side.estimate.estimate} (${side.estimate.low}–${side.estimate.high})` : "–");
  const sides = [data.white, data.black];
  const row = (name, of) => [name, ...sides.map((side) => String(of(side)))];
  const rows = [
    row("Accuracy, %", (side) => number(side.accuracy, 1)),
    ...["Opening", "Middlegame", "Endgame"].map((phase, place) => row(phase, (side) => number(side.by_phase[place], 1))),
    row("Blunders ??", (side) => side.blunders),
    row("Mistakes ?", (side) => side.mistakes),
    row("Inaccuracies ?!", (side) => side.inaccuracies),
    row("Only moves !", (side) => side.good),
    row("Mates missed, allowed", (side) => `${side.missed_mates}, ${side.allowed_mates}`),
    row("Plays like", rating),
  ];
  byId("summary").replaceChildren(table(["", data.white.name ?? "White", data.black.name ?? "Black"], rows));
  const people = data.people ? ` The shares of players are those of ${data.people}, a model of people's play. "Plays like" is the rating that fits all moves of the game best, with an interval that holds four players in five.` : "";
  byId("about").textContent = `Each position was searched with ${data.nodes} nodes by ${data.network}. Marks and accuracy follow Lichess: the winning chances that a move loses. The reasons are facts that were checked on the board; where there are none, the lines speak for themselves.${people}`;
}

/* Going through the game */

function show() {
  showBoard();
  showPlayers();
  showWords();
  curve();
  for (const button of byId("moves").querySelectorAll("[aria-current]")) button.removeAttribute("aria-current");
  const current = byId("moves").querySelector(`[data-ply="${at}"]`);
  if (current) {
    current.setAttribute("aria-current", "true");
    const box = byId("moves");
    const top = current.offsetTop - box.offsetTop;
    if (top < box.scrollTop || top > box.scrollTop + box.clientHeight - 30) box.scrollTop = top - box.clientHeight / 2;
  }
  byId("graph").querySelector(".now").setAttribute("d", `M${across(at)} 0V${HEIGHT}`);
}

function go(ply) {
  at = Math.max(0, Math.min(plies.length, ply));
  line = null;
  show();
}

/** One step in the game, or in the line that is looked at, out of which one step back leads. */
function step(by) {
  if (!line) return go(at + by);
  line.step = Math.min(line.moves.length, line.step + by);
  if (line.step < 1) line = null;
  show();
}

function mark(by) {
  const isMine = (ply) => ply.mark && (!data.side || ply.side === data.side);
  const found = by > 0 ? plies.find((ply) => ply.ply > at && isMine(ply)) : plies.findLast((ply) => ply.ply < at && isMine(ply));
  if (found) go(found.ply);
}

const KEYS = {
  ArrowLeft: () => step(-1), ArrowRight: () => step(1), ArrowUp: () => mark(-1), ArrowDown: () => mark(1),
  Home: () => go(0), End: () => go(plies.length), Escape: () => go(at), f: () => byId("flip").click(),
};
document.addEventListener("keydown", (event) => {
  const act = KEYS[event.key];
  if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  act();
});
byId("first").addEventListener("click", KEYS.Home);
byId("back").addEventListener("click", KEYS.ArrowLeft);
byId("forward").addEventListener("click", KEYS.ArrowRight);
byId("last").addEventListener("click", KEYS.End);
byId("next-mark").addEventListener("click", KEYS.ArrowDown);
byId("flip").addEventListener("click", () => { isFlipped = !isFlipped; show(); });

byId("players").textContent = `${data.white.name ?? "White"} – ${data.black.name ?? "Black"}, ${data.game.result}`;
byId("opening").textContent = data.game.opening ? `${data.game.eco} ${data.game.opening}` : "";
graph();
list();
summary();
show();

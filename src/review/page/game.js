const { plies } = data;
const byId = (id) => document.getElementById(id);
let isFlipped = data.side === "black";
/** The number of plies played on the board, and the line from there that is being viewed, if any: its moves, and how
 * many of them are played. */
let at = 0;
let line = null;

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

/** Draws a board from the first field of a FEN, marking the squares of the last move and of facts, with arrows. */
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
  const arrows = [];
  let [placement, played, facts] = [fenAt(data, at), ply ? [ply.from, ply.to] : [], []];
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
    facts = factSquares(ply);
    arrows.push(...arrowMoves(ply).map(({ from, to, kind }) => arrow(from, to, kind)));
  }
  byId("board").replaceChildren(board(placement, played, facts, arrows, label));
  showBar(byId("bar"), winAt(data, at), isFlipped);
}

function showPlayers() {
  const name = (side) => {
    const rating = data[side].rating ? ` (${data[side].rating})` : "";
    return [`${player(data, side)}${rating}`, make("span", {}, clockAt(data, side, at))];
  };
  byId("above").replaceChildren(...name(isFlipped ? "white" : "black"));
  byId("below").replaceChildren(...name(isFlipped ? "black" : "white"));
}

function showWords() {
  const ply = plies[at - 1];
  byId("told").className = `told ${ply?.mark ?? ""}`;
  byId("moment").textContent = ply ? headingOf(ply) : "First position";
  const open = (opened) => { line = opened; show(); };
  const help = make("p", { class: "muted" }, "The arrow keys ← and → step through the game, ↓ and ↑ from mark to mark.");
  byId("why").replaceChildren(...(ply ? [] : [help]), ...wordsAt(data, at, open, line));
}

function showPeople() {
  byId("curve").closest("section").hidden = !plies.some((ply) => ply.shares);
  const { words, chart } = sharesOf(data, plies[at - 1]);
  byId("by-rating").replaceChildren(...words);
  byId("curve").replaceChildren(...chart);
}

/* Stepping through the game */

function show() {
  showBoard();
  showPlayers();
  showWords();
  showPeople();
  pointInMoves(byId("moves"), at);
  pointInGraph(byId("graph"), data, at);
}

function go(ply) {
  at = Math.max(0, Math.min(plies.length, ply));
  line = null;
  show();
}

/** Steps through the game, or through the line that is being viewed; stepping back from its start leaves the line. */
function step(by) {
  if (!line) return go(at + by);
  line.step = Math.min(line.moves.length, line.step + by);
  if (line.step < 1) line = null;
  show();
}

function mark(by) {
  const found = nextMark(data, at, by);
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

byId("players").textContent = titleOf(data);
byId("opening").textContent = openingOf(data);
byId("scores").replaceChildren(...scoresOf(data));
byId("graph").replaceChildren(...scoreGraph(data, go));
byId("moves").replaceChildren(...moveCells(data, go));
byId("summary").replaceChildren(summaryTable(data));
byId("about").replaceChildren(...about(data));
show();

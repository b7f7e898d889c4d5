/* The parts that a review's own page and the server's page have in common. */

/** Returns a text in the reader's language with values for the names in braces. */
let t = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

/** Replaces the function that translates texts. */
function speak(translate) {
  t = translate;
}

const MARKS = {
  blunder: { get name() { return t("Blunder"); }, sign: "??" },
  mistake: { get name() { return t("Mistake"); }, sign: "?" },
  inaccuracy: { get name() { return t("Inaccuracy"); }, sign: "?!" },
  good: { get name() { return t("Only move"); }, sign: "!" },
};
const PHASES = {
  opening: { get name() { return t("opening"); } },
  middlegame: { get name() { return t("middlegame"); } },
  endgame: { get name() { return t("endgame"); } },
};
const isBad = ({ mark }) => Boolean(mark) && mark !== "good";
const sign = ({ mark }) => (mark ? MARKS[mark].sign : "");
const sideName = (side) => (side === "white" ? t("White") : t("Black"));
const player = (report, side) => report[side].name ?? sideName(side);

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
/** Returns White's expected score in percent after this many plies, or `null` while it is unknown. */
const winAt = (report, ply) => (ply ? report.plies[ply - 1].win : report.start.win);
/** Returns the position after this many plies. */
const fenAt = (report, ply) => (ply ? report.plies[ply - 1].fen : report.start.fen);
/** Returns a side's clock after this many plies, as text. */
const clockAt = (report, side, ply) => {
  const last = report.plies.slice(0, ply).findLast((it) => it.side === side && it.clock !== null);
  return last ? time(last.clock) : "";
};

/** Shows White's expected score in a bar; `undefined` and `null` mean that it is unknown. */
function showBar(bar, win, isFlipped) {
  bar.className = `score-bar ${isFlipped ? "flipped" : ""} ${Number.isFinite(win) ? "" : "unknown"}`;
  bar.firstElementChild.style.height = `${win ?? 50}%`;
}

/* The graph */

const GRAPH = { width: 600, height: 150 };

const acrossGraph = (report, ply) => (report.plies.length ? (GRAPH.width * ply) / report.plies.length : 0);

/** Draws White's expected score by ply, as far as it is known, with clocks and marks. `go` is called with a ply. */
function scoreGraph(report, go) {
  const { width, height } = GRAPH;
  const { plies } = report;
  const x = (ply) => +acrossGraph(report, ply).toFixed(1);
  const y = (win) => +(height * (1 - win / 100)).toFixed(1);
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "score-graph", "aria-label": t("White's expected score by move") });
  svg.append(make("rect", { x: 0, y: 0, width, height, class: "unknown" }));
  let run = [];
  for (let ply = 0; ply <= plies.length + 1; ply++) {
    const win = ply <= plies.length ? winAt(report, ply) : null;
    if (win !== null) {
      run.push(`${x(ply)} ${y(win)}`);
    } else if (run.length) {
      const [from, to] = [x(ply - run.length), x(ply - 1)];
      // A single position is drawn as wide as a line.
      const end = Math.max(to, from + 1.5);
      svg.append(
        make("path", { d: `M${from} 0H${end}V${height}H${from}Z`, class: "black" }),
        make("path", { d: `M${from} ${height}L${run.join("L")}H${end}V${height}Z`, class: "white" }),
      );
      run = [];
    }
  }
  svg.append(make("path", { d: `M0 ${height / 2}H${width}`, class: "half" }));
  plies.forEach((ply, place) => {
    const before = place ? plies[place - 1].phase : "opening";
    if (ply.phase !== before) svg.append(make("path", { d: `M${x(place)} 0V${height}`, class: "phase" }), phaseName(x(place), ply));
  });
  const longest = Math.max(...plies.map((ply) => ply.clock ?? 0));
  for (const side of longest > 0 ? ["white", "black"] : []) {
    const clocks = plies.filter((ply) => ply.side === side && ply.clock !== null);
    const path = clocks.map((ply) => `${x(ply.ply)} ${y((100 * ply.clock) / longest)}`).join("L");
    if (clocks.length > 1) svg.append(make("path", { d: `M${path}`, class: `clock ${side}-clock` }, make("title", {}, side === "white" ? t("White's clock") : t("Black's clock"))));
  }
  for (const ply of plies) {
    if (ply.mark && ply.mark !== "inaccuracy" && ply.win !== null) {
      const dot = make("circle", { cx: x(ply.ply), cy: y(ply.win), r: 4, class: ply.mark });
      dot.append(make("title", {}, `${ply.number} ${ply.san}${sign(ply)}`));
      svg.append(dot);
    }
  }
  svg.append(make("path", { class: "now", d: "" }));
  const point = (event) => {
    const box = svg.getBoundingClientRect();
    if (event.buttons) go(Math.round((plies.length * (event.clientX - box.left)) / box.width));
  };
  svg.addEventListener("pointerdown", point);
  svg.addEventListener("pointermove", point);
  if (longest <= 0) return [svg];
  const key = (side) => make("b", { class: `${side}-clock` }, sideName(side));
  return [svg, make("p", { class: "key" }, `${t("Lines: the clocks of")} `, key("white"), ` ${t("and")} `, key("black"), t(", up to {time}.", { time: time(longest) }))];
}

/** Writes the name of the phase that begins with a ply, within the graph. */
function phaseName(x, { phase }) {
  const isLate = x > GRAPH.width - 80;
  return make("text", { x: isLate ? x - 4 : x + 4, y: 12, "text-anchor": isLate ? "end" : "start" }, PHASES[phase].name);
}

/** Marks the ply on the board in a graph. */
function pointInGraph(place, report, ply) {
  place.querySelector(".now")?.setAttribute("d", `M${acrossGraph(report, ply)} 0V${GRAPH.height}`);
}

/* The moves */

/** Creates the cells of a list of moves in three columns. `go` is called with a ply. */
function moveCells(report, go) {
  const cells = [];
  const { plies, game } = report;
  plies.forEach((ply, place) => {
    const isWhite = ply.side === "white";
    const number = () => make("span", {}, ply.number.replace(/\.+$/, ""));
    if (isWhite || place === 0) cells.push(number());
    if (!isWhite && place === 0) cells.push(make("span", {}, "…"));
    const button = make("button", { type: "button", class: ply.mark ?? "", "data-ply": ply.ply }, ply.san + sign(ply));
    if (ply.mark) button.title = MARKS[ply.mark].name;
    button.addEventListener("click", () => go(ply.ply));
    cells.push(button);
    if (ply.ply === game.book_plies && game.opening && ply.ply < plies.length) {
      if (isWhite) cells.push(make("span"));
      cells.push(make("em", {}, t("Here the game leaves the table of openings: {opening}", game)));
      if (isWhite) cells.push(number(), make("span", {}, "…"));
    }
  });
  return cells.length ? cells : [make("em", {}, t("There are no moves."))];
}

/** Marks the ply on the board in a list of moves. */
function pointInMoves(list, ply) {
  list.querySelector("[aria-current]")?.removeAttribute("aria-current");
  const current = list.querySelector(`[data-ply="${ply}"]`);
  current?.setAttribute("aria-current", "true");
  const top = current ? current.offsetTop - list.offsetTop : 0;
  if (top < list.scrollTop || top > list.scrollTop + list.clientHeight - 30) list.scrollTop = top - list.clientHeight / 2;
}

/** Returns the next or previous ply that has a mark and belongs to the reviewed side. */
function nextMark(report, at, by, suits = ({ mark }) => mark) {
  const isMine = (ply) => suits(ply) && (!report.side || ply.side === report.side);
  return by > 0 ? report.plies.find((ply) => ply.ply > at && isMine(ply)) : report.plies.findLast((ply) => ply.ply < at && isMine(ply));
}

/* The words */

/** Creates a line whose moves can be clicked. `open` is called with the clicked line: its moves, how many of them
 * are played, and the position in which it starts. `shown` is the line that is shown now. */
function lineOf(name, line, start, open, shown) {
  const moves = line.moves.map((mv, place) => {
    const number = place === 0 || (mv.number.endsWith(".") && !mv.number.endsWith("...")) ? `${mv.number} ` : "";
    const button = make("button", { type: "button" }, `${number}${mv.san}`);
    if (shown?.moves === line.moves && shown.step === place + 1) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => open({ moves: line.moves, step: place + 1, start }));
    return button;
  });
  return make("p", { class: "line" }, make("b", {}, name), ...moves.flatMap((button) => [" ", button]), ` ${written(line.evaluation)}`);
}

const headingOf = (ply) => `${ply.number} ${ply.san}${sign(ply)}${ply.mark ? `: ${MARKS[ply.mark].name}` : ""}`;

/** Returns the squares that the reasons for a move refer to. */
const factSquares = (ply) => [...new Set([...ply.reasons.played, ...ply.reasons.best].flatMap((fact) => fact.squares))];

/** Returns the moves to show as arrows: if the move was bad, the best move and the reply. */
function arrowMoves(ply) {
  if (!isBad(ply)) return [];
  const [best, reply] = [ply.best?.moves[0], ply.reply?.moves[0]];
  return [best && { ...best, kind: "best" }, reply && { ...reply, kind: "reply" }].filter(Boolean);
}

/** Says how far a bad move lowered its player's winning chances. */
function chancesOf(report, ply) {
  const [before, after] = [winAt(report, ply.ply - 1), ply.win];
  if (!isBad(ply) || before === null || after === null) return "";
  const percent = (win) => `${(ply.side === "white" ? win : 100 - win).toFixed(0)}\u00a0%`;
  if (percent(before) === percent(after)) return "";
  const values = { before: percent(before), after: percent(after) };
  if (report.side === ply.side) return t("Your winning chances fell from {before} to {after}.", values);
  return ply.side === "white" ? t("White's winning chances fell from {before} to {after}.", values) : t("Black's winning chances fell from {before} to {after}.", values);
}

/** Creates a paragraph of words that are always English, such as reasons. */
const english = (text, attributes = {}) => make("p", { lang: "en", ...attributes }, text);

/** Returns the comments on the position after this many plies. */
function wordsAt(report, at, open, shown) {
  const ply = report.plies[at - 1];
  const told = [];
  if (ply) {
    const score = [written(ply.evaluation), chancesOf(report, ply)].filter(Boolean).join(". ");
    if (score) told.push(make("p", { class: "muted" }, score));
    for (const fact of ply.reasons.played) told.push(english(fact.text));
    if (ply.reply && ply.mark !== "good") told.push(lineOf(t("Answer"), ply.reply, ply.fen, open, shown));
    if (ply.best) told.push(lineOf(t("Best"), ply.best, fenAt(report, at - 1), open, shown));
    for (const fact of ply.reasons.best) told.push(english(fact.text));
    for (const words of ply.words) told.push(english(words, { class: "muted" }));
    if (at === report.plies.length && report.game.ending) told.push(english(`The game ended by ${report.game.ending}.`));
  }
  for (const draw of report.game.draws) if (draw.ply === at) told.push(english(draw.text));
  if (at === 0) for (const warning of report.game.warnings) told.push(english(warning, { class: "warning" }));
  return told;
}

/* People */

/** Shows the shares of players by rating who play a move and the best move, in words and as a curve. */
function sharesOf(report, ply) {
  const shares = ply?.shares;
  if (!shares) return { words: [t("Go to a move to see how many players of each rating play it.")], chart: [] };
  const [width, height, left, bottom] = [400, 160, 34, 18];
  const { ratings } = report;
  const x = (place) => left + ((width - left - 8) * place) / (ratings.length - 1);
  const isOther = shares.best && ply.best;
  const most = Math.max(0.1, ...shares.played, ...(isOther ? shares.best : []));
  const top = Math.min(1, Math.ceil(most * 10) / 10);
  const y = (share) => 8 + (height - 8 - bottom) * (1 - share / top);
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "shares", "aria-label": t("Shares of players by rating") });
  for (const share of [0, top / 2, top]) {
    svg.append(make("path", { d: `M${left} ${y(share)}H${width - 8}`, class: "axis" }), make("text", { x: 0, y: y(share) + 4 }, `${Math.round(100 * share)} %`));
  }
  ratings.forEach((rating, place) => {
    if (place % 2 === 0) svg.append(make("text", { x: x(place) - 12, y: height - 2 }, rating));
  });
  const path = (values) => "M" + values.map((share, place) => `${x(place).toFixed(1)} ${y(share).toFixed(1)}`).join("L");
  svg.append(make("path", { d: path(shares.played), class: "played" }));
  if (isOther) svg.append(make("path", { d: path(shares.best), class: "best" }));
  const key = (kind, text) => make("b", { class: kind }, text);
  const best = isOther ? [` ${t("and the best move,")} `, key("best", ply.best.moves[0].san)] : [];
  const words = [`${t("Players who play")} `, key("played", ply.san), ...best, t(", by rating.")];
  return { words, chart: [svg] };
}

/* The summary */

function summaryTable(report) {
  const number = (value, digits = 0) => (value === null ? "–" : value.toFixed(digits));
  const rating = (side) => (side.estimate ? `${side.estimate.estimate} (${side.estimate.low}–${side.estimate.high})` : "–");
  const row = (name, of) => [name, ...[report.white, report.black].map((side) => String(of(side)))];
  return table(["", player(report, "white"), player(report, "black")], [
    row(t("Accuracy, %"), (side) => number(side.accuracy, 1)),
    ...[t("Opening"), t("Middlegame"), t("Endgame")].map((phase, place) => row(phase, (side) => number(side.by_phase[place], 1))),
    row(t("Blunders ??"), (side) => side.blunders),
    row(t("Mistakes ?"), (side) => side.mistakes),
    row(t("Inaccuracies ?!"), (side) => side.inaccuracies),
    row(t("Only moves !"), (side) => side.good),
    row(t("Mates missed, allowed"), (side) => `${side.missed_mates}, ${side.allowed_mates}`),
    row(t("Plays like"), rating),
  ]);
}

/** Returns how the figures were found. */
function about(report) {
  const marks = t("Marks and accuracy follow Lichess: the winning chances that a move loses. The reasons are facts that were checked on the board; where there are none, the lines speak for themselves.");
  const people = report.people ? t("The shares of players are those of {people}, a model of people's play. “Plays like” is the rating that fits all moves of the game best, with an interval that holds four players in five.", report) : "";
  return [...scoresOf(report), ` ${marks} ${people}`.trimEnd()];
}

const titleOf = (report) => `${player(report, "white")} – ${player(report, "black")}, ${report.game.result}`;
/** Returns who gave the scores, and how reliable the marks are if no judge did. */
function scoresOf(report) {
  const scores = t("Scores by {judge}, {nodes} nodes a position.", { judge: report.judge ?? report.network, nodes: report.nodes });
  return report.reliability ? [`${scores} `, make("span", { lang: "en" }, report.reliability)] : [scores];
}
const openingOf = (report) => (report.game.opening ? `${report.game.eco} ${report.game.opening}` : "");

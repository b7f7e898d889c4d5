const runs = data;
runs.forEach((run, number) => {
  run.colour = `var(--run-${number % 8})`;
  run.shown = true;
  // Validation lines contain only a step; the training line for that step has the other values.
  const at = new Map(run.lines.filter((line) => line.split === "train").map((line) => [line.step, line]));
  for (const line of run.lines) {
    line.samples ??= at.get(line.step)?.samples;
    line.seconds ??= at.get(line.step)?.seconds;
  }
});
const settings = { axis: "step", smooth: 0.6 };

const mebibytes = (value) => short(value / 2 ** 20);
const at = (line, path) => path.split(".").reduce((value, key) => value?.[key], line);
const last = (run, split) => run.lines.findLast((line) => line.split === split);

/* Charts */

const SIZE = { width: 420, height: 230, left: 46, right: 10, top: 8, bottom: 22 };

/** An empty chart with its axes, and functions from values to places. */
function axes(x, y, size, format) {
  const svg = make("svg", { viewBox: `0 0 ${size.width} ${size.height}`, role: "img" });
  const right = size.width - size.right, bottom = size.height - size.bottom;
  const horizontal = (value) => size.left + ((value - x[0]) / (x[1] - x[0])) * (right - size.left);
  const vertical = (value) => bottom - ((value - y[0]) / (y[1] - y[0])) * (bottom - size.top);
  for (const tick of ticks(...y, 4)) {
    svg.append(make("line", { class: "mesh", x1: size.left, x2: right, y1: vertical(tick), y2: vertical(tick) }));
    svg.append(make("text", { x: size.left - 6, y: vertical(tick) + 4, "text-anchor": "end" }, format(tick)));
  }
  for (const tick of ticks(...x, 5)) {
    svg.append(make("text", { x: horizontal(tick), y: bottom + 15, "text-anchor": "middle" }, short(tick)));
  }
  return { svg, horizontal, vertical };
}

function points(run, split, path) {
  const scale = settings.axis === "seconds" ? 3600 : 1;
  return run.lines
    .filter((line) => line.split === split && Number.isFinite(at(line, path)))
    .map((line) => [line[settings.axis] / scale, at(line, path)])
    .filter((point) => Number.isFinite(point[0]));
}

/** Exponential average, without the bias of its beginning. */
function smoothed(series) {
  let sum = 0, weight = 0;
  return series.map(([x, y]) => {
    sum = settings.smooth * sum + (1 - settings.smooth) * y;
    weight = settings.smooth * weight + (1 - settings.smooth);
    return [x, sum / weight];
  });
}

const trace = (series, { horizontal, vertical }) =>
  series.map(([x, y], number) => `${number ? "L" : "M"}${horizontal(x).toFixed(1)} ${vertical(y).toFixed(1)}`).join("");

/** Range of the values after the first twentieth, which is far off the scale of all others. */
function range(all, end, fromZero) {
  const settled = all.flatMap((curve) => curve.series).filter(([x]) => x >= end / 20).map(([, y]) => y);
  const low = fromZero ? 0 : Math.min(...settled), high = Math.max(...settled);
  const margin = (high - low || Math.abs(high) || 1) / 16;
  return [fromZero ? 0 : low - margin, high + margin];
}

function curves(title, note, path, format = short, fromZero = false, average = smoothed) {
  const all = [];
  for (const run of runs.filter((run) => run.shown)) {
    for (const split of ["train", "validation"]) {
      const series = points(run, split, path);
      if (series.length) all.push({ run, split, series: split === "train" ? average(series) : series });
    }
  }
  if (!all.length) return null;
  const end = Math.max(...all.flatMap((curve) => curve.series.map(([x]) => x)));
  const chart = axes([0, end || 1], range(all, end, fromZero), SIZE, format);
  const clip = make("g");
  for (const { run, split, series } of all) {
    const visible = series.filter(([x, y]) => chart.vertical(y) >= 0 && chart.vertical(y) <= SIZE.height - SIZE.bottom + 2);
    clip.append(make("path", { class: split, stroke: run.colour, d: trace(visible, chart) }));
    if (split === "validation" && visible.length <= 60) {
      for (const [x, y] of visible) {
        clip.append(make("circle", { cx: chart.horizontal(x), cy: chart.vertical(y), r: 2.4, fill: run.colour }));
      }
    }
  }
  chart.svg.append(clip);
  follow(chart, all, format);
  return make("figure", {}, make("figcaption", {}, title, make("small", {}, note)), chart.svg);
}

/** Shows the values nearest to the pointer. */
function follow({ svg, horizontal }, all, format) {
  const cross = make("line", { class: "cross", y1: SIZE.top, y2: SIZE.height - SIZE.bottom, visibility: "hidden" });
  svg.append(cross);
  const tip = document.getElementById("tip");
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const place = ((event.clientX - box.left) / box.width) * SIZE.width;
    const near = (series) => series.reduce((best, point) =>
      Math.abs(horizontal(point[0]) - place) < Math.abs(horizontal(best[0]) - place) ? point : best);
    const found = all.map((curve) => ({ ...curve, point: near(curve.series) }));
    const x = found[0].point[0];
    cross.setAttribute("x1", horizontal(x));
    cross.setAttribute("x2", horizontal(x));
    cross.setAttribute("visibility", "visible");
    tip.replaceChildren(make("div", {}, `${settings.axis === "seconds" ? "hour" : settings.axis} ${short(x)}`),
      ...found.map(({ run, split, point }) => make("div", {},
        make("b", { style: `--colour: ${run.colour}` }, `${run.name}, ${split}`), make("span", {}, format(point[1])))));
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - width - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - height - 8)}px`;
  });
  svg.addEventListener("pointerleave", () => {
    tip.hidden = true;
    cross.setAttribute("visibility", "hidden");
  });
}

/** Mean distance between prediction and truth, by the weight of the bins. */
function miscalibration(bins) {
  const filled = (bins ?? []).filter((bin) => bin);
  const weight = filled.reduce((sum, bin) => sum + bin[0], 0);
  return filled.reduce((sum, bin) => sum + bin[0] * Math.abs(bin[1] - bin[2]), 0) / weight;
}

function reliability(name, title) {
  const found = runs.filter((run) => run.shown)
    .map((run) => ({ run, bins: last(run, "validation")?.calibration?.[name] }))
    .filter(({ bins }) => bins);
  if (!found.length) return null;
  const ends = name === "q" ? [-1, 1] : [0, 1];
  const chart = axes(ends, ends, { ...SIZE, width: 300, height: 270 }, short);
  const { svg, horizontal, vertical } = chart;
  svg.append(make("line", { class: "cross", x1: horizontal(ends[0]), y1: vertical(ends[0]), x2: horizontal(1), y2: vertical(1) }));
  for (const { run, bins } of found) {
    const filled = bins.filter((bin) => bin);
    const most = Math.max(...filled.map((bin) => bin[0]));
    svg.append(make("path", { class: "train", stroke: run.colour, d: trace(filled.map((bin) => [bin[1], bin[2]]), chart) }));
    for (const [weight, predicted, truth] of filled) {
      svg.append(make("circle", { cx: horizontal(predicted), cy: vertical(truth), r: 2 + 5 * Math.sqrt(weight / most), fill: run.colour, "fill-opacity": 0.8 }));
    }
  }
  const error = found.map(({ bins }) => short(miscalibration(bins))).join(", ");
  return make("figure", {}, make("figcaption", {}, title, make("small", {}, `mean error ${error}`)), svg);
}

/** Elo differences by generation, with their intervals. After a clean score, an end and the middle are null. */
function strength(opponent, title) {
  const all = runs.filter((run) => run.shown).flatMap((run) =>
    run.strengths.map((measured) => ({ run, generation: measured.generation, elo: measured[opponent].elo })));
  if (!all.length) return null;
  const known = [0, ...all.flatMap(({ elo }) => elo).filter(Number.isFinite)];
  const margin = (Math.max(...known) - Math.min(...known) || 100) / 12;
  const ends = [Math.min(...known) - margin, Math.max(...known) + margin];
  const chart = axes([0, Math.max(...all.map(({ generation }) => generation))], ends, SIZE, short);
  for (const { run, generation, elo: [low, middle, high] } of all) {
    const x = chart.horizontal(generation);
    const [y1, y2] = [chart.vertical(low ?? ends[0]), chart.vertical(high ?? ends[1])];
    chart.svg.append(make("line", { class: "validation", stroke: run.colour, x1: x, x2: x, y1, y2 }));
    if (middle !== null) chart.svg.append(make("circle", { cx: x, cy: chart.vertical(middle), r: 3, fill: run.colour }));
  }
  return make("figure", {}, make("figcaption", {}, title, make("small", {}, "Elo by generation")), chart.svg);
}

/* Tables */

const labelled = (run) => make("b", { style: `--colour: ${run.colour}` }, run.name);

function summary() {
  const shown = runs.filter((run) => run.shown);
  const rows = shown.map((run) => {
    const train = last(run, "train"), validation = last(run, "validation");
    const calibration = validation?.calibration ?? {};
    const results = ["win", "draw", "loss"].map((name) => miscalibration(calibration[name])).filter(Number.isFinite);
    return [
      labelled(run), `${short(train?.step)} of ${short(run.config?.steps)}`, short(train?.samples),
      short(train?.seconds / 3600), percent(validation?.policy_accuracy), short(validation?.policy),
      percent(validation?.result_accuracy), short(validation?.result), short(isTrained("q", [run]) ? validation?.q : NaN),
      short(Math.max(...results)), short(train?.samples_per_second), percent(train?.time?.outside), mebibytes(train?.memory),
    ];
  });
  const standing = table(
    ["run", "steps", "samples", "hours", "policy accuracy", "policy loss", "result accuracy", "result loss", "q loss",
      "miscalibration", "positions/s", "outside", "MiB"], rows);
  const events = shown.flatMap((run) => run.lines.filter((line) => line.split === "event").map((line) =>
    make("li", {}, labelled(run), `: back from step ${line.rolled_back_from} to step ${line.step}: ${line.reason}`)));
  fill("summary", [rows.length && standing, events.length && make("ul", { class: "events" }, ...events)]);
}

function statistics() {
  const seen = new Map();
  for (const run of runs.filter((run) => run.data)) {
    const key = JSON.stringify(run.data);
    seen.set(key, [...(seen.get(key) ?? []), run]);
  }
  const cards = [...seen].map(([key, users]) => {
    const counts = JSON.parse(key);
    const part = (name, count, whole) => [make("dt", {}, name), make("dd", {}, short(count)), make("dd", {}, whole ? percent(count / whole) : "")];
    const { games, samples, results = {}, targets = {}, q_histogram: histogram = [] } = counts;
    const bars = (title, counts, ends) => {
      const highest = Math.max(...counts, 1);
      return make("div", { class: "card" }, make("figcaption", {}, title),
        make("div", { class: "bars" }, ...counts.map((count) => make("i", { style: `height: ${(100 * count) / highest}%`, title: short(count) }))),
        make("div", { class: "ends" }, ...ends.map((end) => make("span", {}, end))));
    };
    const ratings = Object.entries(counts.rating_histogram ?? {}).map(([rating, count]) => [Number(rating), count]).sort(([one], [other]) => one - other);
    const list = (...parts) => make("dl", {}, ...parts.flat().filter(Boolean));
    const optional = (name, count, whole) => (count === undefined ? [] : part(name, count, whole));
    return make("div", {}, make("p", {}, ...users.flatMap((run, number) => [number ? ", " : "", labelled(run)]),
      make("span", { class: "note" }, ` – ${(counts.files ?? []).join(", ")}`)),
      make("div", { class: "pairs" },
        make("div", { class: "card" }, make("figcaption", {}, "Games"), list(part("games", games), optional("won by White", results.white, games),
          optional("drawn", results.draw, games), optional("won by Black", results.black, games),
          optional("duplicates", counts.duplicate_games, games), optional("bad records", counts.bad_records))),
        make("div", { class: "card" }, make("figcaption", {}, "Samples"), list(part("samples", samples),
          optional("of variations", counts.variation_samples, samples), optional("duplicate positions", counts.duplicate_positions, samples),
          Object.entries(targets).flatMap(([name, count]) => part(name.replaceAll("_", " "), count, samples)))),
        histogram.length ? bars("q of the mover", histogram, ["−1", "0", "1"]) : null,
        ratings.length ? bars("Ratings of the players", ratings.map(([, count]) => count), [ratings[0][0], ratings.at(-1)[0]]) : null));
  });
  fill("data", cards);
}

function flattened(value, path = "", found = {}) {
  if (value !== null && typeof value === "object") {
    for (const [key, inner] of Object.entries(value)) flattened(inner, path ? `${path}.${key}` : key, found);
  } else if (value !== null) found[path] = String(value);
  return found;
}

function configuration() {
  const known = runs.filter((run) => run.config);
  const flat = known.map((run) => flattened(run.config));
  const keys = [...new Set(flat.flatMap(Object.keys))].filter((key) => key !== "name");
  const differing = keys.filter((key) => new Set(flat.map((config) => config[key])).size > 1);
  const rows = differing.map((key) => [key, ...flat.map((config) => config[key] ?? "–")]);
  fill("configs", [
    known.length > 1 && make("p", { class: "note" }, differing.length ? "Where they differ:" : "The configurations are equal."),
    rows.length && make("div", { class: "scroll" }, table(["key", ...known.map(labelled)], rows)),
    ...known.map((run, number) => make("details", runs.length === 1 ? { open: "" } : {},
      make("summary", {}, labelled(run), ": all keys"),
      make("pre", {}, Object.entries(flat[number]).map(([key, value]) => `${key} = ${value}`).join("\n")))),
  ]);
}

/* The page */

const ticked = (value) => `${+(100 * value).toPrecision(3)} %`;
/** Terms of the loss by their names: title and meaning. */
const TERMS = {
  policy_accuracy: ["Policy accuracy", "share of moves found"],
  policy: ["Policy", "cross-entropy"],
  result: ["Result", "cross-entropy of win, draw, loss"],
  result_accuracy: ["Result accuracy", "share of results found"],
  q: ["q", "squared error"],
  q_categorical: ["q", "cross-entropy of its bucket"],
  short_term: ["Short-term value", "squared error"],
  policy_soft: ["Soft policy", "cross-entropy"],
  teacher_policy: ["Teacher's policy", "cross-entropy"],
  moves_left: ["Moves left", "Huber loss"],
  loss: ["Total", "weighted sum of all losses"],
};
/** Numbers of a line that are no terms of the loss. */
const OTHERS = ["step", "samples", "seconds", "samples_per_second", "memory", "rate", "gradient_norm"];

/** Whether a term of the loss, or the loss of an accuracy, has a weight above 0 in one of the runs. */
const isTrained = (name, some = runs) =>
  some.some(({ config }) => (config?.loss?.[name.replace(/_accuracy$/, "")] ?? 1) > 0);

/** The terms that were recorded and trained: those above, then what else a family of networks has. */
function terms() {
  const lines = runs.flatMap((run) => run.lines.filter(({ split }) => split === "train" || split === "validation"));
  const numbers = new Set(lines.flatMap((line) => Object.keys(line).filter((key) => Number.isFinite(line[key]))));
  return [...new Set([...Object.keys(TERMS), ...numbers])].filter((name) => numbers.has(name) && !OTHERS.includes(name) && isTrained(name));
}

function draw() {
  fill("strength", [strength("first", "Against the first network"), strength("previous", "Against the previous network")]);
  fill("learning", [
    ...terms().map((name) => {
      const [title, note] = TERMS[name] ?? [name.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase()), ""];
      return curves(title, note, name, name.endsWith("_accuracy") ? ticked : short);
    }),
    curves("Gradient", "length before clipping", "gradient_norm"),
    curves("Learning rate", "", "rate", short, true, (series) => series),
  ]);
  fill("calibration", [reliability("win", "Win"), reliability("draw", "Draw"), reliability("loss", "Loss"), isTrained("q") ? reliability("q", "q") : null]);
  fill("speed", [
    curves("Speed", "positions a second", "samples_per_second", short, true),
    curves("Outside", "share of time outside forward, backward and step", "time.outside", ticked, true),
    curves("Data", "share of time waiting for the loader", "time.data", ticked, true),
    curves("Preparation", "share of time bringing batches to the device", "time.prepare", ticked, true),
    curves("Forward", "share of time", "time.forward", ticked, true),
    curves("Backward", "share of time", "time.backward", ticked, true),
    curves("Optimizer", "share of time", "time.step", ticked, true),
    curves("Memory", "MiB of the process", "memory", mebibytes, true),
  ]);
  summary();
}

const legend = document.getElementById("legend");
for (const run of runs) {
  const button = make("button", { class: "run", style: `--colour: ${run.colour}`, "aria-pressed": "true" }, run.name);
  button.addEventListener("click", () => {
    run.shown = !run.shown;
    button.setAttribute("aria-pressed", run.shown);
    draw();
  });
  legend.append(button);
}
for (const name of ["axis", "smooth"]) {
  document.getElementById(name).addEventListener("input", (event) => {
    settings[name] = name === "smooth" ? Number(event.target.value) : event.target.value;
    draw();
  });
}
statistics();
configuration();
draw();

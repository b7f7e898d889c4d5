const number = (value, digits = 1) => (value === null || value === undefined ? "–" : value.toFixed(digits));
const total = data.total;
const marks = (counts) => counts.join(", ");
const known = (date) => (/\d/.test(date) ? date : "–");

document.getElementById("title").textContent = document.title;
document.getElementById("scores").textContent = data.scores.join(" ");
fill("total", [data.games.length ? table(["", ""], [
  ["Games", String(data.games.length)],
  ["Moves", String(total.moves)],
  ["Accuracy, %", number(total.accuracy)],
  ...["Opening", "Middlegame", "Endgame"].map((phase, place) => [phase, number(total.by_phase[place])]),
  ["Blunders, mistakes, inaccuracies", marks(total.marks)],
  ["Mates missed, allowed", marks(total.mates)],
]) : null]);
const rating = total.estimate;
document.getElementById("rating").textContent = rating
  ? `Over all these games, play like that of a player rated ${rating.estimate} (${rating.low} to ${rating.high}).`
  : "";

function players(game) {
  const text = `${game.white || "White"} – ${game.black || "Black"}`;
  return game.page ? make("a", { href: encodeURI(game.page) }, text) : text;
}
fill("games", [data.games.length ? table(
  ["Players", "Date", "Result", "Opening", "Moves", "Accuracy, %", "Marks"],
  data.games.map((game) => [
    players(game), known(game.date), game.result, game.opening || "–", String(game.moves),
    game.accuracy.map((accuracy) => number(accuracy, 0)).join(", "), marks(game.marks),
  ]),
  [3],
) : null]);
fill("topics", [data.topics.length ? table(["Reason", "Moves"], data.topics.map(([name, count]) => [name, String(count)])) : null]);
fill("openings", [data.openings.length ? table(
  ["Opening", "Games", "Score, %", "Accuracy, %"],
  data.openings.map((row) => [row.name, String(row.games), number(row.score, 0), number(row.accuracy, 0)]),
) : null]);
fill("unreadable", [data.unreadable.length ? table(["Game"], data.unreadable.map((text) => [text])) : null]);

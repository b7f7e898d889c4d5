// Parses PGN into tags and words.

import { defaultHeaders } from "/board/chessops/pgn.js";
import { element, trouble } from "./dom.js";
import { isFen } from "./fen.js";
import { t } from "./messages.js";

/** Maximum number of games listed. */
const MOST = 500;
/** Maximum number of characters in a line of moves. */
const LONGEST = 79;
/** Comments before the tags. */
const PREFACE = /^(?:\s*(?:\{[^}]*\}|;.*))+(?=\s*\[)/;
/** A tag; its value may contain quotes. */
const TAG = /^\s*\[\s*([A-Za-z0-9][\w+#=:-]*)\s+"((?:[^"\\\n]|\\.|"(?![^\S\n]*\]))*)"\s*\]/;
/** A tag whose value is unreadable. */
const BAD_TAG = /^\s*\[[A-Za-z][^\n]*\][^\S\n]*(?:\n|$)/;
/** A promotion's parentheses, as in a8(Q), do not begin a variation. */
const TOKENS = /\{[^}]*(?:\}|$)|;.*|\$\d+|[()*]|[^\s(){};$*]*[18]=?\(\p{L}\)[^\s(){};$*]*|[^\s(){};$*]+/gu;
const RESULT = /^(1-0|0-1|1\/2-1\/2|\*)$/;
/** Words between moves that are ignored. */
const ANNOTATION = /^(?!--$)(e\.?p\.?|[+=\/#-]+|[↑→⇆⟳]+|ch|mate)[!?]*$/;
/** The glyphs of signs, by their numbers. */
const NAGS = Object.entries({
  1: "!", 2: "?", 3: "!!", 4: "??", 5: "!?", 6: "?!", 7: "□", 10: "=", 13: "∞", 14: "⩲ += +/=", 15: "⩱ =+ =/+",
  16: "± +/-", 17: "∓ -/+", 18: "+-", 19: "-+", 140: "⌓", 146: "N TN",
});
const SIGNS = new Map(NAGS.flatMap(([number, signs]) => signs.split(" ").map((sign) => [sign, Number(number)])));
const names = new Map(NAGS.map(([number, signs]) => [Number(number), signs.split(" ")[0]]));

/** The marks of the glyphs ! ? !! ?? ?!, by their numbers. */
const MARKS = { 1: "good", 2: "mistake", 3: "good", 4: "blunder", 6: "inaccuracy" };

/** Returns the mark of a glyph, given its number, if it judges the move so. */
export const markOf = (nag) => MARKS[nag];

/** Returns the sign of a glyph, given its number. */
export const signOf = (nag) => names.get(nag) ?? `$${nag}`;

/** Returns the texts of the games in a text, which may have tags or not: at most one more than are listed. */
export function split(text) {
  if (isFen(text)) return [text.trim()];
  const games = [];
  let rest = clean(text);
  while (rest.trim() && games.length <= MOST) {
    const { end } = read(rest);
    games.push(rest.slice(0, end).trim());
    rest = rest.slice(end);
  }
  return games;
}

/** Describes a game on one line by its tags: players, result and date. Empty if its tags name no player. */
export function describe(pgn) {
  const tag = (name) => pgn.match(new RegExp(`^\\[${name}\\s+"(.*)"\\]`, "m"))?.[1].replace(/^\?+$/, "") ?? "";
  if (!tag("White") && !tag("Black")) return "";
  const players = `${tag("White") || t("White")} – ${tag("Black") || t("Black")}`;
  const rest = [tag("Result").replace("*", ""), tag("Date").replaceAll(/\?+\.?/g, "")].filter(Boolean);
  return [players, ...rest].join(", ");
}

/** Fills a list with the games of a text, and says so if there are too many. */
export function listGames(select, games) {
  if (games.length > MOST) trouble(t("Only the first {count} games are listed.", { count: MOST }));
  const options = games.slice(0, MOST).map((game, value) => {
    const text = describe(game) || game.replace(/^\[.*$/gm, "").trim().slice(0, 40);
    return element("option", { value, textContent: `${value + 1}: ${text}` });
  });
  select.replaceChildren(...options);
  select.closest("label").hidden = games.length < 2;
}

/** Removes lines that PGN hides from programs. */
const clean = (text) => text.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n").replace(/^%.*$/gm, "");

/** Returns the first game in a text: its tags, the words of the movetext, with parentheses, comments and glyphs, and its
 * result; whether it has tags; and where it ends. */
export const readPgn = (text) => read(clean(text));

function read(text) {
  const tags = defaultHeaders();
  const [preface = ""] = text.match(PREFACE) ?? [];
  let at = preface.length;
  let [hasTags, hasEvent] = [false, false];
  for (let tag; (tag = text.slice(at).match(TAG) ?? text.slice(at).match(BAD_TAG)); hasTags = true) {
    if (tag[1] === "Event" && hasEvent) return { tags, words: [], result: tags.get("Result"), hasTags, end: at };
    hasEvent ||= tag[1] === "Event";
    if (tag[1]) tags.set(tag[1], tag[2].replace(/\\(["\\])/g, "$1"));
    at += tag[0].length;
  }
  const words = [...preface.matchAll(TOKENS)].flatMap(([token]) => commentOf(token));
  let [depth, moves, result, end] = [0, 0, undefined, text.length];
  for (const { 0: token, index } of text.slice(at).matchAll(TOKENS)) {
    const isMain = depth === 0;
    const isTag = /^\[[A-Za-z]/.test(token);
    const isRestart = /^1\.?(?![.…\d])/.test(token) && !RESULT.test(token) && (moves > 1 || result);
    if (/^[{;]/.test(token)) words.push(...commentOf(token));
    else if (token[0] === "$") words.push({ nag: Number(token.slice(1)) });
    else if (isMain && ((isTag && (moves || result)) || isRestart)) {
      end = at + index;
      break;
    } else if (RESULT.test(token)) {
      if (isMain) result = token;
    } else {
      if (token === "(") depth += 1;
      if (token === ")") depth = Math.max(depth - 1, 0);
      const word = token === "0000" ? token : token.replace(/^(\d+(?=[.…])|\d+$)?[.…]*/, "");
      if (SIGNS.has(word)) words.push({ nag: SIGNS.get(word) });
      else if (word && !ANNOTATION.test(word)) {
        words.push(word.replace(/^[!?]+/, ""));
        if (isMain && !/^[()]$/.test(word)) moves += 1;
        const sign = SIGNS.get(word.match(/[!?]+$/)?.[0]);
        if (sign) words.push({ nag: sign });
      }
    }
  }
  return { tags, words, result: result ?? tags.get("Result"), hasTags, end };
}

/** Returns the comment in a token, unless it is empty. */
function commentOf(token) {
  const comment = token.replace(/^[{;]|\}$/g, "").trim().replace(/\s+/g, " ");
  return comment ? [{ comment }] : [];
}

/** Breaks the moves of a game into short lines. Commands such as [%clk 0:01:00] stay whole, and no line begins with a
 * character that some readers would misinterpret there. */
export function wrapped(pgn) {
  const begin = pgn.indexOf("\n\n") + 2;
  const lines = [""];
  for (const [word] of pgn.slice(begin).matchAll(/(?:\[%[^\]}]*\]|\S)+(?:\s+(?:\[%[^\]}]*\]|[[%;])\S*)*/g)) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (longer.length <= LONGEST) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return `${pgn.slice(0, begin)}${lines.join("\n")}\n`;
}

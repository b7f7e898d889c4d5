// Parses PGN into tags and words.

import { defaultHeaders } from "/board/chessops/pgn.js";

/** Comments before the tags. */
const PREFACE = /^(?:\s*(?:\{[^}]*\}|;.*))+(?=\s*\[)/;
const TAG = /^\s*\[\s*([A-Za-z0-9_]+)\s+"((?:[^"\\]|\\.)*)"\s*\]/;
/** A tag whose value is unreadable. */
const BAD_TAG = /^\s*\[[A-Za-z][^\n]*\][^\S\n]*(?:\n|$)/;
const TOKENS = /\{[^}]*(?:\}|$)|;.*|\$\d+|[()*]|[^\s(){};$*]+/g;
const RESULT = /^(1-0|0-1|1\/2-1\/2|\*)$/;
/** Words between moves that are ignored. */
const ANNOTATION = /^(?!--$)(e\.?p\.?|[+=\/#-]+|[±∓⩲⩱∞□⌓↑→⇆⟳]+|N|TN|ch|mate)[!?]*$/;

/** Returns the tags, the words and parentheses of the movetext, and the result of the first game in a text, and whether
 * the text contains tags or other games. */
export function readPgn(text) {
  let rest = text.replace(/^\uFEFF/, "").replace(/^%.*$/gm, "").replace(PREFACE, "");
  const tags = defaultHeaders();
  let hasTags = false;
  for (let tag; (tag = rest.match(TAG) ?? rest.match(BAD_TAG)); hasTags = true) {
    if (tag[1]) tags.set(tag[1], tag[2].replace(/\\(.)/g, "$1"));
    rest = rest.slice(tag[0].length);
  }
  // A promotion's parentheses, as in a8(Q), do not begin a variation.
  rest = rest.replace(/([18]=?)\((\p{L})\)/gu, "$1$2");
  const words = [];
  let [depth, moves, result, hasMore] = [0, 0, undefined, false];
  for (const [token] of rest.matchAll(TOKENS)) {
    const isMain = depth === 0;
    const isTag = /^\[[A-Za-z]/.test(token);
    const isRestart = /^1\.?(?![.…\d])/.test(token) && !RESULT.test(token) && (moves > 1 || result);
    if (/^[{;$]/.test(token)) continue;
    if (isMain && ((isTag && (moves || result)) || isRestart)) {
      hasMore = true;
      break;
    }
    if (RESULT.test(token)) {
      if (isMain) result = token;
      continue;
    }
    if (token === "(") depth += 1;
    if (token === ")") depth = Math.max(depth - 1, 0);
    const word = token.replace(/^(\d+(?=[.…])|\d+$)?[.…]*[!?]*/, "");
    if (!word || ANNOTATION.test(word)) continue;
    words.push(word);
    if (isMain && !/^[()]$/.test(word)) moves += 1;
  }
  return { tags, words, result: result ?? tags.get("Result") ?? "*", hasTags, hasMore };
}

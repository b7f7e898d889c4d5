export {
  MARKS, about, arrowMoves, clockAt, factSquares, fenAt, headingOf, isBad, lineOf, make, nextMark, openingOf,
  player, pointInGraph, scoreGraph, scoresOf, sharesOf, showBar, speak, summaryTable, titleOf, winAt,
  wordsAt, written,
};

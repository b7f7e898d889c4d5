export {
  MARKS, about, arrowMoves, clockAt, factSquares, fenAt, headingOf, isBad, lineOf, make, moveCells, nextMark, openingOf,
  player, pointInGraph, pointInMoves, scoreGraph, scoresOf, sharesOf, showBar, summaryTable, titleOf, winAt, wordsAt,
  written,
};

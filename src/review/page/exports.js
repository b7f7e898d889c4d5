export {
  MARKS, about, arrowMoves, clockAt, factSquares, fenAt, headingOf, isBad, lineOf, make, moveCells, nextMark, openingOf,
  player, pointInGraph, pointInMoves, scoreGraph, sharesOf, showBar, summaryTable, titleOf, winAt, wordsAt, written,
};

export {
  MARKS, about, arrowMoves, clockAt, factSquares, fenAt, headingOf, isBad, lineOf, make, moveCells, nextMark, openingOf,
  player, pointInGraph, pointInMoves, scoreGraph, sharesOf, showBar, sign, summaryTable, titleOf, winAt, wordsAt, written,
};

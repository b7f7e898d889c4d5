"""Plays one game between two players under the rules of chess."""

from __future__ import annotations

from dataclasses import dataclass

import chess
import chess.engine
import chess.pgn

from .player import Forfeit

MATE_SCORE = 100_000


@dataclass(frozen=True)
class Adjudication:
    """Conditions under which a game ends before the rules of chess end it; by default, none.

    `resign` is (moves, centipawns): a side loses if its own score is at most
    −centipawns for this number of consecutive moves. `draw` is (first move,
    moves, centipawns): from this move number on, a game is drawn if the scores
    of both sides are within ±centipawns for this number of consecutive moves.
    `plies` is the length at which a game is drawn.
    """

    resign: tuple | None = None
    draw: tuple | None = None
    plies: int | None = None

    def verdict(self, board, scores):
        """Returns the result and the reason after a move, or None. `scores` has the scores of each colour's moves."""
        mover = not board.turn
        if self.resign:
            moves, limit = self.resign
            last = scores[mover][-moves:]
            if len(last) == moves and all(score is not None and score <= -limit for score in last):
                return loss(mover), "adjudication: resigned"
        if self.draw:
            first, moves, limit = self.draw
            last = scores[chess.WHITE][-moves:] + scores[chess.BLACK][-moves:]
            quiet = all(score is not None and abs(score) <= limit for score in last)
            if board.fullmove_number >= first and len(last) == 2 * moves and quiet:
                return "1/2-1/2", "adjudication: drawn scores"
        if self.plies and board.ply() >= self.plies:
            return "1/2-1/2", "adjudication: length"
        return None


def by_the_rules(board):
    """Returns the result and the reason if the game is over, otherwise None.

    Threefold repetition and the 50-move rule end the game without a claim, as in
    other match tools.
    """
    if board.is_checkmate():
        return loss(board.turn), "checkmate"
    if board.is_stalemate():
        return "1/2-1/2", "stalemate"
    if board.is_insufficient_material():
        return "1/2-1/2", "insufficient material"
    if board.is_repetition(3):
        return "1/2-1/2", "threefold repetition"
    if board.halfmove_clock >= 100:
        return "1/2-1/2", "fifty moves"
    return None


def loss(side):
    """Returns the result of a game that `side` loses."""
    return "0-1" if side == chess.WHITE else "1-0"


def forfeited(board, forfeit):
    """Returns the result and the reason after a fault of the side to move.

    Out of time, it only draws if no series of legal moves lets the opponent mate (FIDE Laws 6.9). That is judged by
    the material, as on Lichess: python-chess does not recognise blocked positions.
    """
    side, opponent = (chess.COLOR_NAMES[colour].capitalize() for colour in (board.turn, not board.turn))
    if forfeit.kind in (Forfeit.TIME, Forfeit.HANG) and board.has_insufficient_material(not board.turn):
        return "1/2-1/2", f"{side}: {forfeit}, but {opponent} cannot mate"
    return loss(board.turn), f"{side}: {forfeit}"


class Clocks:
    """The clocks of both sides; a side without a time control has no clock."""

    def __init__(self, thinking):
        self.thinking = thinking
        self.left = {side: plan.clock and plan.clock.base for side, plan in thinking.items()}
        self.played = {chess.WHITE: 0, chess.BLACK: 0}

    def limit(self, side):
        """Returns the limits for this side's `go`, and its remaining time in seconds, or None without a clock."""
        plan = self.thinking[side]
        if not plan.clock:
            return chess.engine.Limit(plan.time, plan.depth, plan.nodes), plan.time
        # Engines expect both clocks, so an opponent without a clock is shown with the clock of the side to move.
        left = {s: max(self.left[side if self.left[s] is None else s], 0.001) for s in self.left}
        increment = {s: (self.thinking[s].clock or plan.clock).increment for s in self.left}
        return chess.engine.Limit(
            white_clock=left[chess.WHITE],
            black_clock=left[chess.BLACK],
            white_inc=increment[chess.WHITE],
            black_inc=increment[chess.BLACK],
            remaining_moves=(plan.clock.moves - self.played[side] % plan.clock.moves)
            if plan.clock.moves
            else None,
        ), self.left[side]

    def spend(self, side, seconds):
        """Deducts a move's time. It may exceed the remaining time by at most the margin."""
        self.played[side] += 1
        control = self.thinking[side].clock
        if control:
            self.left[side] = max(self.left[side] - seconds, 0.0) + control.increment
            if control.moves and self.played[side] % control.moves == 0:
                self.left[side] += control.base


async def play(board, players, adjudication):
    """Plays a game from `board`, whose moves are the opening.

    `players` is indexed by colour. Returns the game with the headers Result, Reason and
    Termination.
    """
    record = chess.pgn.Game.from_board(board)
    node = record.end()
    clocks = Clocks({side: player.entrant.thinking for side, player in players.items()})
    scores = {chess.WHITE: [], chess.BLACK: []}
    board = board.copy()
    fault = None
    verdict = by_the_rules(board)
    while verdict is None:
        side = board.turn
        limit, allowed = clocks.limit(side)
        try:
            # python-chess identifies the game by this object: a new object triggers ucinewgame.
            result, seconds = await players[side].think(board, limit, allowed, record)
        except Forfeit as forfeit:
            fault = forfeit
            verdict = forfeited(board, forfeit)
            break
        if result.resigned:
            verdict = loss(side), "resignation"
            break
        clocks.spend(side, seconds)
        board.push(result.move)
        node = node.add_variation(result.move, comment=comment(result.info, side, seconds))
        score = result.info.get("score")
        scores[side].append(score and score.pov(side).score(mate_score=MATE_SCORE))
        verdict = by_the_rules(board) or adjudication.verdict(board, scores)
    record.headers["Result"], record.headers["Reason"] = verdict
    record.headers["Termination"] = termination(verdict[1], fault)
    record.headers["PlyCount"] = str(board.ply() - record.board().ply())
    return record


def comment(info, side, seconds):
    """Returns the score, depth and time in the format of other match tools."""
    score = info.get("score")
    if score is None:
        return f"{seconds:.3f}s"
    score = score.pov(side)
    if score.is_mate():
        text = f"{'+' if score.mate() > 0 else '-'}M{abs(score.mate())}"
    else:
        text = f"{score.score() / 100:+.2f}"
    return f"{text}/{info.get('depth', 0)} {seconds:.3f}s"


def termination(reason, fault):
    """Returns the value of PGN's Termination tag."""
    if fault:
        kinds = {Forfeit.TIME: "time forfeit", Forfeit.HANG: "abandoned", Forfeit.CRASH: "abandoned"}
        return kinds.get(fault.kind, "rules infraction")
    return "adjudication" if reason.startswith("adjudication") else "normal"

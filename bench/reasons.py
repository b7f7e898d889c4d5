#!/usr/bin/env python3
"""Checks the reasons that `tessera review` gives for mistakes and blunders, and counts how many have one.

    bench/review.py games human-games.pgn.zst -o games.pgn --skip 400 --count 60
    tessera review games.pgn --judge stockfish --json > review.json
    bench/reasons.py review.json [--sample 50] [--stockfish FILE]

Each sentence is replayed with python-chess along the lines that the review names: the material at the end of a
line and whether it lasts, captures by static exchange, attacks, pins, defences, threats after a null move,
castling rights and pawns. Mates that the line does not force by its moves alone are confirmed by Stockfish. A
sentence of an unknown form counts as false. The program exits with status 1 if a sentence is false.

The reasons are of four kinds: what the reply wins (or the move gives up at once), what the better move would
have won or kept, a plain statement that the loss is positional, and facts without such a statement.

Needs chess: tools/venv.
"""

import argparse
import json
import random
import re
import sys
from collections import Counter
from pathlib import Path

import chess
import chess.engine

BAD = {"mistake", "blunder"}
PAWNS = {chess.PAWN: 1, chess.KNIGHT: 3, chess.BISHOP: 3, chess.ROOK: 5, chess.QUEEN: 9, chess.KING: 100}
WORTH = {chess.PAWN: 100, chess.KNIGHT: 325, chess.BISHOP: 325, chess.ROOK: 500, chess.QUEEN: 950}
ROLES = {chess.piece_name(role): role for role in PAWNS}
NUMBERS = ["no", "a", "two", "three", "four", "five", "six", "seven", "eight"]
SIDES = {"White": chess.WHITE, "Black": chess.BLACK}
LASTS = 8  # plies within which a loss must not be made good
LITTLE = 40  # centipawns

SAN = r"[KQRBNO0a-h][\w=+#-]*"
PIECE = r"the (\w+) on ([a-h][1-8])"


class False_(Exception):
    """A sentence does not hold."""


def claim(holds, why):
    if not holds:
        raise False_(why)


def captured(board, move):
    return chess.PAWN if board.is_en_passant(move) else board.piece_type_at(move.to_square) if board.is_capture(move) else None


def gain(board, move):
    """Returns the material in pawns that a move gains by the exchange on its square."""
    if board.is_castling(move):
        return 0
    victim = captured(board, move)
    value = PAWNS[victim] if victim else 0
    if move.promotion:
        value += PAWNS[move.promotion] - 1
    board.push(move)
    replies = [it for it in board.legal_moves if it.to_square == move.to_square and board.is_capture(it)]
    replies = [it for it in replies if it.promotion in (None, chess.QUEEN)]
    least = min(replies, key=lambda it: PAWNS[board.piece_type_at(it.from_square)], default=None)
    lost = max(0, gain(board, least)) if least else 0
    board.pop()
    return value - lost


def passed(board):
    """Returns the board after a null move, or `None` in check."""
    if board.is_check():
        return None
    board = board.copy(stack=False)
    board.push(chess.Move.null())
    board.ep_square = None
    return board


def settle(board, low, high, depth=8):
    """Returns the material of the side to move after the best captures."""
    own = worth(board, board.turn)
    if board.is_checkmate():
        return -99_999
    if depth == 0 or (not board.is_check() and own >= high):
        return own
    best = -99_999 if board.is_check() else own
    for move in list(board.legal_moves):
        if board.is_check() or board.is_capture(move) or move.promotion == chess.QUEEN:
            board.push(move)
            best = max(best, -settle(board, -high, -max(low, best), depth - 1))
            board.pop()
            if best >= high:
                break
    return best


def is_quiet(board):
    own = worth(board, board.turn)
    return not board.is_check() and not board.is_checkmate() and settle(board, own, own + 1) <= own


def count(board, side):
    return {role: len(board.pieces(role, side)) for role in WORTH}


def worth(board, side):
    own, other = count(board, side), count(board, not side)
    return sum(value * (own[role] - other[role]) for role, value in WORTH.items())


def uneven(before, after, side):
    """Returns what each side has lost in excess of the other, and the pieces to which it has promoted."""
    lost = [
        {role: number - count(after, color)[role] for role, number in count(before, color).items()}
        for color in (side, not side)
    ]
    for role in WORTH:
        a, b = lost[0][role], lost[1][role]
        both = min(a, b) if min(a, b) > 0 else max(a, b) if max(a, b) < 0 else 0
        lost[0][role], lost[1][role] = a - both, b - both
    for a, b in ((chess.BISHOP, chess.KNIGHT), (chess.KNIGHT, chess.BISHOP)):
        both = max(0, min(lost[0][a], lost[1][b]))
        lost[0][a], lost[1][b] = lost[0][a] - both, lost[1][b] - both
    new = [{role: -number for role, number in losses.items() if number < 0} for losses in lost]
    for losses, made in zip(lost, new, strict=True):
        losses[chess.PAWN] = max(0, losses[chess.PAWN] - sum(made.values()))
    return [{role: number for role, number in losses.items() if number > 0} for losses in lost], new


def read_list(text, kind=""):
    """Reads a list such as "a rook and two pawns"."""
    found = {}
    for part in re.split(r", | and ", text):
        number, name = part.split(" ", 1)
        name = name.removeprefix(kind)
        found[ROLES[name.removesuffix("s") if number != "a" else name]] = NUMBERS.index(number)
    return found


class Mark:
    """A marked move with its two lines."""

    def __init__(self, before, played, best, reply):
        self.before, self.played = before, played
        self.next = before.copy()
        self.next.push(played)
        self.mover = before.turn
        self.lines = {"best": (before, best), "reply": (self.next, reply), "played": (before, [played, *reply])}

    def line(self, text, names=("played", "reply", "best")):
        """Returns the line that begins with these moves, the number of moves, and the board after them."""
        words = text.split()
        for name in names:
            start, moves = self.lines[name]
            board = start.copy()
            sans = []
            for move in moves[: len(words)]:
                sans.append(board.san(move))
                board.push(move)
            if sans == words:
                return name, len(words), board
        raise False_(f"{text} is not part of the judge's lines")

    def whole(self, name):
        """Returns the line from the position before the move, and how many of its moves precede it."""
        return ("played", 1) if name == "reply" else (name, 0)

    def first(self, side, san, *, later=False):
        """Returns the board before a move of the line in which this side begins, the move, and the rest of the line."""
        start, moves = self.lines["best" if side == "best" else "reply"]
        board = start.copy()
        for place, move in enumerate(moves):
            if place % 2 == 0 and (place > 0) == later and board.san(move) == san:
                return board, move, moves[place + 1 :]
            board.push(move)
        raise False_(f"{san} is not such a move of the line")


def same_piece(board, square, name, color=None):
    piece = board.piece_at(chess.parse_square(square))
    claim(piece and piece.piece_type == ROLES[name], f"no {name} on {square}")
    claim(color is None or piece.color == color, f"the {name} on {square} is of the wrong side")
    return chess.parse_square(square)


def carried_out(board, rest, squares):
    """Returns whether the side that has just moved captures one of the pieces on these squares later in the line."""
    board, side, left = board.copy(), not board.turn, set(squares)
    for move in rest:
        if board.turn == side and board.is_capture(move) and move.to_square in left:
            return True
        if board.turn != side:
            left.discard(move.from_square)
        board.push(move)
    return False


def material(mark, line, side, lost, won, new, _role):
    name, plies, end = mark.line(line)
    found, made = uneven(mark.before, end, side)
    claim(found == [lost, won] and made == new, f"the board says {found} {made}")
    whole, offset = mark.whole(name)
    start, moves = mark.lines[whole]
    board, worths = start.copy(), []
    base = worth(start, side)
    for place, move in enumerate(moves, 1):
        board.push(move)
        if place >= plies + offset and is_quiet(board):
            worths.append((place, worth(board, side) - base))
    change = worth(end, side) - base
    claim(abs(change) >= LITTLE, "no material is lost")
    claim(worths, "no quiet position follows")
    claim(any(at == change for _, at in worths), "no quiet position has this material")
    first = next(place for place, at in worths if at == change)
    kept = [at for place, at in worths if first <= place <= first + LASTS]
    claim(all(3 * at * (1 if change > 0 else -1) >= 2 * abs(change) for at in kept), f"it does not last: {worths}")


def lost_or_won(mark, side, line, who, verb, what, price):
    who = SIDES[who]
    kind = "new " if price and "new " in price else ""
    first = read_list(what)
    if kind:
        made, _, rest = price.partition(" and ")
        material(mark, line, who, first, read_list(rest) if rest else {}, [{}, read_list(made, "new ")], side)
        return
    second = read_list(price) if price else {}
    lost, won = (first, second) if verb == "lost" else (second, first)
    material(mark, line, who, lost, won, [{}, {}], side)


def new_piece(mark, side, line, who, made, price, won):
    lost = read_list(price) if price else {}
    gained = read_list(won) if won else {}
    material(mark, line, SIDES[who], lost, gained, [read_list(made, "new "), {}], side)


def promoted(mark, _side, line, who):
    name, plies, end = mark.line(line)
    claim(end.peek().promotion and end.turn != SIDES[who], "no promotion")


def takes(mark, side, san, name, square, how):
    board, move, _ = mark.first(side, san)
    if name:
        claim(move.to_square == same_piece(board, square, name, not board.turn), "captures elsewhere")
    else:
        claim(board.is_en_passant(move), "not en passant")
    claim(gain(board.copy(), move) >= 1, "the exchange gains nothing")
    after = board.copy()
    after.push(move)
    defenders = after.attackers(after.turn, move.to_square)
    back = [it for it in after.legal_moves if it.to_square == move.to_square and after.is_capture(it)]
    if how == ", which nothing defends":
        claim(not defenders, "it is defended")
    elif how == " and cannot be taken back":
        claim(not back, "it can be taken back")
    elif how.startswith(", which is worth more"):
        claim(PAWNS[captured(board, move)] > PAWNS[board.piece_type_at(move.from_square)], "it is not worth more")
    else:
        attacks = len(board.attackers(board.turn, move.to_square))
        claim(attacks > len(board.attackers(not board.turn, move.to_square)), "not attacked more often")


def targets_of(board, text):
    return [same_piece(board, square, name) for name, square in re.findall(PIECE, text)]


def forks(mark, side, san, text, *, later=False):
    board, move, rest = mark.first(side, san, later=later)
    board.push(move)
    targets = targets_of(board, text)
    claim(len(targets) >= 2, "one target")
    claim(all(board.color_at(it) == board.turn for it in targets), "own piece")
    claim(set(targets) <= set(board.attacks(move.to_square)), "not attacked")
    claim(carried_out(board, rest, targets), "the line captures none of them")


def skewers(mark, side, san, one, two, *, later=False):
    board, move, rest = mark.first(side, san, later=later)
    board.push(move)
    front, behind = targets_of(board, one)[0], targets_of(board, two)[0]
    claim(front in board.attacks(move.to_square), "not attacked")
    claim(front in chess.SquareSet.between(move.to_square, behind), "not behind")
    board_without = board.copy()
    board_without.remove_piece_at(front)
    claim(behind in board_without.attacks(move.to_square), "not attacked through the piece")
    claim(carried_out(board, rest, [front, behind]), "the line captures neither")


def uncovers(mark, side, san, slider, target, *, later=False):
    board, move, rest = mark.first(side, san, later=later)
    was = board.copy()
    board.push(move)
    slider = targets_of(board, slider)[0]
    target = targets_of(board, target)[0] if target else board.king(board.turn)
    claim(target in board.attacks(slider) and target not in was.attacks(slider), "no new attack")
    claim(move.from_square in chess.SquareSet.between(slider, target), "not discovered by this piece")
    if target != board.king(board.turn):
        claim(carried_out(board, rest, [target]), "the line does not capture it")


def traps(mark, side, san, piece, *, later=False):
    board, move, rest = mark.first(side, san, later=later)
    board.push(move)
    square = targets_of(board, piece)[0]
    claim(board.color_at(square) == board.turn, "own piece")
    threat = passed(board)
    takers = [it for it in threat.legal_moves if it.to_square == square]
    claim(takers and max(gain(threat, it) for it in takers) >= 2, "not attacked to any effect")
    for escape in [it for it in board.legal_moves if it.from_square == square]:
        taken = captured(board, escape)
        board.push(escape)
        back = [gain(board, it) for it in list(board.legal_moves) if it.to_square == escape.to_square]
        board.pop()
        claim(max(back, default=0) - (PAWNS[taken] if taken else 0) >= 2, f"{escape.uci()} is safe")
    claim(carried_out(board, rest, [square]), "the line does not capture it")


def threatens(mark, side, san, one, two=None):
    board, move, rest = mark.first(side, san)
    board.push(move)
    claim(not board.is_check(), "a check")
    free = passed(board)
    executed = rest[1] if len(rest) > 1 else None
    for threat in filter(None, (one, two)):
        found = free.parse_san(threat)
        end = free.copy()
        end.push(found)
        claim(end.is_checkmate() or (free.is_capture(found) and gain(free, found) > 0), f"{threat} gains nothing")
    if not end.is_checkmate():
        claim(executed in [free.parse_san(it) for it in filter(None, (one, two))], "the line does not carry it out")


def was_threatening(mark, _side, who, san, still, best):
    free = passed(mark.before)
    claim(free is not None and free.turn == SIDES[who], "wrong side")
    threat = free.parse_san(san)
    end = free.copy()
    end.push(threat)
    claim(end.is_checkmate() or gain(free, threat) >= 1, "gains nothing")
    reply = mark.lines["reply"][1]
    if still:
        claim(threat in reply[2::2], "the line does not carry it out")
        parried = mark.before.copy()
        parried.push(mark.lines["best"][1][0])
        claim(mark.before.san(mark.lines["best"][1][0]) == best, "not the best move")
        claim(threat not in parried.legal_moves or gain(parried, threat) < 1, "not parried")
    else:
        claim(threat == reply[0], "not the reply")


def no_longer_defends(mark, _side, role, to, name, square):
    claim(mark.played.to_square == same_piece(mark.next, to, role, mark.mover), "another piece moved")
    target = same_piece(mark.next, square, name, mark.mover)
    claim(target in mark.before.attacks(mark.played.from_square), "it did not defend it")
    claim(target not in mark.next.attacks(mark.played.to_square), "it still defends it")
    claim(mark.lines["reply"][1][0].to_square == target, "the reply does not capture it")


def opens(mark, _side, one, two):
    attacker, target = targets_of(mark.next, one)[0], targets_of(mark.next, two)[0]
    claim(mark.played.from_square in chess.SquareSet.between(attacker, target), "not on the line")
    claim(target in mark.next.attacks(attacker), "no attack")
    reply = mark.lines["reply"][1][0]
    claim((reply.from_square, reply.to_square) == (attacker, target), "not the reply")


def defended(mark, side, san, one, two):
    board, move, rest = mark.first(side, san)
    taken, target = targets_of(board, one)[0], targets_of(board, two)[0]
    claim(move.to_square == taken and target in board.attacks(taken), "it did not defend it")
    claim(len(rest) > 1 and rest[1].to_square == target, "the line does not capture it")


def mates(mark, side, who, moves, san):
    start, line = mark.lines["best" if side == "best" else "reply"]
    claim(start.turn == SIDES[who] and start.san(line[0]) == san, "another move")
    end = start.copy()
    for move in line:
        end.push(move)
    claim(end.is_checkmate() and (len(line) + 1) // 2 == int(moves), "the line does not mate")
    mark.proofs.append((start, line[0], int(moves)))


def forces_mate(mark, side, who, san):
    start, line = mark.lines["best" if side == "best" else "reply"]
    claim(start.turn == SIDES[who] and start.san(line[0]) == san, "another move")
    mark.proofs.append((start, line[0], 30))


def is_mate(mark, side, san):
    board, move, _ = mark.first(side, san)
    board.push(move)
    claim(board.is_checkmate(), "no mate")


def back_rank(mark, side, who):
    start, line = mark.lines["best" if side == "best" else "reply"]
    end = start.copy()
    for move in line:
        end.push(move)
    king = end.king(SIDES[who])
    home = 0 if SIDES[who] else 7
    claim(end.is_checkmate() and end.turn == SIDES[who], "no mate")
    claim(chess.square_rank(king) == home, "not on the back rank")
    claim(all(chess.square_rank(it) == home for it in end.checkers()), "not along the rank")
    before = [it for it in chess.SquareSet(chess.BB_KING_ATTACKS[king]) if chess.square_rank(it) != home]
    claim(all(end.color_at(it) == SIDES[who] for it in before), "not shut in")


def keeps(mark, _side, san, name, square):
    start, best = mark.lines["best"]
    claim(start.san(best[0]) == san, "not the best move")

    def track(moves):
        board, at = start.copy(), same_piece(start, square, name, mark.mover)
        for move in moves:
            if board.turn == mark.mover and move.from_square == at:
                at = move.to_square
            if board.turn != mark.mover and captured(board, move) and move.to_square == at:
                return None
            if board.turn == mark.mover and board.is_castling(move) and at == (
                chess.square(7 if board.is_kingside_castling(move) else 0, chess.square_rank(move.from_square))
            ):
                at = chess.square(5 if board.is_kingside_castling(move) else 3, chess.square_rank(at))
            board.push(move)
        return at

    claim(track(best) is not None, "the best line loses it")
    claim(track(mark.lines["played"][1]) is None, "the move does not lose it")


def recaptures(mark, _side, san, square):
    move = mark.lines["best"][1][0]
    claim(mark.before.san(move) == san, "not the best move")
    last = mark.before.peek()
    claim(last.to_square == move.to_square == chess.parse_square(square), "another square")
    claim(mark.played.to_square != move.to_square, "the move played recaptures as well")
    claim(mark.before.is_capture(move) and gain(mark.before.copy(), move) >= 0, "no good capture")


def changes(mark, name):
    start, moves = mark.lines[name]
    board, base, found = start.copy(), worth(start, mark.mover), []
    for move in moves:
        board.push(move)
        if is_quiet(board):
            found.append(worth(board, mark.mover) - base)
    return found


def positional(mark, _side, what):
    played, best = changes(mark, "played"), changes(mark, "best")
    claim(played and best, "no quiet position")
    if what == "The move loses no material":
        claim(sum(it <= -LITTLE for it in played) <= len(played) // 4, f"material is lost: {played}")
    claim(played[-1] > -LITTLE or not what.endswith("no material"), f"material is lost: {played}")
    if what.startswith("The best move"):
        ends = [it[-5:] for it in (played, best)]
        claim(min(ends[1]) <= max(ends[0]) + LITTLE, f"the best move leaves more: {best} against {played}")


def quiet_ends(mark, who, san):
    """Returns the quiet positions of the best line, which begins with `san`, and of the line of the move played."""
    claim(mark.mover == SIDES[who] and mark.before.san(mark.lines["best"][1][0]) == san, "not the best move")
    ends = []
    for name in ("best", "played"):
        start, moves = mark.lines[name]
        board, quiet = start.copy(), []
        for move in moves:
            board.push(move)
            if is_quiet(board):
                quiet.append(board.copy())
        claim(quiet, f"the {name} line is never quiet")
        ends.append(quiet)
    return ends


def less_at_the_end(mark, _side, who, what, san):
    ends = [it[-6:] for it in quiet_ends(mark, who, san)]
    expected = ([read_list(what), {}], [{}, {}])
    claim(any(uneven(a, b, mark.mover) == expected for a in ends[0] for b in ends[1]), "the ends differ otherwise")
    totals = [worth(it[-1], mark.mover) for it in ends]
    claim(totals[1] <= totals[0] - LITTLE, f"not at the very ends: {totals}")


def same_at_the_end(mark, _side, who, san):
    totals = [worth(it[-1], mark.mover) for it in quiet_ends(mark, who, san)]
    claim(abs(totals[0] - totals[1]) < LITTLE, f"not at the very ends: {totals}")


def no_castling(mark, _side, line, who):
    _, _, end = mark.line(line)
    claim(not end.castling_rights & chess.BB_RANKS[0 if SIDES[who] else 7], "the right is left")
    claim(mark.before.castling_rights & chess.BB_RANKS[0 if SIDES[who] else 7], "there was none")


def could_castle(mark, _side, who):
    claim(mark.mover == SIDES[who] and mark.before.is_castling(mark.lines["best"][1][0]), "no castling")


def doubled(mark, _side, line, who, file):
    _, _, end = mark.line(line)
    pawns = end.pieces(chess.PAWN, SIDES[who]) & chess.BB_FILES[ord(file) - ord("a")]
    claim(len(pawns) >= 2, "no doubled pawns")


def is_passed(board, square):
    color = board.color_at(square)
    file, rank = chess.square_file(square), chess.square_rank(square)
    for pawn in board.pieces(chess.PAWN, not color):
        ahead = chess.square_rank(pawn) > rank if color else chess.square_rank(pawn) < rank
        if ahead and abs(chess.square_file(pawn) - file) <= 1:
            return False
    return True


def makes_passed(mark, side, san, square):
    board, move, _ = mark.first(side, san)
    board.push(move)
    claim(is_passed(board, same_piece(board, square, "pawn", not board.turn)), "not passed")


def advances(mark, side, san):
    board, move, _ = mark.first(side, san)
    claim(board.piece_type_at(move.from_square) == chess.PAWN and is_passed(board, move.from_square), "not passed")


def blocks(mark, side, san, square):
    board, move, _ = mark.first(side, san)
    pawn = same_piece(board, square, "pawn", not board.turn)
    claim(is_passed(board, pawn) and abs(pawn - move.to_square) == 8, "not before it")


def queens_off(mark, _side, line, who, pawns):
    _, _, end = mark.line(line)
    own = sum(PAWNS[it] * (len(end.pieces(it, SIDES[who])) - len(end.pieces(it, not SIDES[who]))) for it in WORTH)
    claim(not end.pieces(chess.QUEEN, True) | end.pieces(chess.QUEEN, False) and own == int(pawns), "not so")


def pawns_left(mark, _side, line):
    _, _, end = mark.line(line)
    claim(end.occupied == end.pawns | end.kings, "pieces are left")


def stalemate(mark, _side):
    claim(mark.next.is_stalemate(), "no stalemate")


FORMS = [
    (rf"After (.+), (White|Black) has (lost|won) (.+?)(?: for (.+))?\.", lost_or_won),
    (r"After (.+), (White|Black) has (an? new .+?)(?: for (.+?))?(?: and has won (.+))?\.", new_piece),
    (r"After (.+), (White|Black) has promoted a pawn\.", promoted),
    (rf"({SAN}) takes (?:{PIECE}|the pawn in passing)(, which nothing defends| and cannot be taken back|"
     r", which is worth more than the \w+ that takes it|, which is attacked more often than it is defended)\.", takes),
    (rf"({SAN}) forks (.+)\.", forks),
    (rf"({SAN}) skewers ({PIECE}): behind it stands ({PIECE})\.", lambda m, s, a, b, _c, _d, e, *_f, **k: skewers(m, s, a, b, e, **k)),
    (rf"({SAN}) pins ({PIECE}) to ({PIECE})\.", lambda m, s, a, b, _c, _d, e, *_f, **k: skewers(m, s, a, b, e, **k)),
    (rf"({SAN}) discovers check from ({PIECE})\.", lambda m, s, a, b, *_c, **k: uncovers(m, s, a, b, None, **k)),
    (rf"({SAN}) uncovers the attack of ({PIECE}) on ({PIECE})\.", lambda m, s, a, b, _c, _d, e, *_f, **k: uncovers(m, s, a, b, e, **k)),
    (rf"({SAN}) attacks ({PIECE}), which has no safe square\.", lambda m, s, a, b, *_c, **k: traps(m, s, a, b, **k)),
    (rf"({SAN}) threatens ({SAN}) and ({SAN}) at once\.", threatens),
    (rf"({SAN}) threatens ({SAN})\.", threatens),
    (rf"(White|Black) was threatening ({SAN}) before the move(?:( and still is); ({SAN}) parries it)?\.", was_threatening),
    (r"The (\w+) that moved to ([a-h][1-8]) no longer defends the (\w+) on ([a-h][1-8])\.", no_longer_defends),
    (rf"The move opens the line from ({PIECE}) to ({PIECE})\.", lambda m, s, a, _b, _c, d, *_e: opens(m, s, a, d)),
    (rf"({SAN}) takes ({PIECE}), which defended ({PIECE})\.", lambda m, s, a, b, _c, _d, e, *_f: defended(m, s, a, b, e)),
    (rf"(White|Black) mates in (\d+) moves, beginning with ({SAN})\.", mates),
    (rf"(White|Black) can force mate, beginning with ({SAN})\.", forces_mate),
    (rf"({SAN}) is mate\.", is_mate),
    (r"The mate is on the back rank: (White|Black)'s king is shut in by its own men\.", back_rank),
    (rf"({SAN}) keeps the (\w+) on ([a-h][1-8])\.", keeps),
    (rf"({SAN}) recaptures on ([a-h][1-8])\.", recaptures),
    (r"(The move loses no material|In the end, the move loses no material|The best move leaves the same material|"
     r"The best move costs as much material); the loss is positional\.", positional),
    (rf"At the end of the lines, (White|Black) has (.+) less than after ({SAN})\.", less_at_the_end),
    (rf"At the end of the lines, (White|Black) has as much material as after ({SAN}); the loss is positional\.", same_at_the_end),
    (r"After (.+), (White|Black) can no longer castle\.", no_castling),
    (r"(White|Black) could have castled\.", could_castle),
    (r"After (.+), (White|Black) has doubled pawns on the ([a-h])-file\.", doubled),
    (rf"({SAN}) makes the pawn on ([a-h][1-8]) a passed pawn\.", makes_passed),
    (rf"({SAN}) advances a passed pawn\.", advances),
    (rf"({SAN}) blocks the passed pawn on ([a-h][1-8])\.", blocks),
    (r"After (.+), the queens are off, and (White|Black) is ahead by material worth (\d+) pawns\.", queens_off),
    (r"After (.+), only kings and pawns are left\.", pawns_left),
    (r"The move is stalemate\.", stalemate),
]  # fmt: skip


def check(mark, side, text):
    """Raises `False_` if a sentence does not hold."""
    later = text.startswith("Later in the line, ")
    plain = text.removeprefix("Later in the line, ")
    for form, test in reversed(FORMS):
        found = re.fullmatch(form, plain)
        if found:
            try:
                test(mark, side, *found.groups(), **({"later": True} if later else {}))
            except (ValueError, KeyError, IndexError, TypeError) as error:
                raise False_(f"{type(error).__name__}: {error}") from error
            return
    raise False_("a sentence of an unknown form")


def kind(reasons):
    """Returns the kind of the reasons."""
    topics = {side: {fact["topic"] for fact in reasons[side]} for side in ("played", "best")}
    promotes = {side: any("promoted" in fact["text"] for fact in reasons[side]) for side in topics}
    wins = {"mate", "material", "stalemate", "kept", "recapture", "fork", "skewer", "trapped", "discovered"}
    for side, name in (("played", "what the reply wins"), ("best", "what the better move wins or keeps")):
        if promotes[side] or topics[side] & wins:
            return name
    if "positional" in topics["played"]:
        return "a positional loss"
    return "facts only" if topics["played"] | topics["best"] else "none"


def marks(games):
    """Yields the marked moves of reviewed games, with their reports."""
    for game in games:
        board = chess.Board(game["start"]["fen"])
        for ply in game["plies"]:
            move = chess.Move.from_uci(ply["uci"])
            if ply["mark"] in BAD:
                lines = [[chess.Move.from_uci(it["uci"]) for it in (ply[name] or {"moves": []})["moves"]] for name in ("best", "reply")]
                mark = Mark(board.copy(), move, *lines)
                mark.proofs = []
                yield mark, ply
            board.push(move)


def proven(engine, board, move, moves):
    """Returns whether a move mates in this many moves, according to Stockfish."""
    after = board.copy()
    after.push(move)
    if after.is_checkmate():
        return moves == 1
    info = engine.analyse(after, chess.engine.Limit(nodes=1_000_000, mate=moves))
    mate = info["score"].pov(board.turn).mate()
    return mate is not None and 0 < mate <= moves


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("review", type=Path)
    parser.add_argument("--count", type=int, help="number of marks, from the beginning")
    parser.add_argument("--sample", type=int, default=0, help="number of sentences to print for reading")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stockfish", default="stockfish", help="the engine that confirms mates")
    arguments = parser.parse_args()
    games = json.loads(arguments.review.read_text(encoding="utf-8"))["games"]
    kinds, sentences, wrong, proofs = Counter(), [], [], []
    for mark, ply in list(marks(games))[: arguments.count]:
        kinds[kind(ply["reasons"])] += 1
        for side in ("played", "best"):
            for fact in ply["reasons"][side]:
                sentences.append((mark, ply, side, fact["text"]))
                try:
                    check(mark, side, fact["text"])
                except False_ as why:
                    wrong.append((mark, ply, side, fact["text"], str(why)))
        proofs += mark.proofs
    with chess.engine.SimpleEngine.popen_uci(arguments.stockfish, timeout=None) as engine:
        unproven = [proof for proof in proofs if not proven(engine, *proof)]
    total = sum(kinds.values())
    for name, number in kinds.most_common():
        print(f"{name}: {number} ({100 * number / max(1, total):.1f} %)")
    print(f"{total} marks, {len(sentences)} sentences, {len(wrong)} false, {len(proofs)} mates, {len(unproven)} unproven")
    for mark, ply, side, text, *why in wrong + random.Random(arguments.seed).sample(sentences, min(arguments.sample, len(sentences))):
        lines = {name: start.variation_san(moves) for name, (start, moves) in mark.lines.items() if moves}
        print(f"\n{ply['number']} {ply['san']} in {mark.before.fen()} ({side})\n  {text}", *why, sep="\n  ")
        print(f"  reply: {lines.get('reply')}\n  best: {lines.get('best')}")
    for board, move, moves in unproven:
        print(f"no mate in {moves} by {board.san(move)} in {board.fen()}")
    return 1 if wrong or unproven else 0


if __name__ == "__main__":
    sys.exit(main())

"""Reads the main lines of PGN games, and reports errors that python-chess skips."""

import re

import chess
import chess.pgn

COMMENT = re.compile(r"\{[^}]*\}")
TAG = re.compile(r'\[\s*(\w+)\s*"((?:\\.|[^"\\\n]|"(?!\s*\]))*)"\s*\]')
FIRST_NUMBER = re.compile(r"\s*1\.(?!\s*[.…])")
# The same within a line, where the dot may be missing.
RESTART = re.compile(r"1(?:\.|(?=[\sa-hKQRBNO]))(?!\s*[.…])")
# A line with more than one game has a second move number 1, or a word after a result.
FIRST_NUMBERS = re.compile(r"(?<![\d.])1(?=[.\sa-hKQRBNO])")
BEHIND_RESULT = re.compile(r"(?:1[-‐–—−]0|0[-‐–—−]1|1/2|½|\*)\s*[^\s;]")
# Everything except moves: comments, spaces and marks, lines that begin with %, NAGs and move numbers.
SILENT = re.compile(
    r"\{[^}]*\}|;.*|[\s.…!?\ufeff\x1a]+|^%.*|\$\d+|(?!0000(?:\s|\Z))\d+(?=[.…\s{(;a-zA-Z]|\Z)", re.MULTILINE
)
WORD = re.compile(r"[^\s{}();!?$*\ufeff]+(?:(?<=[18=])\([QRBN]\))?|.", re.DOTALL)
# A result that follows the last move without a space.
GLUED = re.compile(r"(?<=[1-8QRBNO+#])(?:1-0|0-1|1/2-1/2)$")
RESULTS = {"1-0", "0-1", "1/2-1/2", "1/2", "½-½", "*"}
NULL_MOVES = {"--", "z0", "null", "@@@@", "0000"}
ANNOTATIONS = set(
    "+ ++ # = += =+ =/+ +/= +/- -/+ +- -+ +-- --+ =∞ ± ∓ ⩲ ⩱ ∞ ~ N TN D □ ⊙ ⟳ → ↑ ⇆ e.p. e.p ep ep. ch".split()
)
HYPHENS = str.maketrans(dict.fromkeys("‐–—−", "-"))


def is_pgn(text):
    """Returns whether a text contains games rather than positions."""
    for line in map(str.strip, text.split("\n")):
        if re.match(r"[{%]|\[[A-Za-z]|1\.", line):
            return True
        if line.partition(" ")[0].count("/") == 7:
            return False
    return False


def split(text):
    """Returns the texts of the games, each with the number of its first line. A game starts at a tag
    that follows moves, or at an Event tag if the current game already has one. A game without tags
    starts after a result and an empty line; at move number 1 after a result, an empty line or two
    moves; or at a word without a number after a result, if the game has no move numbers."""
    line, games = 1, []
    for part in (part for lines in split_lines(text) for part in split_line(lines)):
        content = re.sub(r"(?m)^%.*", "", part)
        if content.strip():
            blank = len(content) - len(content.lstrip())
            games.append((line + content.count("\n", 0, blank), part))
        line += part.count("\n")
    return games


def split_line(text):
    """Splits lines where another game starts within a line."""
    bare = TAG.sub(" ", COMMENT.sub(" ", text))
    if len(FIRST_NUMBERS.findall(bare)) < 2 and not BEHIND_RESULT.search(bare):
        yield text
        return
    start = place = depth = moves = 0
    is_over = is_numbered = False
    while place < len(text):
        tag = TAG.match(text, place)
        number = RESTART.match(text, place)
        silent = not tag and SILENT.match(text, place)
        found = tag or silent or WORD.match(text, place)
        word = found[0]
        is_result = not silent and (word.translate(HYPHENS) in RESULTS or bool(GLUED.search(word)))
        starts = is_over and depth == 0 and not silent and not is_result and (tag or not is_numbered and word.isalnum())
        if starts or number and (is_over or depth == 0 and moves > 1):
            yield text[start:place]
            start, depth, moves, is_over, is_numbered = place, 0, 0, False, False
        place = found.end()
        is_numbered = is_numbered or word.isdigit()
        if word == "(":
            depth += 1
        elif word == ")":
            depth, is_over = max(depth - 1, 0), False
        elif not tag and not silent:
            moves += depth == 0
            is_over = is_result
    yield text[start:]


def split_lines(text):
    """Splits a text where a line starts another game."""
    starts, place = [0], 0
    has_event = has_moves = is_over = is_apart = False
    for line in COMMENT.sub(lambda comment: "{" * len(comment[0]), text).split("\n"):
        words = [] if line.startswith("%") else line.partition(";")[0].replace("{", " ").split()
        is_tag = bool(words) and words[0].startswith("[")
        is_event = is_tag and line.startswith("[Event ")
        if is_tag:
            begins = has_moves or is_event and has_event
        else:
            begins = bool(words) and is_over and is_apart and words[0][0] not in "()"
            begins = begins or bool(FIRST_NUMBER.match(line)) and (is_over or is_apart and has_moves)
        if begins:
            starts.append(place)
            has_event = has_moves = is_over = False
        if is_tag:
            has_event = has_event or is_event
        elif words:
            has_moves, is_over = True, words[-1].translate(HYPHENS) in RESULTS
        is_apart = not line.strip() or is_apart and line.startswith("%")
        place += len(line) + 1
    return [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)])]


def read_move(board, word):
    """Reads a move. Raises ValueError if it is invalid or not legal."""
    word = re.sub(r"[+#]*(e\.?p\.?)?[+#.]*$", "", word.translate(HYPHENS))
    if re.fullmatch(r"[0Oo](-[0Oo]){1,2}", word):
        word = re.sub("[0o]", "O", word)
    word = re.sub(r"(?<=[18])[=/]?\(?([QRBNqrbn])\)?$", r"=\1", word)
    try:
        return board.parse_san(word)
    except chess.AmbiguousMoveError:
        raise ValueError("is ambiguous") from None
    except ValueError as error:
        # A move in UCI notation does not name the piece, and may be castling.
        squares = re.fullmatch(r"([PK]?)([a-h][1-8])[-x]?([a-h][1-8])=?([qrbn]?)", word, re.IGNORECASE)
        if not squares:
            is_move = isinstance(error, chess.IllegalMoveError)
            raise ValueError("is not a legal move" if is_move else "is not a move") from None
        piece, origin, target, promotion = squares.groups()
        try:
            move = board.parse_uci((origin + target + promotion).lower())
        except ValueError:
            move = None
        if move is None or piece and board.piece_at(move.from_square).symbol().upper() != piece:
            raise ValueError("is not a legal move") from None
        return move


def main_line(text, chess960=False, plies=None):
    """Returns the board of a game after the first `plies` plies of its main line, with the moves on
    the stack. Raises ValueError, which names the fault."""
    headers, place = chess.pgn.Headers(), 0
    while found := TAG.match(text, place) or SILENT.match(text, place):
        if found.re is TAG:
            headers[found[1]] = re.sub(r'\\([\\"])', r"\1", found[2])
        place = found.end()
    for name in ("Variant", "FEN"):
        # An unknown value.
        if headers.get(name, "").strip() in ("?", "-", ""):
            headers.pop(name, None)
    if headers.variant() is not chess.Board:
        raise ValueError(f"variant `{headers['Variant']}` is not chess")
    board = headers.board()
    board.chess960 = board.chess960 or chess960
    is_over, depth = False, 0
    while place < len(text):
        silent = SILENT.match(text, place)
        found = silent or WORD.match(text, place)
        place, word = found.end(), found[0]
        if word in "()":
            depth += 1 if word == "(" else -1
        if depth < 0:
            raise ValueError("`)` closes no variation")
        if silent or depth or word == ")" or word in ANNOTATIONS:
            continue
        # A tag may state that both players lost.
        if word.translate(HYPHENS) in RESULTS or word == headers.get("Result") == "0-0" and is_last(text, place):
            is_over = True
            continue
        try:
            if is_over:
                raise ValueError("follows the result")
            if word.lower() in NULL_MOVES:
                raise ValueError("is a null move, with which the game ends")
            board.push(read_move(board, GLUED.sub("", word)))
        except ValueError as error:
            raise ValueError(f"`{word[:40]}` at ply {len(board.move_stack) + 1} {error}") from None
    if depth:
        raise ValueError("a variation has no end")
    while plies is not None and len(board.move_stack) > plies:
        board.pop()
    return board


def is_last(text, place):
    """Returns whether only comments follow."""
    return not SILENT.sub("", text[place:])

"""The forward pass of a Chessformer, implemented a second time: as formulas.

They follow the appendix of "Mastering Chess with a Transformer Model" (Monroe
and Chalmers, 2024), whose equations are cited by number; GAB follows Lc0's
smolgen. One position at a time, in float64, from nothing but an exported
network's parameters and metadata: neither the graph in its file nor its
buffers are used.
"""

import math

import torch

SQUARES = 64
BOARDS = 8 * 13
PIECES = 12
# Queen, rook and bishop come before it.
NO_PROMOTION = 3
# The scale of the attack weights.
ATTACK_GAIN = 8
# The rating at which the strong player's vector alone counts.
STRONGEST = 5000
STRAIGHT = ((1, 0), (-1, 0), (0, 1), (0, -1))
DIAGONAL = ((1, 1), (1, -1), (-1, 1), (-1, -1))
KNIGHT = ((1, 2), (2, 1), (-1, 2), (-2, 1), (1, -2), (2, -1), (-1, -2), (-2, -1))
PAWNS = (((-1, 1), (1, 1)), ((-1, -1), (1, -1)))


def planes(row, scalars):
    """Lc0's 112 input planes (input format 1) as features [64, 112].

    `row` holds 64-bit words: bitboards, and after them what `scalars` names.
    """
    squares = torch.arange(SQUARES)
    bits = (row[:BOARDS] >> squares.unsqueeze(1)) & 1
    word = dict(zip(scalars, row[BOARDS:].tolist(), strict=True))
    castling = [
        word[f"castling_{side}_{wing}"] != 0
        for side in ("us", "them")
        for wing in ("queenside", "kingside")
    ]
    whole_board = [*castling, word["black_to_move"], word["rule50"] / 100, 0, 1]
    whole_board = torch.tensor(whole_board, dtype=torch.float64)
    return torch.cat([bits.double(), whole_board.expand(SQUARES, -1)], dim=1)


def step(square, files, ranks):
    """The square at this distance, or None if it is off the board."""
    file, rank = square % 8 + files, square // 8 + ranks
    return [8 * rank + file] if 0 <= file < 8 and 0 <= rank < 8 else []


def leaps(square, steps):
    return [target for one in steps for target in step(square, *one)]


def slides(square, directions, occupied, beyond=0):
    """Squares on lines from a square with this many pieces in between."""
    found = []
    for files, ranks in directions:
        passed = 0
        for length in range(1, 8):
            for target in step(square, files * length, ranks * length):
                if passed == beyond:
                    found.append(target)
                passed += target in occupied
    return found


def attacks(pieces):
    """The pieces that attack each square, [64, 22], and the attacks between squares, [64, 64],
    of the twelve piece planes [64, 12]."""
    features, attacked = torch.zeros(SQUARES, 22), torch.zeros(SQUARES, SQUARES)
    stand = [(square, *divmod(plane, 6)) for square, plane in pieces.nonzero().tolist()]
    occupied = {square for square, _, _ in stand}
    for square, side, kind in stand:
        lines = {2: DIAGONAL, 3: STRAIGHT, 4: STRAIGHT + DIAGONAL}
        if kind in lines:
            targets = slides(square, lines[kind], occupied)
        else:
            targets = leaps(square, {0: PAWNS[side], 1: KNIGHT, 5: STRAIGHT + DIAGONAL}[kind])
        features[targets, 6 * side + kind] += 1
        attacked[square, targets] = 1
        if kind == 5:
            features[leaps(square, KNIGHT), 12 + 3 * side] = 1
            for place, directions in enumerate((DIAGONAL, STRAIGHT)):
                features[slides(square, directions, occupied), 13 + 3 * side + place] = 1
                beyond = slides(square, directions, occupied, beyond=1)
                features[beyond, 18 + 2 * side + place] = 1
    return features.double(), attacked.double()


def policy_moves():
    """The field's 1858 moves: from, to, and the index of the promotion.

    First what a queen or a knight could do on an empty board, the promotions to
    a knight among it; then those to queen, rook and bishop.
    """
    moves = []
    for start in range(SQUARES):
        for end in range(SQUARES):
            files, ranks = abs(start % 8 - end % 8), abs(start // 8 - end // 8)
            if start != end and (files * ranks in (0, 2) or files == ranks):
                moves.append((start, end, NO_PROMOTION))
    for start in range(8):
        for end in range(max(start - 1, 0), min(start + 2, 8)):
            moves += [(48 + start, 56 + end, piece) for piece in range(NO_PROMOTION)]
    return torch.tensor(moves).T


def mish(x):
    return x * torch.tanh(softplus(x))


def silu(x):
    return x * torch.sigmoid(x)


def softplus(x):
    return torch.logaddexp(x, torch.zeros_like(x))


class Chessformer:
    """A network from its `parameters` by name and its metadata.

    `read` collects the names of the parameters that the outputs depend on, and
    `attention` by layer the logits by content, all other logits, and the attention,
    [64, 64, heads] each.
    """

    def __init__(self, parameters, metadata):
        self.parameters = {name: tensor.double() for name, tensor in parameters.items()}
        self.config = metadata["architecture"]["model"]
        self.read = set()
        self.attention = {}

    def __call__(self, features, ratings, attackers, attacked):
        """Every output by its name, of features [64, 112], the ratings [2] of the mover
        and of the opponent (0 if unknown), and `attacks` of the features."""
        self.ratings, self.attackers, self.attacked = ratings, attackers, attacked
        x = self.embed(features)
        for layer in range(self.config["layers"]):
            x = self.attend(f"encoder.{layer}.attention", x)
            x = self.feed_forward(f"encoder.{layer}.feed_forward", x)
        q, q_error = self.reward("value.q", x)
        short_term, short_term_error = self.reward("value.short_term", x)
        return {
            "policy": self.policy("policy.vanilla", x),
            "wdl": self.dense("value.result.wdl", self.summary("value.result", x)),
            "moves_left": self.moves_left(x),
            "q": q,
            "q_error": q_error,
            "st": short_term,
            "st_error": short_term_error,
        }

    def parameter(self, name):
        self.read.add(name)
        return self.parameters[name]

    def dense(self, name, x, bias=True):
        y = x @ self.parameter(f"{name}.weight").T
        return y + self.parameter(f"{name}.bias") if bias else y

    def number(self, name, x):
        return self.dense(name, x).squeeze(0)

    def layer_norm(self, name, x, epsilon):
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred * centred).mean(-1, keepdim=True)
        scaled = centred / (variance + epsilon).sqrt()
        return scaled * self.parameter(f"{name}.weight") + self.parameter(f"{name}.bias")

    def rms_norm(self, name, x, epsilon):
        mean_square = (x * x).mean(-1, keepdim=True)
        return x / (mean_square + epsilon).sqrt() * self.parameter(f"{name}.weight")

    def add_and_norm(self, name, x, y):
        """Post-LN with DeepNorm's gain α = (2N)^¼, as Lc0 has it: 1 / α on the branch."""
        x = x + y / (2 * self.config["layers"]) ** 0.25
        epsilon = 1e-3 if self.config["embedding"]["kind"] == "global" else 1e-6
        norm = {"rms": self.rms_norm, "layer": self.layer_norm}[self.config["norm"]]
        return norm(f"{name}.norm", x, epsilon)

    def embed(self, features):
        kind = self.config["embedding"]["kind"]
        if kind == "global":
            board = self.dense("embedding.board", features[:, :PIECES].reshape(-1))
            features = torch.cat([features, board.reshape(SQUARES, -1)], dim=1)
        x = self.dense("embedding.project", features)
        if self.config.get("attacks"):
            x = x + self.dense("embedding.attacks", self.attackers, bias=False)
        if self.config.get("elo"):
            x = x + self.rating("mover", self.ratings[0]) + self.rating("opponent", self.ratings[1])
        x = x * self.parameter("embedding.multiply") + self.parameter("embedding.add")
        return self.feed_forward("embedding.feed_forward", x) if kind == "global" else x

    def rating(self, player, rating):
        """Maia-3's soft embedding, with a vector of its own for an unknown rating."""
        weak, strong, unknown = (
            self.parameter(f"embedding.ratings.{player}.{kind}")
            for kind in ("weak", "strong", "unknown")
        )
        share = rating.clamp(0, STRONGEST) / STRONGEST
        return torch.where(rating > 0, (1 - share) * weak + share * strong, unknown)

    def feed_forward(self, name, x):
        hidden = mish(self.dense(f"{name}.widen", x))
        return self.add_and_norm(name, x, self.dense(f"{name}.narrow", hidden))

    def attend(self, name, x):
        """Eq. 1 to 3 over all heads, with the changes due to the position encoding."""
        kind = self.config["position"]["kind"]
        heads = self.config["heads"]
        head_width = self.config["width"] // heads
        position = f"{name}.position"

        def split(x):
            return x.unflatten(-1, (heads, head_width))

        placed = x
        if kind == "absolute":  # Eq. 4.
            placed = x + self.parameter(f"{position}.offset")
        query, key = self.dense(f"{name}.query_key", placed, bias=False).chunk(2, dim=-1)
        query, key = split(query), split(key)
        value = split(self.dense(f"{name}.value", placed, bias=False))

        # For each pair of squares (i, j), as position vectors are: [64, 64, heads, head width].
        pairs = (SQUARES, SQUARES, heads, head_width)
        query = query.unsqueeze(1).expand(pairs)
        key = key.unsqueeze(0).expand(pairs)
        value = value.unsqueeze(0).expand(pairs)
        content = torch.einsum("ijhd,ijhd->ijh", query, key) / math.sqrt(head_width)
        if kind == "shaw":  # Eq. 6 and 7.
            query = query + split(self.by_displacement(f"{position}.query"))
            key = key + split(self.by_displacement(f"{position}.key"))
            value = value + split(self.by_displacement(f"{position}.value"))
        logits = torch.einsum("ijhd,ijhd->ijh", query, key) / math.sqrt(head_width)
        if kind == "relative":  # Eq. 5.
            logits = logits + self.by_displacement(f"{position}.bias")
        if kind == "gab":
            logits = logits + self.geometric_bias(position, x)
        if self.config.get("attack_bias"):
            worth = ATTACK_GAIN * self.parameter("encoder.attacks")
            both_ways = torch.stack([self.attacked, self.attacked.T], dim=2)
            logits = logits + both_ways @ worth.T
        weights = torch.softmax(logits, dim=1)
        self.attention[name] = content, logits - content, weights
        seen = torch.einsum("ijh,ijhd->ihd", weights, value).flatten(1)
        return self.add_and_norm(name, x, self.dense(f"{name}.output", seen))

    def by_displacement(self, name):
        """A table's entries for all pairs of squares, [64, 64, …]. It has 225 rows:
        the ranks from j to i, −7 to 7, and for each of them the files, −7 to 7."""
        table = self.parameter(name).unflatten(0, (15, 15))
        squares = torch.arange(SQUARES)
        ranks, files = squares // 8, squares % 8
        return table[
            ranks.unsqueeze(1) - ranks.unsqueeze(0) + 7,
            files.unsqueeze(1) - files.unsqueeze(0) + 7,
        ]

    def geometric_bias(self, name, x):
        """Smolgen: the board, compressed, generates the biases [64, 64, heads]."""
        squares = self.dense(f"{name}.squares", x, bias=False).flatten()
        summary = silu(self.dense(f"{name}.summary", squares))
        summary = self.layer_norm(f"{name}.summary_norm", summary, 1e-3)
        heads = silu(self.dense(f"{name}.heads", summary))
        heads = self.layer_norm(f"{name}.heads_norm", heads, 1e-3)
        heads = heads.unflatten(0, (self.config["heads"], -1))
        biases = self.dense("encoder.gab_generator", heads, bias=False)
        return biases.unflatten(1, (SQUARES, SQUARES)).permute(1, 2, 0)

    def policy(self, name, x):
        """Attention from the square a piece leaves to the one it reaches; promotions
        add an offset that the key of the target square decides."""
        x = mish(self.dense("policy.embedding", x))
        query = self.dense(f"{name}.query", x)
        key = self.dense(f"{name}.key", x)
        logits = query @ key.T / math.sqrt(self.config["width"])
        offsets = self.dense(f"{name}.promotion", key, bias=False)
        offsets = torch.cat([offsets, offsets.new_zeros(SQUARES, 1)], dim=1)
        start, end, promotion = policy_moves()
        return logits[start, end] + offsets[end, promotion]

    def summary(self, name, x):
        squares = mish(self.dense(f"{name}.squares", x))
        return mish(self.dense(f"{name}.hidden", squares.flatten()))

    def reward(self, name, x):
        summary = self.summary(name, x)
        reward = torch.tanh(self.number(f"{name}.scalar", summary))
        error = torch.sigmoid(self.number(f"{name}.error", summary))
        return reward, error

    def moves_left(self, x):
        return 20 * softplus(self.number("moves_left.plies", self.summary("moves_left", x)))

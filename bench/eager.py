"""A Chessformer in PyTorch's eager mode, as a baseline for `tessera-train`.

Architecture, losses and optimizer are the same as in `tessera-train`, but written in the usual Python
style: one batch at a time, with bfloat16 autocast and torch.optim.NAdam. The parameters are
created from the list that `tessera-train size --parameters` prints, so a difference between the
two models causes an error instead of giving one of them an advantage.
"""

import math
import time

import torch
from torch import nn
from torch.nn import functional as F

SQUARES = 64
PLANES = 112
PIECES = 12
MOVES = 1858
SOFT_TEMPERATURE = 4
ATTACK_GAIN = 8


def geometry():
    """Returns tables of the squares that the pawns, knights and kings of both sides attack, of the
    straight and diagonal lines, and of the squares between any two squares."""
    places = torch.cartesian_prod(torch.arange(8), torch.arange(8))
    ranks, files = (places - places.unsqueeze(1)).unbind(2)
    far = torch.maximum(ranks.abs(), files.abs())
    pawns = [(files.abs() == 1) & (ranks == side) for side in (1, -1)]
    leaps = [*pawns, ranks.abs() * files.abs() == 2, far == 1]
    straight = (ranks == 0) != (files == 0)
    diagonal = (ranks.abs() == files.abs()) & (far > 0)
    length = torch.cdist(places.double(), places.double())
    detour = length.unsqueeze(2) + length.unsqueeze(1) - length.unsqueeze(0)
    inside = (length.unsqueeze(2) > 0) & (length.unsqueeze(1) > 0)
    between = (detour.abs() < 1e-6) & inside & (straight | diagonal)
    return {
        "leaps": torch.stack(leaps).float(),
        "lines": torch.stack([straight, diagonal]).float(),
        "between": between.float(),
    }


class Chessformer(nn.Module):
    """`shapes` contains the shapes of the parameters by name; `config` is the architecture."""

    def __init__(self, config, shapes):
        super().__init__()
        self.config = config
        self.names = {name: name.replace(".", "/") for name in shapes}
        self.tensors = nn.ParameterDict()
        for name, shape in shapes.items():
            deviation = math.sqrt(2 / sum(shape)) if len(shape) == 2 else 0
            start = torch.randn(shape) * deviation
            self.tensors[self.names[name]] = nn.Parameter(start if deviation else torch.ones(shape))
        self.used = set()
        squares = torch.arange(SQUARES)
        ranks, files = squares // 8, squares % 8
        ranks = ranks.unsqueeze(1) - ranks.unsqueeze(0) + 7
        files = files.unsqueeze(1) - files.unsqueeze(0) + 7
        self.register_buffer("displacements", 15 * ranks + files)
        for name, table in geometry().items():
            self.register_buffer(name, table)
        # The choice among the 4096 + 192 logits does not affect the cost.
        self.register_buffer("moves", torch.arange(SQUARES * SQUARES + 192)[-MOVES:])

    def parameter(self, name):
        self.used.add(name)
        return self.tensors[self.names[name]]

    def dense(self, name, x, bias=True):
        bias = self.parameter(f"{name}.bias") if bias else None
        return F.linear(x, self.parameter(f"{name}.weight"), bias)

    def layer_norm(self, name, x, epsilon):
        weight, bias = self.parameter(f"{name}.weight"), self.parameter(f"{name}.bias")
        return F.layer_norm(x, x.shape[-1:], weight, bias, epsilon)

    def add_and_norm(self, name, x, y):
        x = x + y * (2 * self.config["layers"]) ** -0.25
        epsilon = 1e-3 if self.config["embedding"]["kind"] == "global" else 1e-6
        if self.config["norm"] == "layer":
            return self.layer_norm(f"{name}.norm", x, epsilon)
        return F.rms_norm(x, x.shape[-1:], self.parameter(f"{name}.norm.weight"), epsilon)

    def feed_forward(self, name, x):
        hidden = F.mish(self.dense(f"{name}.widen", x))
        return self.add_and_norm(name, x, self.dense(f"{name}.narrow", hidden))

    def embed(self, planes, attackers):
        features = planes
        if self.config["embedding"]["kind"] == "global":
            board = self.dense("embedding.board", planes[..., :PIECES].flatten(1))
            features = torch.cat([planes, board.unflatten(1, (SQUARES, -1))], dim=2)
        x = self.dense("embedding.project", features)
        if self.config["attacks"]:
            x = x + self.dense("embedding.attacks", attackers, bias=False)
        x = x * self.parameter("embedding.multiply") + self.parameter("embedding.add")
        if self.config["embedding"]["kind"] == "global":
            x = self.feed_forward("embedding.feed_forward", x)
        return x

    def attacks(self, planes):
        """Returns which kinds of pieces attack each square, and the attacks between squares, for pieces [B, 64, 12]."""
        pieces = planes.mT
        ours_and_theirs = pieces.unflatten(1, (2, 6)).unbind(2)
        pawns, knights, bishops, rooks, queens, kings = ours_and_theirs
        clear = self.lines - torch.einsum("bs,sij->bij", pieces.sum(1), self.between).unsqueeze(1)
        straight, diagonal = (clear.relu() * self.lines).unbind(1)
        beyond = [(clear[:, line] == 0).to(pieces.dtype) * self.lines[line] for line in (1, 0)]
        features = [
            torch.stack([pawns[:, side] @ self.leaps[side] for side in (0, 1)], 1),
            knights @ self.leaps[2],
            bishops @ diagonal,
            rooks @ straight,
            queens @ (straight + diagonal),
            kings @ self.leaps[3],
            kings @ self.leaps[2],
            kings @ diagonal,
            kings @ straight,
            *(kings @ lines for lines in beyond),
        ]
        rook, bishop, knight, king = (
            kinds.sum(1).unsqueeze(2)
            for kinds in (rooks + queens, bishops + queens, knights, kings)
        )
        attacked = rook * straight + bishop * diagonal + knight * self.leaps[2]
        attacked = attacked + king * self.leaps[3]
        for side in (0, 1):
            attacked = attacked + pawns[:, side].unsqueeze(2) * self.leaps[side]
        return torch.cat(features, 1).mT, torch.stack([attacked, attacked.mT], 1)

    def attend(self, name, x, bias):
        kind = self.config["position"]["kind"]
        heads = self.config["heads"]
        width = self.config["width"] // heads
        position = f"{name}.position"
        placed = x + self.parameter(f"{position}.offset") if kind == "absolute" else x

        def split(x):
            return x.unflatten(2, (heads, width)).transpose(1, 2)

        query, key = self.dense(f"{name}.query_key", placed, bias=False).chunk(2, dim=2)
        query, key = split(query), split(key)
        value = split(self.dense(f"{name}.value", placed, bias=False))
        logits = query @ key.transpose(2, 3)
        if kind == "shaw":
            of_query, of_key, of_value = (
                self.parameter(f"{position}.{part}")[self.displacements].unflatten(2, (heads, width))
                for part in ("query", "key", "value")
            )
            logits = logits + torch.einsum("bhid,ijhd->bhij", query, of_key)
            logits = logits + torch.einsum("bhjd,ijhd->bhij", key, of_query)
            logits = logits + torch.einsum("ijhd,ijhd->hij", of_query, of_key)
        logits = logits / math.sqrt(width)
        if kind == "relative":
            logits = logits + self.parameter(f"{position}.bias")[self.displacements].permute(2, 0, 1)
        if kind == "gab":
            logits = logits + self.geometric_bias(position, x)
        if bias is not None:
            logits = logits + bias
        attention = logits.softmax(-1).to(value.dtype)
        seen = attention @ value
        if kind == "shaw":
            seen = seen + torch.einsum("bhij,ijhd->bhid", attention, of_value)
        return self.add_and_norm(name, x, self.dense(f"{name}.output", seen.transpose(1, 2).flatten(2)))

    def geometric_bias(self, name, x):
        squares = self.dense(f"{name}.squares", x, bias=False).flatten(1)
        summary = F.silu(self.dense(f"{name}.summary", squares))
        summary = self.layer_norm(f"{name}.summary_norm", summary, 1e-3)
        heads = F.silu(self.dense(f"{name}.heads", summary))
        heads = self.layer_norm(f"{name}.heads_norm", heads, 1e-3)
        heads = heads.unflatten(1, (self.config["heads"], -1))
        biases = self.dense("encoder.gab_generator", heads, bias=False)
        return biases.unflatten(2, (SQUARES, SQUARES))

    def policy(self, name, x):
        query = self.dense(f"policy.{name}.query", x)
        key = self.dense(f"policy.{name}.key", x)
        pairs = query @ key.transpose(1, 2) / math.sqrt(self.config["width"])
        offsets = self.dense(f"policy.{name}.promotion", key[:, 56:], bias=False)
        promotions = pairs[:, 48:56, 56:].unsqueeze(3) + offsets.unsqueeze(1)
        return torch.cat([pairs.flatten(1), promotions.flatten(1)], dim=1)[:, self.moves]

    def summary(self, name, x):
        squares = F.mish(self.dense(f"{name}.squares", x)).flatten(1)
        return F.mish(self.dense(f"{name}.hidden", squares))

    def reward(self, name, x):
        summary = self.summary(name, x)
        scalar, categorical, error = (
            self.dense(f"{name}.{part}", summary).float() for part in ("scalar", "categorical", "error")
        )
        return torch.tanh(scalar.squeeze(1)), categorical, torch.sigmoid(error.squeeze(1))

    def forward(self, planes):
        attackers, bias = None, None
        if self.config["attacks"] or self.config["attack_bias"]:
            attackers, pairs = self.attacks(planes[..., :PIECES])
        if self.config["attack_bias"]:
            worth = ATTACK_GAIN * self.parameter("encoder.attacks")
            bias = torch.einsum("hk,bkij->bhij", worth, pairs)
        x = self.embed(planes, attackers)
        for layer in range(self.config["layers"]):
            x = self.attend(f"encoder.{layer}.attention", x, bias)
            x = self.feed_forward(f"encoder.{layer}.feed_forward", x)
        policy = F.mish(self.dense("policy.embedding", x))
        plies = self.dense("moves_left.plies", self.summary("moves_left", x)).float()
        return {
            "policy": self.policy("vanilla", policy).float(),
            "soft": self.policy("soft", policy).float() if self.config["soft_policy"] else None,
            "wdl": self.dense("value.result.wdl", self.summary("value.result", x)).float(),
            "q": self.reward("value.q", x),
            "short_term": self.reward("value.short_term", x),
            "plies": 20 * F.softplus(plies.squeeze(1)),
        }


def targets(batch, device):
    """Returns random positions, each with about thirty legal moves and all targets."""
    legal = torch.rand(batch, MOVES, device=device) < 30 / MOVES
    legal[:, 0] = True
    return {
        "planes": (torch.rand(batch, SQUARES, PLANES, device=device) < 0.1).float(),
        "illegal": ~legal,
        "policy": legal.float() / legal.sum(1, keepdim=True),
        "result": torch.randint(3, (batch,), device=device),
        "q": torch.rand(batch, device=device) * 2 - 1,
        "short_term": torch.rand(batch, device=device) * 2 - 1,
        "plies": torch.rand(batch, device=device) * 100,
    }


def loss(outputs, batch):
    """Returns the losses in the appendix of the Chessformer paper, and Lc0's moves-left loss."""

    def cross_entropy(logits, target):
        return F.cross_entropy(logits.masked_fill(batch["illegal"], -1e9), target)

    total = cross_entropy(outputs["policy"], batch["policy"])
    if outputs["soft"] is not None:
        soft = batch["policy"] ** (1 / SOFT_TEMPERATURE)
        total = total + 8 * cross_entropy(outputs["soft"], soft / soft.sum(1, keepdim=True))
    total = total + F.cross_entropy(outputs["wdl"], batch["result"])
    for name in ("q", "short_term"):
        scalar, categorical, error = outputs[name]
        squared = (scalar - batch[name]) ** 2
        bucket = ((batch[name] + 1) * categorical.shape[1] / 2).long().clamp(max=categorical.shape[1] - 1)
        total = total + squared.mean() + 0.1 * F.cross_entropy(categorical, bucket)
        total = total + F.mse_loss(error, squared.detach())
    return total + F.huber_loss(outputs["plies"] / 20, batch["plies"] / 20, delta=0.5)


def positions_per_second(config, shapes, batch_size, steps, device):
    """Trains for some steps on one batch; returns the speed of the median step."""
    torch.manual_seed(1)
    model = Chessformer(config, shapes).to(device)
    optimizer = torch.optim.NAdam(model.parameters(), lr=5e-4, betas=(0.9, 0.98), eps=1e-7)
    batch = targets(batch_size, device)
    seconds = []
    for step in range(steps + 2):
        start = time.perf_counter()
        with torch.autocast(torch.device(device).type, torch.bfloat16):
            outputs = model(batch["planes"])
        total = loss(outputs, batch)
        total.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10)
        optimizer.step()
        optimizer.zero_grad()
        if device != "cpu":
            torch.cuda.synchronize()
        if step == 0:
            unused = set(shapes) - model.used
            assert not unused, f"the model in Python does not use {sorted(unused)}"
        seconds.append(time.perf_counter() - start)
    return batch_size / sorted(seconds[2:])[steps // 2]


def product_rate(size, device):
    """Returns the multiply-accumulates per second of a size³ matrix product in bfloat16, the best of several runs."""
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    best = math.inf
    for _ in range(8 if device != "cpu" else 2):
        start = time.perf_counter()
        (a @ b).sum().item()
        best = min(best, time.perf_counter() - start)
    return size**3 / best

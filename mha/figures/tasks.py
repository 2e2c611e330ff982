"""A task whose attention can be read, and the loop that trains one layer on it (chapter 3).

L players sit in a circle. Each holds a card with CARD random numbers and must say, at the same time,
what is on the card before it and on the card after it: two places, one layer of attention.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from mha.attention import MultiHeadAttention

L, CARD = 12, 4
D_MODEL = CARD + L  # a token is its card, then its seat as a one-hot row
BEFORE, AFTER = -1, +1


def circle(B: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """B circles of players: X (B, L, D_MODEL), and the answers wanted, (B, L, 2·CARD)."""
    cards = torch.randn(B, L, CARD, generator=generator, dtype=torch.float64)  # mean 0, variance 1
    seats = torch.eye(L, dtype=torch.float64).expand(B, L, L)
    wanted = torch.cat([cards.roll(1, dims=1), cards.roll(-1, dims=1)], dim=-1)  # before, after
    return torch.cat([cards, seats], dim=-1), wanted


def error(layer: MultiHeadAttention, X: Tensor, wanted: Tensor) -> Tensor:
    """Mean squared error of the layer's first 2·CARD outputs. To answer 0 always costs 1."""
    return (layer(X)[..., : 2 * CARD] - wanted).square().mean()


@dataclass(frozen=True, eq=False)
class Run:
    """One training: what the heads looked at before and after, and how well it ended."""

    h: int
    layer: MultiHeadAttention
    random: Tensor  # (h, L, L) mean weights before training
    trained: Tensor  # (h, L, L) and after
    error: float  # on circles never seen

    def looks(self) -> list[tuple[float, float]]:
        """For each head, the share of its weight on the player before and on the player after."""
        seats = torch.arange(L)
        return [
            (A[seats, (seats + BEFORE) % L].mean().item(), A[seats, (seats + AFTER) % L].mean().item())
            for A in self.trained
        ]


def place() -> torch.device:
    """Where the two searches below run: on a GPU if there is one. Random numbers are drawn on the CPU all the same."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def train(h: int, *, steps: int = 250, B: int = 32, lr: float = 0.03, seed: int = 1) -> Run:
    """Train one layer of h heads, D_MODEL wide in all, on `circle`.

    In float64 and on one thread, so that every machine finds the same heads. ValueError unless h divides D_MODEL.
    """
    generator = torch.Generator().manual_seed(seed)
    layer = MultiHeadAttention(D_MODEL, h, device="meta", dtype=torch.float64).to_empty(device="cpu")
    with torch.no_grad():
        for p in layer.parameters():
            p.zero_() if p.dim() == 1 else p.normal_(std=D_MODEL**-0.5, generator=generator)
    X, wanted = circle(256, torch.Generator().manual_seed(seed + 1))  # to look at, and for the final error
    random = _weights(layer, X)
    layer = layer.to(place())
    adam = torch.optim.Adam(layer.parameters(), lr=lr)
    with one_thread(), torch.enable_grad():
        for _ in range(steps):
            adam.zero_grad()
            error(layer, *(x.to(place()) for x in circle(B, generator))).backward()
            adam.step()
    layer = layer.cpu()
    with torch.no_grad():
        final = error(layer, X, wanted).item()
    return Run(h, layer, random, _weights(layer, X), final)


@torch.no_grad()
def without(run: Run, head: int) -> float:
    """The error that is left when one head of a trained layer is cut off, with no further training."""
    layer = copy.deepcopy(run.layer)
    layer.W_O.weight[:, head * layer.d_v : (head + 1) * layer.d_v] = 0.0  # its rows of W_O
    return error(layer, *circle(256, torch.Generator().manual_seed(0))).item()


@contextmanager
def one_thread() -> Iterator[None]:
    """Small matrices are faster on one thread, and the order of their sums is then the same everywhere."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@torch.no_grad()
def _weights(layer: MultiHeadAttention, X: Tensor) -> Tensor:
    """Mean attention weights, (h, L, L)."""
    _, weights = layer(X, need_weights=True)
    return weights.mean(dim=0)


def random_pattern(n: int, seed: int, peaked: float = 2.0) -> Tensor:
    """Attention weights nobody asked a head for: (n, n), rows sum to 1; the larger `peaked`, the sharper."""
    generator = torch.Generator().manual_seed(seed)
    return torch.softmax(peaked * torch.randn(n, n, generator=generator, dtype=torch.float64), dim=-1)


def closest(P: Tensor, d_ks: list[int], *, steps: int = 500, tries: int = 4, seed: int = 0) -> tuple[Tensor, Tensor]:
    """How near a head of each width d_k comes to the pattern P (n, n): fit Q, K (n, d_k) by gradient descent.

    → KL(P ‖ softmax(Q Kᵀ)), the mean over rows, (len(d_ks),), and the weights reached, (len(d_ks), n, n);
    of `tries` random starts the best. All widths are fitted at once: a head of width d_k has its other columns at 0.
    """
    n, widest = len(P), max(d_ks)
    generator = torch.Generator().manual_seed(seed)
    shape = (tries, len(d_ks), n, widest)
    start = torch.randn((2, *shape), generator=generator, dtype=torch.float64).to(place())
    mine = (torch.arange(widest) < torch.tensor(d_ks)[:, None]).to(start)[:, None]  # (len(d_ks), 1, widest)
    P = P.to(place())
    with one_thread(), torch.enable_grad():
        Q, K = (x.clone().requires_grad_() for x in start)
        adam = torch.optim.Adam([Q, K], lr=0.3)
        slower = torch.optim.lr_scheduler.LinearLR(adam, 1.0, 0.0, steps)
        for _ in range(steps):
            log_A = torch.log_softmax((Q * mine) @ K.mT, dim=-1)  # (tries, len(d_ks), n, n)
            kl = (P * (P.log() - log_A)).sum(dim=-1).mean(dim=-1)  # (tries, len(d_ks))
            adam.zero_grad()
            kl.sum().backward()
            adam.step()
            slower.step()
    kl, A = kl.detach().cpu(), log_A.detach().exp().cpu()
    best, which = kl.argmin(dim=0), torch.arange(len(d_ks))
    return kl[best, which], A[best, which]

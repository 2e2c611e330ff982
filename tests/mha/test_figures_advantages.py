"""Chapter 3's experiments say what the chapter says, and its figures say it in both languages."""

import logging
import warnings
from importlib import import_module

import pytest
import torch
from matplotlib.figure import Figure
from torch.utils.flop_counter import FlopCounterMode

import mha
from mha import MultiHeadAttention
from mha.figures import advantages, display, tasks


@pytest.fixture(params=["zh", "en"])
def lang(request, monkeypatch):
    monkeypatch.setattr(import_module("mha.language"), "_chosen", None)  # and puts back what was chosen
    mha.set_language(request.param)
    return request.param


@pytest.fixture(scope="module")
def short_runs():
    return {h: tasks.train(h, steps=3) for h in (1, 2)}


def drawn(fig: Figure, caplog: pytest.LogCaptureFixture) -> str:
    """Draw, with every warning an error; the title and the alt text."""
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING, logger="matplotlib.mathtext"):
        warnings.simplefilter("error")
        display.png(fig)
    assert not [r for r in caplog.records if r.name == "matplotlib.mathtext"]
    assert display.size(fig)[0] == 560
    return f"{fig.get_suptitle()}\n{display.alt_text(fig)}"


@pytest.mark.parametrize(
    "search",
    [lambda: tasks.closest(tasks.random_pattern(6, seed=0), [1, 2], steps=2), lambda: tasks.train(2, steps=2)],
    ids=["closest", "train"],
)
def test_a_search_runs_wholly_where_a_gpu_would_be_and_comes_back_to_the_cpu(search, monkeypatch):
    # "meta" stands in for a GPU: it refuses to meet a tensor of the CPU, and to hand back what it never computed
    monkeypatch.setattr(tasks, "place", lambda: torch.device("meta"))
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        search()


def test_a_player_wants_the_cards_of_both_neighbours_round_the_circle():
    X, wanted = tasks.circle(2, torch.Generator().manual_seed(0))
    cards = X[..., : tasks.CARD]
    assert X.shape == (2, 12, 16)
    assert torch.equal(wanted[1, 0, :4], cards[1, 11])
    assert torch.equal(wanted[1, 11, 4:], cards[1, 0])
    assert torch.equal(X[0, 3, 4:], torch.eye(12, dtype=torch.float64)[3])


def test_two_heads_learn_both_places_and_neither_can_go():
    run = tasks.train(2)
    assert run.error < 0.01
    (before_0, after_0), (before_1, after_1) = run.looks()
    assert min(max(before_0, after_0), max(before_1, after_1)) > 0.85
    assert (before_0 > after_0) != (before_1 > after_1)
    assert min(tasks.without(run, head) for head in range(2)) > 0.3


def test_one_head_learns_about_half():
    assert 0.35 < tasks.train(1).error < 0.6


def test_untrained_heads_look_nearly_everywhere(short_runs):
    assert short_runs[2].random.shape == (2, 12, 12)
    assert short_runs[2].random.max() < 0.25


def test_training_leaves_the_threads_and_the_global_generator_alone():
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    first, second = tasks.train(2, steps=2), tasks.train(2, steps=2)
    assert torch.get_num_threads() == threads
    assert torch.equal(first.trained, second.trained)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_wider_heads_come_nearer_to_a_pattern():
    P = tasks.random_pattern(n=8, seed=0)
    kl, fitted = tasks.closest(P, [1, 2, 4, 7], steps=300)
    assert torch.equal(kl, kl.sort(descending=True).values)
    assert kl[0] > 0.1
    assert kl[-1] < 1e-3  # n − 1 is enough
    torch.testing.assert_close(fitted.sum(dim=-1), torch.ones(4, 8, dtype=torch.float64))


@pytest.mark.parametrize(("h", "d_k"), [(8, 64), (4, 16), (16, 64)])
def test_costs_are_those_of_the_layer(h, d_k):
    layer = MultiHeadAttention(512, h, d_k=d_k, d_v=d_k, device="meta")
    with FlopCounterMode(display=False) as counter:
        _, weights = layer(torch.empty(1, 64, 512, device="meta"), need_weights=True)
    assert advantages.costs(h, d_k, L=64) == {
        "parameters": sum(p.numel() for p in layer.parameters()),
        "flops": counter.get_total_flops(),
        "scores": weights.numel(),
    }


def test_the_clock_measures_every_h_both_ways():
    seconds = advantages.clock([1, 4], d_model=8, L=4, repeats=2)
    assert {way: list(row) for way, row in seconds.items()} == {"steps": [1, 4], "fused": [1, 4]}
    assert min(min(row.values()) for row in seconds.values()) > 0


def test_shared_width_counts_columns_and_scores(lang, caplog):
    told = drawn(advantages.shared_width(16), caplog)
    assert "1024" in told
    assert ("分数表" in told) == (lang == "zh")


def test_speed_tells_the_last_ratios(lang, caplog):
    told = drawn(advantages.speed({"steps": {1: 2.0, 96: 5.0}, "fused": {1: 1.0, 96: 1.5}}), caplog)
    assert "2.5" in told
    assert "1.5" in told


def test_the_bill_knows_whether_the_width_is_kept(lang, caplog):
    assert "= d_model" in drawn(advantages.bill(8, 64), caplog)
    assert "> d_model" in drawn(advantages.bill(16, 64), caplog)
    assert "< d_model" in drawn(advantages.bill(4, 64), caplog)


def test_errors_are_in_the_alt_text(lang, caplog, short_runs):
    assert f"h = 2: {short_runs[2].error:.2f}" in drawn(advantages.errors(short_runs), caplog)


def test_a_map_is_of_a_head_that_exists(lang, caplog, short_runs):
    assert "h = 2" in drawn(advantages.before_and_after(short_runs[2], 1), caplog)
    with pytest.raises(ValueError, match=r"head must be below h = 1, got 1"):
        advantages.before_and_after(short_runs[1], 1)


def test_nearest_says_how_far_off_it_is(lang, caplog):
    P = tasks.random_pattern(n=4, seed=0)
    assert "KL 0.50" in drawn(advantages.nearest(P, P, 0.5, 2), caplog)
    assert "KL < 0.005" in drawn(advantages.nearest(P, P, 0.0, 3), caplog)

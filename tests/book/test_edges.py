"""Last bits: what is printed must not hang on them, and the check that says so must be able to fail."""

import nbformat
import pytest
import torch

from book.edges import BITS, HALF_BITS, LastBits, edges
from book.notebooks import write


def test_a_value_on_a_rounding_edge_is_found_and_named(tmp_path):
    def told(number):
        return f"{torch.tensor([0.1, number]).sum():.2f}"

    far, near = 0.031, 0.02500003  # 0.131, and 0.12500003: a coin decides
    for seed in range(50):  # the first toss that comes out otherwise
        with LastBits(seed):
            if told(near) != "0.13":
                break
    cells = []
    for count, number in enumerate((far, near), 1):
        output = nbformat.v4.new_output("stream", text="0.13\n")
        code = f"import torch\nprint(f'{{torch.tensor([0.1, {number}]).sum():.2f}}')"
        cells.append(nbformat.v4.new_code_cell(code, execution_count=count, outputs=[output]))
    write(nbformat.v4.new_notebook(cells=cells), tmp_path / "x.ipynb")
    assert list(edges(tmp_path / "x.ipynb", seed)) == [r"x.ipynb, cell 1: stored '0.13\n', now '0.12\n'"]


@pytest.mark.parametrize(
    ("dtype", "bits"), [(torch.float16, HALF_BITS), (torch.float32, BITS), (torch.float64, BITS)], ids=str
)
def test_an_inexact_result_moves_in_its_last_bits_only(dtype, bits):
    X = torch.rand(64, 64, dtype=dtype, generator=torch.Generator().manual_seed(0))
    plain = X @ X
    with LastBits(seed=0):
        moved = X @ X
    off = ((moved.double() - plain.double()) / plain.double()).abs() / torch.finfo(dtype).eps
    assert bits / 2 < off.max() <= bits + 1
    assert (off > 0).double().mean() > 0.2


def test_what_is_exact_stays():
    with LastBits(seed=0):
        assert torch.arange(12.0).view(3, 4).sum().item() == 66
        assert torch.softmax(torch.tensor([0.0, 0.0, -torch.inf]), dim=-1).tolist() == [0.5, 0.5, 0]


def test_the_same_computation_gives_the_same_result_twice_and_another_seed_another():
    X = torch.rand(8, 8, generator=torch.Generator().manual_seed(0))
    with LastBits(seed=0):
        first, second = X @ X, X @ X
    with LastBits(seed=1):
        third = X @ X
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


def test_gradients_move_too():
    W = torch.rand(8, 8, requires_grad=True)
    X = torch.rand(4, 8)
    (X @ W).square().sum().backward()
    plain, W.grad = W.grad, None
    with LastBits(seed=0):
        (X @ W).square().sum().backward()
    assert not torch.equal(W.grad, plain)
    assert torch.allclose(W.grad, plain, rtol=1e-4)


def test_a_chapters_random_numbers_stay_the_same():
    torch.manual_seed(0)
    plain = torch.randn(5)
    torch.manual_seed(0)
    with LastBits(seed=0):
        _ = torch.rand(3, 3) @ torch.rand(3, 3)
        torch.manual_seed(0)
        assert torch.equal(torch.randn(5), plain)

"""One thread: on tensors this small a second one only waits, and on a busy machine it waits long."""

import pytest
import torch

import mha.language

torch.set_num_threads(1)


@pytest.fixture(params=["zh", "en"])
def spoken(request, monkeypatch):
    """The language that figures speak in this test: each in turn, and afterwards what was chosen before."""
    monkeypatch.setattr(mha.language, "_chosen", request.param)
    return request.param

"""What every group of tests may ask for: one thread of torch, a small corpus, and one tiny trained run, made once a session."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for tests that import small_run


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the small corpus and small.toml."""
    import small_run

    return small_run.corpus(tmp_path_factory.mktemp("corpus")).parent


@pytest.fixture(scope="session")
def trained(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a tiny model, trained by `regard train` from small.toml. Read-only by agreement."""
    import torch

    import small_run

    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("runs") / "small"
    done = small_run.regard("train", corpus / "small.toml", "--out", out, "--progress", "none")
    assert done.code == 0, done.error
    return out

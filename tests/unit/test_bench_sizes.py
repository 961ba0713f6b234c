"""The table of sizes: every corpus has a row, and a row becomes a run."""

import pytest

from regard.bench.sizes import neighbours
from regard.config.toml import structure
from regard.own_files import SIZES, tables_for, tables_of
from regard.run import Run


@pytest.mark.parametrize(("pairs", "rows"), [(100, [0, 1]), (25_000, [0, 1]), (30_000, [0, 1, 2]), (50_000, [1, 2]), (200_000, [1, 2])])
def test_a_corpus_is_measured_with_its_own_row_and_those_beside_it(pairs: int, rows: list[int]):
    assert neighbours(pairs) == rows


@pytest.mark.parametrize("size", SIZES)
def test_each_row_is_a_run(size):
    run = structure(Run, tables_of(size, pairs=1000))
    assert run.model.d_model == size.d_model and run.train.epochs == size.epochs  # type: ignore[union-attr]
    assert tables_for(size.pairs) == tables_of(size, pairs=size.pairs)

import numpy as np
import pytest
import torch

from regard.data.batch import IGNORED
from regard.data.layouts import Fixed, Rows, packed, padded
from regard.data.marks import BOS, EOS, PAD

SOURCE = Rows(np.array([11, 12, 13, 14], np.uint16), np.array([3, 0, 1]))
TARGET = Rows(np.array([21, 22, 23], np.uint16), np.array([1, 2, 0]))
PAIRS = np.array([7, 5, 9])


def test_packed_by_hand():
    batch = packed(SOURCE, TARGET, PAIRS)
    assert batch.source.ids.tolist() == [[11, 12, 13, EOS, EOS, 14, EOS]]
    assert batch.source.tokens.documents.tolist() == [[0, 0, 0, 0, 1, 2, 2]]
    assert batch.source.tokens.positions.tolist() == [[0, 1, 2, 3, 0, 0, 1]]
    assert batch.target.ids.tolist() == [[BOS, 21, BOS, 22, 23, BOS]]
    assert batch.labels.tolist() == [[21, EOS, 22, 23, EOS, EOS]]
    assert batch.target.tokens.spans.offsets.tolist() == [0, 2, 5, 6]
    assert (batch.source_tokens, batch.target_tokens, batch.pairs) == (7, 6, (7, 5, 9))
    assert batch.source.ids.dtype == batch.labels.dtype == torch.int64


def test_padded_by_hand():
    batch = padded(SOURCE, TARGET, PAIRS)
    assert batch.source.ids.tolist() == [[11, 12, 13, EOS], [EOS, PAD, PAD, PAD], [14, EOS, PAD, PAD]]
    assert batch.source.tokens.real.tolist() == [[True] * 4, [True] + [False] * 3, [True, True, False, False]]
    assert batch.target.ids.tolist() == [[BOS, 21, PAD], [BOS, 22, 23], [BOS, PAD, PAD]]
    assert batch.labels.tolist() == [[21, EOS, IGNORED], [22, 23, EOS], [EOS, IGNORED, IGNORED]]
    assert (batch.source_tokens, batch.target_tokens) == (7, 6)


def test_a_row_of_fixed_shape_is_filled_by_documents_without_loss():
    fixed = Fixed(length=17, longest=5, documents=8)
    assert fixed.fillers == 4 and fixed.room == 13
    batch = packed(SOURCE, TARGET, PAIRS, fixed=fixed)
    assert batch.source.ids.tolist() == [[11, 12, 13, EOS, EOS, 14, EOS] + [PAD] * 10]
    assert batch.source.tokens.documents.tolist() == [[0] * 4 + [1] + [2] * 2 + [3] * 3 + [4] * 3 + [5] * 2 + [6] * 2]
    assert batch.target.tokens.documents.tolist() == [[0] * 2 + [1] * 3 + [2] + [3] * 3 + [4] * 3 + [5] * 3 + [6] * 2]
    assert batch.labels.tolist() == [[21, EOS, 22, 23, EOS, EOS] + [IGNORED] * 11]
    for side in (batch.source, batch.target):
        spans = side.tokens.spans
        assert spans.offsets.shape == (9,) and spans.offsets[-1] == 17 and spans.gather.shape == (8, 5) and spans.longest == 5
        assert side.tokens.real.all()
        assert (spans.gather.flatten()[spans.scatter] == torch.arange(17)).all()
    assert (batch.source_tokens, batch.target_tokens) == (7, 6)
    with pytest.raises(ValueError, match="do not fit"):
        packed(SOURCE, TARGET, PAIRS, fixed=Fixed(length=8, longest=5, documents=8))


@pytest.mark.parametrize("layout", [packed, padded, lambda *rows: packed(*rows, fixed=Fixed(length=17, longest=5, documents=8))])
def test_twice_is_the_same_pairs_laid_out_once_more(layout):
    once, twice = layout(SOURCE, TARGET, PAIRS), layout(SOURCE, TARGET, PAIRS).twice()
    rows = (SOURCE, TARGET)
    repeated = layout if layout is padded else packed
    whole = repeated(*(Rows(np.tile(side.ids, 2), np.tile(side.lengths, 2)) for side in rows), np.tile(PAIRS, 2))
    assert (twice.pairs, twice.source_tokens, twice.target_tokens) == (whole.pairs, whole.source_tokens, whole.target_tokens)
    if once.source.ids.shape[1] != 17:
        for ours, theirs in ((twice.source, whole.source), (twice.target, whole.target)):
            torch.testing.assert_close(torch.utils._pytree.tree_flatten(ours.tokens)[0], torch.utils._pytree.tree_flatten(theirs.tokens)[0])
            assert torch.equal(ours.ids, theirs.ids)
        assert torch.equal(twice.labels, whole.labels)
        return
    for side in (twice.source, twice.target):  # with filler, the spans still say where everything lies
        spans = side.tokens.spans
        assert spans.offsets[-1] == 34 and (spans.gather.flatten()[spans.scatter] == torch.arange(34)).all()
        assert (side.tokens.documents[0][17:] == side.tokens.documents[0][:17] + 8).all()
    assert twice.labels[0].tolist() == once.labels[0].tolist() * 2

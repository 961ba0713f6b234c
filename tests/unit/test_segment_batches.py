"""Text read on from batch to batch: streams in order, every token once, and a loss that goes on where the last one ended."""

from __future__ import annotations

from itertools import islice, pairwise

import pytest
import torch

from regard.data.batch import halve
from regard.data.batching import Batching, Cursor
from regard.data.marks import BOS
from regard.data.segment_batches import SegmentBatches
from regard.data.text_batches import TextBatches
from regard.data.text_cache import TextCache
from regard.errors import ModelError, UsageError
from regard.models.build import build
from regard.models.configs import LanguageModel
from regard.nn.attention.segments import TransformerXL
from regard.nn.embed import Embedding
from regard.nn.feedforward import FeedForward
from regard.nn.positions import NoPositions
from regard.nn.trunk_transformer import Transformer
from regard.train.device import Machine
from regard.train.loss import CrossEntropy, Objective
from regard.train.optimise import AdamW, build_optimiser
from regard.train.segments import Left, SegmentObjective
from regard.train.step import Learner
from unit.test_text_batches import asked, cache, expected

TEXT = TextCache.of([[4 + place % 7 for place in range(103)]], begin=3)


def objective(memory=200, **axes):
    torch.manual_seed(0)
    own = TransformerXL(memory=memory, **axes)
    trunk = Transformer(layers=2, heads=2, own=own, dropout=0.0, feed_forward=FeedForward(d_ff=9))
    embedding = Embedding(positions=NoPositions(), dropout=0.0)
    model = build(LanguageModel(d_model=6, trunk=trunk, embedding=embedding, tie=False, vocabulary=51)).double()
    return SegmentObjective(model, CrossEntropy(smoothing=0.0))


def batches(text=TEXT, *, tokens=20, length=5, **axes):
    return SegmentBatches(text, Batching(tokens=tokens, max_length=length, ahead=0, **axes))


@pytest.mark.parametrize("begin", [BOS, 4])
@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize(("rows", "length"), [(1, 64), (3, 2), (2, 5), (9, 1)])
def test_every_token_once_with_what_follows(begin, within, rows, length):
    made = batches(cache(begin), tokens=rows * length, length=length, within=within)
    assert sorted(pair for batch in made.once() for pair in asked(batch)) == sorted(expected(begin))
    found = [made.batch(starts) for starts in made.plan(0)]
    left_out = len(expected(begin)) - sum(batch.target_tokens for batch in found)
    assert 0 <= left_out < rows and len(found) == made.in_epoch


def test_each_row_goes_on_where_it_was_and_shapes_stay():
    made = batches(static=True)
    found = [made.batch(starts) for starts in made.plan(3)]
    assert {tuple(batch.text.ids.shape) for batch in found} == {(4, 5)} and made.padding_share == 0
    for before, after in pairwise(found):
        assert before.ends == after.pairs and before.streams == after.streams == (0, 1, 2, 3)
        assert torch.equal(after.text.tokens.positions, before.text.tokens.positions + 5)
        assert torch.equal(before.labels[:, -1], after.text.ids[:, 0])
    assert [batch.pairs for batch, _ in islice(made.after(Cursor(0, 2)), 1)] == [found[2].pairs]


def test_documents_are_told_apart_where_that_is_asked_for():
    made = batches(cache(), tokens=6, length=3, within=True)
    for batch in made.once():
        tokens = batch.text.tokens
        begun = (batch.text.ids == BOS) & tokens.real
        assert not tokens.positions[begun].any() and tokens.positions[~begun & tokens.real].all()
        assert len(set(tokens.documents[begun].tolist())) == int(begun.sum())


def test_ranks_have_streams_of_their_own():
    text = Batching(tokens=10, max_length=5, ahead=0)
    ranks = [[b for b, _ in islice(SegmentBatches(TEXT, text, rank=rank, world=2).after(), 6)] for rank in (0, 1)]
    for one in ranks:
        assert all(before.ends == after.pairs for before, after in pairwise(one[:5]))
    assert not {start for batch in ranks[0] for start in batch.pairs} & {start for batch in ranks[1] for start in batch.pairs}


def test_the_losses_of_segments_are_those_of_whole_streams():
    """With memory enough, what segment by segment is lost is what one long row loses; without it, it is not."""
    made = objective().eval()
    whole = Objective(made.model, CrossEntropy(smoothing=0.0))
    long = next(iter(TextBatches(TEXT, Batching(tokens=200, max_length=200, ahead=0)).once()))
    one = batches(tokens=7, length=7)
    with torch.no_grad():
        total = sum(float(made(batch)) for batch in one.once())
        assert total == pytest.approx(float(whole(long)), abs=1e-4)
        short = objective(memory=2).eval()
        assert sum(float(short(batch)) for batch in one.once()) != pytest.approx(total, abs=1e-3)


def test_another_place_or_a_new_epoch_begins_with_an_empty_memory():
    made, one = objective().eval(), batches()
    first, second, third = (one.batch(starts) for starts in list(one.plan(0))[:3])
    with torch.no_grad():
        fresh = float(made(third))
        made(first)
        assert float(made(third)) == pytest.approx(fresh, abs=1e-12)
        made(first)
        made(second)
        assert abs(float(made(third)) - fresh) > 1e-6


def test_halves_go_on_as_the_whole_does():
    one, found = batches(), []
    for whole in (True, False):
        made, total = objective().eval(), 0.0
        with torch.no_grad():
            for starts in one.plan(0):
                batch = one.batch(starts)
                total += sum(float(made(piece)) for piece in ((batch,) if whole else halve(batch)))
        found.append((total, made.left))
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-4)
    for ours, theirs in zip(found[0][1].layers, found[1][1].layers, strict=True):
        torch.testing.assert_close(ours, theirs)
    assert found[0][1].ends == found[1][1].ends


class Short(SegmentObjective):
    """Out of memory, once, in the second half of the second step."""

    calls = 0

    def forward(self, batch):
        self.calls += 1
        if self.calls == 4:
            raise torch.OutOfMemoryError("none left")
        return super().forward(batch)


def test_a_step_taken_again_begins_with_the_memory_that_it_had():
    found = []
    for kind in (SegmentObjective, Short):
        made = objective().train()
        made.__class__ = kind
        learner = Learner(made, build_optimiser(AdamW(rate=0.01), made.model), machine=Machine(torch.device("cpu")))
        learner.largest = 20  # half of a batch, what is read and what is asked
        losses = [float(learner.step([batch], step=n, updates=n, factor=1.0).loss) for n, (batch, _) in zip(range(5), batches().after())]
        found.append(losses)
    assert learner.splits == 1 and found[0] == pytest.approx(found[1], abs=1e-4)


def test_what_is_left_can_be_written_down_and_is_never_worse_than_finite():
    made, one = objective().train(), batches()
    plan = list(one.plan(0))
    made(one.batch(plan[0]))
    again = objective().train()
    again.left = Left.of(made.left.tensors(), device=torch.device("cpu"))
    assert torch.equal(made(one.batch(plan[1])), again(one.batch(plan[1])))
    with torch.no_grad():
        made.model.embedding.table[4:] = float("nan")
    assert not made(one.batch(plan[2])).isfinite()
    assert all(states.isfinite().all() and not states.requires_grad for states in made.left.layers)
    with pytest.raises(ModelError):
        Left.of({"layer.0": torch.zeros(1)}, device=torch.device("cpu"))
    with pytest.raises(UsageError, match="r_drop"):
        SegmentObjective(made.model, CrossEntropy(r_drop=1.0))

"""Which of two letters came first: what no one can say who is not told where they stand."""

import pytest
import torch
import torch.nn.functional as F

from regard.data.text_batch import labelled_texts
from regard.models.build import build
from regard.models.configs import TextClassifier
from regard.nn.embed import Embedding
from regard.nn.feedforward import FeedForward
from regard.nn.positions import Learned, NoPositions, Sinusoid
from regard.nn.trunk_recurrent import Recurrent
from regard.nn.trunk_transformer import Transformer

FIRST, SECOND, OTHERS = 4, 5, [6, 7, 8, 9]
ENCODER = Transformer(layers=1, heads=2, placement="pre", dropout=0.0, feed_forward=FeedForward(d_ff=64))


def drawn(count, *, seed):
    """Texts of eight letters with both of the two among them, and which of these comes first."""
    generator = torch.Generator().manual_seed(seed)
    texts = torch.tensor(OTHERS)[torch.randint(4, (count, 8), generator=generator)]
    places = torch.stack([torch.randperm(8, generator=generator)[:2] for _ in range(count)])
    texts.scatter_(1, places, torch.tensor([[FIRST, SECOND]]).expand(count, 2))
    labels = (places[:, 0] < places[:, 1]).long()
    return labelled_texts(texts.tolist(), labels, range(count)), labels


def right(positions, *, encoder=ENCODER, seed=1):
    """The share of right answers to texts that were not learned from."""
    torch.manual_seed(seed)
    embedding = Embedding(positions=positions, scale=False, dropout=0.0)
    config = TextClassifier(d_model=32, encoder=encoder, embedding=embedding, pool="mean", labels=("b first", "a first"), vocabulary=10)
    model = build(config)
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    batch, labels = drawn(512, seed=2)
    for _ in range(60):
        optimiser.zero_grad()
        F.cross_entropy(model.output(model(batch)), labels).backward()
        optimiser.step()
    batch, labels = drawn(1000, seed=3)
    with torch.no_grad():
        return (model.eval().output(model(batch)).argmax(-1) == labels).float().mean().item()


def test_without_positions_it_is_a_guess():
    assert right(NoPositions()) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("positions", [Sinusoid(), Learned(length=16)], ids=lambda one: one.kind)
def test_with_positions_it_is_learned(positions):
    assert right(positions) > 0.97


def test_recurrence_needs_none():
    assert right(NoPositions(), encoder=Recurrent(cell="gru", width=32, dropout=0.0)) > 0.97

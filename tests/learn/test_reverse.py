"""Strings of letters, to be written backwards: what a recurrent or a convolutional decoder cannot do without looking back."""

import pytest
import torch

from regard.data.batch import IGNORED, PairBatch, Side
from regard.data.marks import BOS, EOS, FIRST, PAD
from regard.decode.draft import Job
from regard.decode.engine import decode
from regard.decode.sample import Greedy
from regard.decode.step_translator import opener
from regard.models.build import translator
from regard.models.configs import EncoderDecoder, TrunkConfig
from regard.nn.attention.scores import Additive, Bilinear
from regard.nn.embed import Embedding
from regard.nn.positions import Learned, NoPositions
from regard.nn.tap import record
from regard.nn.trunk_convolutional import Convolutional
from regard.nn.trunk_recurrent import Bahdanau, Luong, Recurrent
from regard.nn.view import Tokens
from regard.train.loss import CrossEntropy, Objective

LETTERS, LONGEST = 8, 9


def side(rows: list[list[int]], *, filling: int = PAD) -> Side:
    width = max(map(len, rows))
    ids = torch.tensor([row + [filling] * (width - len(row)) for row in rows])
    return Side(ids, Tokens.padded(torch.tensor([[place < len(row) for place in range(width)] for row in rows])))


def strings(count: int, noise: torch.Generator) -> list[list[int]]:
    lengths = torch.randint(3, LONGEST + 1, (count,), generator=noise).tolist()
    return [torch.randint(FIRST, FIRST + LETTERS, (length,), generator=noise).tolist() for length in lengths]


def batch_of(texts: list[list[int]]) -> PairBatch:
    labels = side([[*text[::-1], EOS] for text in texts], filling=IGNORED).ids
    real = int((labels != IGNORED).sum())
    return PairBatch(side([[*text, EOS] for text in texts]), side([[BOS, *text[::-1]] for text in texts]), labels, (), real, real)


def learned(encoder: TrunkConfig, decoder: TrunkConfig, *, positions, seed: int, steps: int, rate: float):
    torch.manual_seed(seed)
    noise = torch.Generator().manual_seed(seed)
    config = EncoderDecoder(
        d_model=32,
        encoder=encoder,
        decoder=decoder,
        embedding=Embedding(positions=positions, dropout=0.0),
        tie="none",
        source_vocabulary=FIRST + LETTERS,
        target_vocabulary=FIRST + LETTERS,
    )
    model = translator(config).train()
    objective, optimiser = Objective(model, CrossEntropy(smoothing=0.0)), torch.optim.Adam(model.parameters(), rate)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, steps)
    for _ in range(steps):
        batch = batch_of(strings(64, noise))
        optimiser.zero_grad()
        (objective(batch) / batch.target_tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    return model.eval()


def share_right(model) -> float:
    """Of strings never seen, which are written backwards without a slip."""
    texts = strings(100, torch.Generator().manual_seed(99))
    found = decode(opener(model), [Job((*text, EOS), LONGEST + 3) for text in texts], search=Greedy())
    return sum(list(one[0].tokens) == text[::-1] for one, text in zip(found, texts, strict=True)) / len(texts)


def share_mirrored(model) -> float:
    """Of the letters that are written, which were looked at the most."""
    texts = strings(50, torch.Generator().manual_seed(98))
    with torch.no_grad(), record(model, "decoder.0.cross.weights") as seen:
        model(batch_of(texts))
    places = torch.cat(seen["decoder.0.cross.weights"], 2)[:, 0].argmax(-1).tolist()
    hits = [place == len(text) - 1 - step for row, text in zip(places, texts, strict=True) for step, place in enumerate(row[: len(text)])]
    return sum(hits) / len(hits)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("cell", "attention"), [("gru", Bahdanau(score=Additive(32))), ("lstm", Luong(score=Bilinear()))])
def test_recurrent_decoders_learn_to_look_from_the_end(cell, attention, seed):
    encoder = Recurrent(cell=cell, width=32, bidirectional=True, dropout=0.0)
    decoder = Recurrent(cell=cell, width=64, attention=attention, dropout=0.0)
    model = learned(encoder, decoder, positions=NoPositions(), seed=seed, steps=200, rate=1e-2)
    assert share_right(model) > 0.95 and share_mirrored(model) > 0.9


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_convolutions_with_attention_learn_it_too(seed):
    trunk = Convolutional(layers=2, dropout=0.0)
    assert share_right(learned(trunk, trunk, positions=Learned(16), seed=seed, steps=500, rate=5e-3)) > 0.9

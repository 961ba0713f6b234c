"""Strings of letters and the same strings backwards: a translation so small that a lesson can learn it while one waits."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from regard.data.batch import IGNORED, PairBatch, Side
from regard.data.marks import BOS, EOS, FIRST, PAD
from regard.models.build import translator
from regard.models.configs import EncoderDecoder, TrunkConfig
from regard.models.translator import Translator
from regard.nn.embed import Embedding
from regard.nn.positions import Positions
from regard.nn.view import Tokens

ALPHABET = "abcdefgh"
MARKS = {BOS: "<s>", EOS: "</s>", IGNORED: "", PAD: ""}


def ids(text: str) -> list[int]:
    return [FIRST + ALPHABET.index(letter) for letter in text]


def shown(token: int) -> str:
    """A token as a reader knows it."""
    return MARKS[token] if token in MARKS else ALPHABET[token - FIRST]


def texts(count: int, *, seed: int, sizes: tuple[int, int] = (3, 6)) -> list[str]:
    """Strings drawn evenly, of all sizes from the least to the most."""
    noise = torch.Generator().manual_seed(seed)
    lengths = torch.randint(sizes[0], sizes[1] + 1, (count,), generator=noise).tolist()
    return ["".join(ALPHABET[place] for place in torch.randint(len(ALPHABET), (length,), generator=noise)) for length in lengths]


def batch(sources: list[str], targets: list[str]) -> PairBatch:
    """As training sees them: the target is shifted by one, begin mark in front, and the labels end on the end mark."""
    labels = _side([[*ids(text), EOS] for text in targets], filling=IGNORED).ids
    real = int((labels != IGNORED).sum())
    return PairBatch(_side([[*ids(text), EOS] for text in sources]), _side([[BOS, *ids(text)] for text in targets]), labels, (), real, real)


def model(encoder: TrunkConfig, decoder: TrunkConfig, *, positions: Positions, d_model: int = 32) -> Translator:
    """A translator from letters to letters."""
    config = EncoderDecoder(
        d_model=d_model,
        encoder=encoder,
        decoder=decoder,
        embedding=Embedding(positions=positions, dropout=0.0),
        tie="none",
        source_vocabulary=FIRST + len(ALPHABET),
        target_vocabulary=FIRST + len(ALPHABET),
    )
    return translator(config)


def learn(model: Translator, *, steps: int, rate: float, rows: int = 64, sizes: tuple[int, int] = (3, 6)) -> list[float]:
    """Learn to write strings backwards, the right letters before each place; the loss of every step."""
    model.train()
    optimiser = torch.optim.Adam(model.parameters(), rate)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, steps)
    losses = []
    for step in range(steps):
        drawn = texts(rows, seed=step, sizes=sizes)
        pairs = batch(drawn, [text[::-1] for text in drawn])
        loss = F.cross_entropy(model.scores(pairs).flatten(0, 1), pairs.labels.flatten(), ignore_index=IGNORED)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
    model.eval()
    return losses


def write(model: Translator, sources: list[str], *, begun: str = "", most: int = 12) -> list[str]:
    """What the model writes by itself, each time the likeliest letter; after a beginning, if one is given."""
    from regard.decode.draft import Job
    from regard.decode.engine import decode
    from regard.decode.sample import Greedy
    from regard.decode.step_translator import opener

    jobs = [Job((*ids(text), EOS), most, prefix=tuple(ids(begun))) for text in sources]
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)  # a search counts in 32 bits, whatever the lesson and its model do
    try:
        found = decode(opener(model), jobs, search=Greedy())
    finally:
        torch.set_default_dtype(dtype)
    return ["".join(map(shown, one[0].tokens)) for one in found]


def _side(rows: list[list[int]], *, filling: int = PAD) -> Side:
    width = max(map(len, rows))
    filled = torch.tensor([row + [filling] * (width - len(row)) for row in rows])
    return Side(filled, Tokens.padded(torch.tensor([[place < len(row) for place in range(width)] for row in rows])))

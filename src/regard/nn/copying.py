"""Copying: the places of the source as further answers beside the words, by one softmax over both, or by a gate between the two.

Words that the vocabulary lacks have the ids V, V+1, ... of their own example. A word may be had both ways, and at several places: the
shares add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, assert_never

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.errors import UsageError
from regard.nn.attention.scores import Additive, Bilinear, Score
from regard.nn.cache import Kept
from regard.nn.tap import tap

LEAST = 1e-20  # what a probability of nothing is taken for before the logarithm


@dataclass(frozen=True)
class NoCopy:
    """Only the words of the vocabulary."""

    kind: ClassVar[Literal["none"]] = "none"


@dataclass(frozen=True)
class JointCopy:
    """One softmax over the scores of all words and of all places of the source."""

    kind: ClassVar[Literal["joint"]] = "joint"
    score: Score = Bilinear()
    "How well the decoder's vector fits a place of the source."


@dataclass(frozen=True)
class PointerGenerator:
    """P(w) = p P_vocabulary(w) + (1 - p) (attention to the places of w), See et al. 2017. (Elsewhere the gate is 1 - p.)"""

    kind: ClassVar[Literal["pointer-generator"]] = "pointer-generator"
    width: int = 256
    "Hidden units of the additive attention."
    coverage: bool = False
    "Whether the attention is told how much each place was looked at before; decoding then cannot take words back."
    penalty: float = 1.0
    "With coverage: how much the loss grows by what is looked at again."


Copy = NoCopy | JointCopy | PointerGenerator


@dataclass(frozen=True, eq=False)
class Original:
    """The source as something to copy from: its vectors, what is worked out of them once, and the words that stand there."""

    states: Float[Tensor, "B S D"]
    keys: Float[Tensor, "B S A"]
    ids: Int[Tensor, "B S"]
    real: Bool[Tensor, "B S"]


@dataclass(frozen=True, eq=False)
class Cells:
    """A distribution over V + S cells: every word of the vocabulary, and every place of the source."""

    logits: Float[Tensor, "B T V"]
    normaliser: Float[Tensor, "B T"]  # what the logits lack to be log-probabilities
    copied: Float[Tensor, "B T S"]  # probabilities
    ids: Int[Tensor, "B S"]
    again: Float[Tensor, "B T"] | None = None  # coverage's penalty: what is looked at now and was before

    def told(self, labels: Int[Tensor, "B T"]) -> tuple[Float[Tensor, "B T"], Bool[Tensor, "B T"]]:
        """The log-probability of each label, and where it is nothing, since neither way leads there."""
        size = self.logits.shape[2]
        own_BT = self.logits.gather(2, labels.clamp(0, size - 1)[..., None]).squeeze(2) - self.normaliser
        own_BT = own_BT.masked_fill((labels < 0) | (labels >= size), -torch.inf)
        copied_BT = (self.copied * (self.ids[:, None] == labels[..., None])).sum(2)
        return torch.logaddexp(own_BT, copied_BT.clamp_min(LEAST).log()), (own_BT.exp() + copied_BT) < LEAST

    def words(self, *, width: int) -> Float[Tensor, "B T width"]:
        """Log-probabilities of all words, those of the example after those of the vocabulary."""
        own_BTV = (self.logits - self.normaliser[..., None]).exp()
        all_BTW = F.pad(own_BTV, (0, width - own_BTV.shape[2]))
        return all_BTW.scatter_add(2, self.ids[:, None].expand_as(self.copied), self.copied).log()


class JointCopying(nn.Module):
    """[W h; score(h, place)] under one softmax."""

    coverage = False

    def __init__(self, config: JointCopy, *, d_memory: int, d_hidden: int):
        super().__init__()
        if d_memory != d_hidden and not isinstance(config.score, Bilinear | Additive):
            raise UsageError(
                f"{config.score.kind} compares the decoder's {d_hidden} numbers with the encoder's {d_memory}",
                where="model.copy.score",
                do="choose bilinear or additive, or trunks of one width",
            )
        self.score = config.score.build(1, d_hidden, d_memory)

    def keys(self, states_BSD: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        return states_BSD

    def forward(
        self, logits_BTV: Tensor, hidden_BTD: Tensor, input_BTD: Tensor, real_BT: Tensor, source: Original, looked_BS: Tensor
    ) -> tuple[Cells, Tensor]:
        scores_BTS = self.score.pairwise(hidden_BTD[:, None], source.keys[:, None])[:, 0]
        return joined(logits_BTV, scores_BTS, source.ids, source.real), looked_BS


class GatedCopying(nn.Module):
    """v tanh(W_h h_i + W_s s + w_c c_i + b) looks at the places; sigmoid(w_h h* + w_s s + w_x x + b) chooses the way."""

    def __init__(self, config: PointerGenerator, *, d_memory: int, d_hidden: int, d_input: int):
        super().__init__()
        self.coverage = config.coverage
        self.key = nn.Linear(d_memory, config.width)
        self.query = nn.Linear(d_hidden, config.width, bias=False)
        self.past = nn.Parameter(torch.zeros(config.width)) if config.coverage else None
        self.vector = nn.Linear(config.width, 1, bias=False)
        self.gate = nn.Linear(d_memory + d_hidden + d_input, 1)
        for layer in (self.key, self.query, self.vector, self.gate):
            nn.init.xavier_uniform_(layer.weight)
        for layer in (self.key, self.gate):
            nn.init.zeros_(layer.bias)

    def keys(self, states_BSD: Float[Tensor, "B S D"]) -> Float[Tensor, "B S A"]:
        return self.key(states_BSD)

    def forward(
        self, logits_BTV: Tensor, hidden_BTD: Tensor, input_BTD: Tensor, real_BT: Tensor, source: Original, looked_BS: Tensor
    ) -> tuple[Cells, Tensor]:
        """`looked_BS`: how much each place was looked at before the first of these tokens; comes back as it is after the last."""
        query_BTA, again_BT = self.query(hidden_BTD), None
        if self.past is None:
            weights_BTS = self._weights(query_BTA, source, None)
        else:
            weights, again = [], []
            for step in range(query_BTA.shape[1]):
                weights_BS = self._weights(query_BTA[:, step : step + 1], source, looked_BS)[:, 0]
                again.append(torch.minimum(weights_BS, looked_BS).sum(1))
                looked_BS = looked_BS + weights_BS * real_BT[:, step, None]
                weights.append(weights_BS)
            weights_BTS, again_BT = torch.stack(weights, 1), torch.stack(again, 1)
        pooled_BTD = weights_BTS.to(source.states.dtype) @ source.states
        gate_BT = self.gate(torch.cat([pooled_BTD, hidden_BTD, input_BTD], -1)).squeeze(-1)
        return gated(logits_BTV, weights_BTS, tap(gate_BT, "copy.gate"), source.ids, again_BT), looked_BS

    def _weights(self, query_BTA: Tensor, source: Original, looked_BS: Tensor | None) -> Float[Tensor, "B T S"]:
        keys_BSA = source.keys if looked_BS is None or self.past is None else source.keys + looked_BS[..., None] * self.past
        scores_BTS = self.vector((query_BTA[:, :, None] + keys_BSA[:, None]).tanh()).squeeze(-1)
        empty_B1 = ~source.real.any(1, keepdim=True)  # a source without words: nothing is copied, and nothing becomes NaN
        scores_BTS = _wide(scores_BTS).masked_fill(~(source.real | empty_B1)[:, None], -torch.inf)
        return scores_BTS.softmax(-1).masked_fill(empty_B1[:, None], 0.0)


def joined(
    logits_BTV: Float[Tensor, "B T V"], scores_BTS: Float[Tensor, "B T S"], ids_BS: Int[Tensor, "B S"], real_BS: Bool[Tensor, "B S"]
) -> Cells:
    """The joint softmax; padding has a score of minus infinity."""
    logits_BTV = _wide(logits_BTV)
    scores_BTS = scores_BTS.to(logits_BTV.dtype).masked_fill(~real_BS[:, None], -torch.inf)
    normaliser_BT = torch.cat([logits_BTV, scores_BTS], -1).logsumexp(-1)
    copied_BTS = tap((scores_BTS - normaliser_BT[..., None]).exp(), "copy.weights")
    return Cells(logits_BTV, normaliser_BT, copied_BTS, ids_BS)


def gated(
    logits_BTV: Float[Tensor, "B T V"],
    weights_BTS: Float[Tensor, "B T S"],
    gate_BT: Float[Tensor, "B T"],
    ids_BS: Int[Tensor, "B S"],
    again_BT: Float[Tensor, "B T"] | None = None,
) -> Cells:
    """The gate is sigmoid(gate_BT), the share of the vocabulary; the whole of it where there is nothing to look at."""
    logits_BTV, gate_BT = _wide(logits_BTV), _wide(gate_BT)
    anything_BT = weights_BTS.detach().sum(-1) > 0
    share_BT = torch.where(anything_BT, F.logsigmoid(gate_BT), 0.0)
    copied_BTS = tap(weights_BTS * torch.sigmoid(-gate_BT)[..., None], "copy.weights")
    return Cells(logits_BTV, logits_BTV.logsumexp(-1) - share_BT, copied_BTS, ids_BS, again_BT)


class Copied:
    """What a search keeps for copying: each source with its keys, and how much every row has looked at each place."""

    def __init__(self, rows: int, *, beam: int, coverage: bool):
        self.rows, self.beam, self.coverage = rows, beam, coverage
        self.kept = Kept(rows // beam, along=1)
        self.looked = torch.zeros(rows, 0)

    def write(self, source: Original, slots: Tensor | None) -> None:
        """All sources at once, or those of these slots; their rows are cleared apart."""
        self.kept.write((source.states, source.keys, source.ids, source.real), slots)
        if slots is None:
            self.looked = source.states.new_zeros(self.rows, 0, dtype=torch.promote_types(source.states.dtype, torch.float32))

    @property
    def source(self) -> Original:
        """A row of the source for each row that is written."""
        states, keys, ids, real = (tensor.repeat_interleave(self.beam, 0) for tensor in self.kept.tensors)
        return Original(states, keys, ids, real)

    def before(self) -> Float[Tensor, "R S"]:
        """How much was looked at each place of the sources as long as they are now."""
        return F.pad(self.looked, (0, self.kept.tensors[2].shape[1] - self.looked.shape[1]))

    def reorder(self, rows: Int[Tensor, "R"], used: int) -> None:
        self.looked = self.looked[rows]

    def trim(self, length: int) -> None:
        if self.coverage:
            raise UsageError("coverage cannot forget the last words", do="begin the row again")

    def clear(self, rows: Sequence[int]) -> None:
        self.looked = self.looked.index_fill(0, torch.tensor(list(rows), device=self.looked.device), 0.0)


def build_copy(config: JointCopy | PointerGenerator, *, d_memory: int, d_hidden: int, d_input: int) -> JointCopying | GatedCopying:
    """Copying between trunks of these widths."""
    match config:
        case JointCopy():
            return JointCopying(config, d_memory=d_memory, d_hidden=d_hidden)
        case PointerGenerator():
            return GatedCopying(config, d_memory=d_memory, d_hidden=d_hidden, d_input=d_input)
        case _:
            assert_never(config)


def _wide(tensor: Tensor) -> Tensor:
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))

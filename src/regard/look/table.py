"""Tables between tokens: what passes one tap of one head, for all pairs, and the bilinear form that scores words against words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import UsageError
from regard.look.reading import Reading
from regard.look.record import chosen, joined
from regard.look.trace import Kind
from regard.nn.attention.kernels.reference import shared
from regard.nn.attention.multihead import MultiHead
from regard.nn.attention.scores import BilinearScore, Dot, ScaledDot
from regard.nn.attention.slot import Slot
from regard.nn.positions import NoRotation
from regard.nn.tap import STAGES, record
from regard.nn.trunk_transformer import TransformerTrunk


@dataclass(frozen=True, eq=False)
class Table:
    """A number for each token that looks (rows) and each that is looked at (columns)."""

    name: str
    head: int
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Float[np.ndarray, "rows columns"]


@dataclass(frozen=True, eq=False)
class Form:
    """r_ij = x_i B y_j with B = W_Q W_K^T of one head (unscaled), and what kind of matrix B is: a bilinear form, no inner product."""

    table: Table
    matrix: Float[np.ndarray, "D D"]

    @property
    def rank(self) -> int:
        return int(np.linalg.matrix_rank(self.matrix.astype(np.float64), tol=1e-6 * np.linalg.norm(self.matrix, 2)))

    @property
    def asymmetry(self) -> float:
        """|B - B^T| / |B|: 0 where it is symmetric, the root of 2 where nothing of it is."""
        return float(np.linalg.norm(self.matrix - self.matrix.T) / np.linalg.norm(self.matrix))

    @property
    def signs(self) -> tuple[int, int]:
        """How many eigenvalues of its symmetric part are above and below 0: with both, it is no inner product."""
        values = np.linalg.eigvalsh((self.matrix + self.matrix.T).astype(np.float64) / 2)
        small = 1e-6 * np.abs(values).max()
        return int((values > small).sum()), int((values < -small).sum())


def table(reading: Reading, stage: str, *, kind: Kind | None = None, layer: int | None = None, head: int = 0) -> Table:
    """Scores, bias, mask, masked or weights of one head, as the model computes with them."""
    if stage not in STAGES:
        raise UsageError(f"there is no table of {stage}", do=f"choose {', '.join(STAGES)}, form or next")
    kind, slot = reading.slot(kind)
    (number,) = chosen([slot.layers[0] if layer is None else layer], slot.layers, what="layer")
    name = slot.tap(number, stage)
    with record(reading.model, name) as seen:
        reading.log_probs()
    if name not in seen:
        raise UsageError(f"nothing passes {name}", do="this attention has none")
    values_HTS = slot.shown(joined(seen[name]))
    (head,) = [0] if len(values_HTS) == 1 else chosen([head], range(len(values_HTS)), what="head")
    rows, columns = reading.tokens(kind)
    if values_HTS.shape[2] != len(columns):
        names = tuple(f"slot {place}" for place in range(values_HTS.shape[2]))
    else:
        names = tuple(token.text for token in columns)
    values_TS = values_HTS[head].expand(len(rows), -1)
    return Table(name, head, tuple(token.text for token in rows), names, values_TS.float().cpu().numpy())


def form(reading: Reading, *, kind: Kind | None = None, layer: int | None = None, head: int = 0) -> Form:
    """B of one head, and its value for each pair of tokens as they come to this layer."""
    kind, slot = reading.slot(kind)
    (number,) = chosen([slot.layers[0] if layer is None else layer], slot.layers, what="layer")
    where = slot.tap(number, "")
    if not isinstance(slot.parts, TransformerTrunk):
        raise UsageError("only a Transformer's heads are bilinear forms of their words", where=where.rstrip("."))
    block = slot.parts.blocks[number]
    attention, residual = (block.cross[0], block.cross_residual[0]) if kind == "cross" else (block.own, block.own_residual)
    matrix_HDD = forms(attention)
    (head,) = chosen([head], range(len(matrix_HDD)), what="head")
    inward = "normed" if residual.placement == "pre" else "input"
    names = [slot.tap(number, inward), *([f"{reading.slots['enc-self'].trunk}.memory"] if kind == "cross" else [])]
    with record(reading.model, *names) as seen:
        reading.log_probs()
    x_TD, y_SD = (seen[name][0][0].float() for name in (names[0], names[-1]))
    rows, columns = (tuple(token.text for token in tokens) for tokens in reading.tokens(kind))
    values_TS = (x_TD @ matrix_HDD[head] @ y_SD.T).cpu().numpy()
    return Form(Table(slot.tap(number, "form"), head, rows, columns, values_TS), matrix_HDD[head].cpu().numpy())


def forms(attention: Slot) -> Float[Tensor, "H D D"]:
    """W_Q W_K^T of every head, with the matrix of a bilinear score between them."""
    if not isinstance(attention, MultiHead):
        raise UsageError("it has no queries and keys that are known", where="its attention", do="look at its weights, if it shows them")
    where = attention.name
    if not isinstance(attention.score, Dot | ScaledDot | BilinearScore):
        raise UsageError("its score is no bilinear form of queries and keys", where=where)
    if not isinstance(attention.config.rotation, NoRotation):
        raise UsageError("its queries and keys are turned by their positions: the form differs from place to place", where=where)
    query_1HDE, key_1GDE = (
        layer.weight.T.unflatten(1, (-1, attention.d_head)).transpose(0, 1)[None] for layer in (attention.query, attention.key)
    )
    with torch.no_grad():
        left, right = attention.score.basis(query_1HDE, shared(key_1GDE, heads=attention.heads))
        return (left @ right.mT)[0].float()

"""Recurrent layers: h_t = f(x_t, h_{t-1}). Torch's own cells: two biases a gate, and a GRU that resets U h and not, as Cho's does, h.

RNN   h = tanh(W x + b + U h + c)
GRU   r, z = sigmoid(..), n = tanh(W x + b + r (U h + c)), h = (1 - z) n + z h
LSTM  i, f, o = sigmoid(..), g = tanh(..), c = f c + i g, h = o tanh(c)
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

Cell = Literal["rnn", "gru", "lstm"]
KINDS: dict[Cell, type[nn.RNN] | type[nn.GRU] | type[nn.LSTM]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


def vectors_of(cell: Cell) -> tuple[str, ...]:
    """What a cell hands to its next step."""
    return ("h", "c") if cell == "lstm" else ("h",)


class Cells(nn.Module):
    """Layers of one cell. A state is a tensor N x layers x width for each of its vectors."""

    def __init__(self, cell: Cell, d_in: int, *, width: int, layers: int, dropout: float, bidirectional: bool = False):
        super().__init__()
        self.vectors = vectors_of(cell)
        between = dropout if layers > 1 else 0.0
        self.layers = KINDS[cell](d_in, width, layers, batch_first=True, dropout=between, bidirectional=bidirectional)

    def forward(self, x_NTD: Float[Tensor, "N T D"], before: dict[str, Tensor]) -> tuple[Float[Tensor, "N T W"], dict[str, Tensor]]:
        """Go on from a state; what comes out is the top layer's, and the state after the last step."""
        first, *rest = (before[name].transpose(0, 1).to(x_NTD.dtype).contiguous() for name in self.vectors)
        out_NTW, after = self.layers(x_NTD, (first, *rest) if rest else first)
        vectors = zip(self.vectors, after if rest else (after,), strict=True)
        return out_NTW, {name: vector.transpose(0, 1).to(before[name].dtype) for name, vector in vectors}

    def read(self, x_NLD: Float[Tensor, "N L D"], real_NL: Bool[Tensor, "N L"]) -> tuple[Float[Tensor, "N L W"], Float[Tensor, "V K N W"]]:
        """Whole rows, real tokens first: nothing is computed on padding, and each direction ends on its own last token.

        Comes back as the top layer's vectors and the last states: vectors of the cell, layers, rows, both directions side by side.
        """
        lengths = real_NL.sum(1).clamp_min(1).cpu()
        packed = pack_padded_sequence(x_NLD, lengths, batch_first=True, enforce_sorted=False)
        out, last = self.layers(packed)
        out_NLW, _ = pad_packed_sequence(out, batch_first=True, total_length=x_NLD.shape[1])
        last = torch.stack(last if isinstance(last, tuple) else (last,))
        ways = 2 if self.layers.bidirectional else 1
        return out_NLW, last.unflatten(1, (-1, ways)).movedim(2, 3).flatten(3)

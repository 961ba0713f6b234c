"""Lists of ids as one side of a batch, padded or packed: what the laws of models begin with."""

from __future__ import annotations

import torch

from regard.data.batch import Side
from regard.nn.view import Tokens


def padded(rows, *, left=0, right=0):
    width = max(map(len, rows)) + right
    ids, real = torch.zeros(len(rows), left + width, dtype=torch.long), torch.zeros(len(rows), left + width, dtype=torch.bool)
    for i, row in enumerate(rows):
        ids[i, left : left + len(row)] = torch.tensor(row)
        real[i, left : left + len(row)] = True
    return Side(ids, Tokens.padded(real))


def packed(rows):
    return Side(torch.tensor([sum(rows, [])]), Tokens.packed(torch.tensor([len(row) for row in rows])))

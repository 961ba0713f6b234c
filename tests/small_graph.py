"""A small graph of two camps: nodes of one camp share words and are mostly joined to each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np

NODES, WORDS = 60, 12


def write(path: Path) -> Path:
    """The graph as a .npz of plain arrays; ten nodes are learned from, twenty watched, thirty asked about."""
    random = np.random.default_rng(4)
    label = np.arange(NODES) % 2
    rows = np.repeat(np.arange(NODES), 3)
    columns = random.integers(0, WORDS // 2, len(rows)) + (random.random(len(rows)) < 0.75) * label[rows] * (WORDS // 2)
    pairs = np.stack([np.repeat(np.arange(NODES), 3), random.integers(0, NODES // 2, 3 * NODES) * 2 + np.repeat(label, 3)], 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(
        path,
        feat_row=rows,
        feat_col=columns,
        n=np.array([NODES, WORDS]),
        label=label,
        edges=pairs,
        train=np.arange(10),
        val=np.arange(10, 30),
        test=np.arange(30, 60),
    )
    return path

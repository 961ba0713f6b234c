"""Graphs from files: nodes with sparse features and labels, edges, and which nodes are shown, watched and asked about."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from regard.errors import DataError
from regard.nn.edges import Edges
from regard.nn.embed_nodes import Features


@dataclass(frozen=True)
class GraphFile:
    """One graph with its labels, and which of its nodes are learned from, watched and asked about."""

    kind: ClassVar[Literal["graph"]] = "graph"
    path: str
    "The .npz file, relative to the data root."


NAMES = ("feat_row", "feat_col", "n", "label", "edges", "train", "val", "test")


@dataclass(frozen=True, eq=False)
class Graph:
    """One graph, all of which is seen while it is learned; only the labels of `train` are."""

    features: Features
    edges: Edges
    labels: Int[Tensor, "N"]
    train: Int[Tensor, "N_train"]
    valid: Int[Tensor, "N_valid"]
    test: Int[Tensor, "N_test"]

    @property
    def classes(self) -> int:
        return int(self.labels.max()) + 1


def read_graph(path: str | Path, *, loops: bool = True) -> Graph:
    """A .npz of arrays alone: feat_row, feat_col [, feat_value] (where features are not zero), n (nodes, features), label, edges
    (pairs of nodes) and the numbers of the nodes of train, val and test. Each node's features are divided by their sum."""
    arrays = read_arrays(Path(path), NAMES)
    nodes, width = (int(number) for number in arrays["n"])
    if len(arrays["label"]) != nodes:
        raise DataError(f"{nodes} nodes, but {len(arrays['label'])} labels", where=f"{path}: label")
    for name, bound in (("feat_row", nodes), ("feat_col", width), ("train", nodes), ("val", nodes), ("test", nodes)):
        array = arrays[name]
        if len(array) and not 0 <= int(array.min()) <= int(array.max()) < bound:
            raise DataError(f"{int(array.max())} is beyond the {bound} there are", where=f"{path}: {name}")
    if len(arrays["feat_row"]) != len(arrays["feat_col"]):
        raise DataError("feat_row and feat_col differ in length", where=str(path))
    if arrays["edges"].ndim != 2 or arrays["edges"].shape[1] != 2:
        raise DataError(f"edges has the shape {arrays['edges'].shape} and not (edges, 2)", where=str(path))
    rows, columns = (_long(arrays[name]) for name in ("feat_row", "feat_col"))
    values = torch.as_tensor(arrays["feat_value"]) if "feat_value" in arrays else torch.ones(len(rows))
    return Graph(
        features=Features.of(rows, columns, values, nodes=nodes, width=width).shares(),
        edges=Edges.of(_long(arrays["edges"]), nodes, loops=loops),
        labels=_long(arrays["label"]),
        train=_long(arrays["train"]),
        valid=_long(arrays["val"]),
        test=_long(arrays["test"]),
    )


def read_arrays(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The arrays of a .npz file; never a pickle."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise DataError("there is no such file", where=str(path), do="check the path, or give --data-root") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(
            f"it is no whole .npz file of plain arrays ({type(error).__name__})", where=str(path), do="fetch the file again"
        ) from None
    if missing := [name for name in names if name not in arrays]:
        raise DataError(f"it has no array {missing[0]!r}", where=str(path), do=f"give it {', '.join(names)}")
    return arrays


def _long(array: np.ndarray) -> Tensor:
    return torch.as_tensor(array.astype(np.int64))

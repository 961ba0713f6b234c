"""A node of a graph and those around it, as a model of graphs reads them: attention along the edges."""

from __future__ import annotations

from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.graph import read_graph
from regard.data.graph_batch import GraphBatch
from regard.errors import UsageError
from regard.look.reading import Reading, Slot, labels
from regard.look.trace import Kind, Token
from regard.models.graph_classifier import NodeLabeller
from regard.models.saved import Saved
from regard.nn.edges import Edges
from regard.nn.trunk_graph import GraphAttention

MOST = 512  # nodes that are shown


def node(saved: Saved, named: str | Path) -> Reading:
    """FILE:NUMBER, as classify names nodes: what the model says of this node, and who looks at whom as far around it as its hops reach."""
    model = saved.model
    assert isinstance(model, NodeLabeller)
    file, _, number = str(named).rpartition(":")
    if not file or not number.isascii() or not number.isdigit():
        raise UsageError(f"{named} names no node", do="write FILE:NODE, as classify names them")
    if not isinstance(model.config.trunk, GraphAttention):
        raise UsageError("it is made of graph convolutions, which have no attention", where=str(saved.folder))
    graph, place = read_graph(file), int(number)
    if not place < graph.edges.nodes:
        raise UsageError(f"there is no node {place}", where=file, do=f"they are numbered from 0 to {graph.edges.nodes - 1}")
    near_M = around(graph.edges, place, hops=model.config.trunk.layers)
    batch = GraphBatch.of(graph, torch.zeros(0, dtype=torch.long)).to(model.device)
    edges = batch.edges

    def shown(passed: Tensor) -> Float[Tensor, "H M M"]:
        if passed.ndim == 4:  # the dense form
            return passed[0][:, near_M][:, :, near_M]
        where_N = torch.full((edges.nodes,), -1, dtype=torch.long)
        where_N[near_M] = torch.arange(len(near_M))
        rows, columns = where_N[edges.target.cpu()], where_N[edges.source.cpu()]
        kept = (rows >= 0) & (columns >= 0)
        square = passed.new_zeros(passed.shape[1], len(near_M), len(near_M))
        square[:, rows[kept], columns[kept]] = passed[kept.to(passed.device)].T
        return square

    slots: dict[Kind, Slot] = {
        "enc-self": Slot("graph", "", tuple(range(model.config.trunk.layers)), model.trunk, "nodes", shown, lambda x: x[near_M])
    }
    tokens = tuple(Token(f"node {one}") for one in near_M.tolist())
    about = {"model": saved.folder.name}
    return Reading(str(named), model, batch, tokens, (), slots, labels(model.config.labels), about, place=place)


def around(edges: Edges, place: int, *, hops: int) -> Int[Tensor, "M"]:
    """The node first, then those that it hears of within so many hops, nearest first; a hop that is too much to show is left out."""
    found = [place]
    for _ in range(hops):
        known = torch.zeros(edges.nodes, dtype=torch.bool)
        known[found] = True
        more = torch.unique(edges.source[known[edges.target]])
        new = [one for one in more.tolist() if not known[one]]
        if len(found) + len(new) > MOST:
            break
        found += new
    return torch.tensor(found)

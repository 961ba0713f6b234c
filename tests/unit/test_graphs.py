"""Graphs: edges, sparse features, attention to neighbours edge by edge and densely, graph convolution, and files that are wrong."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from regard.data.graph import read_graph
from regard.errors import DataError
from regard.nn.attention.neighbours import NeighbourAttention, NeighbourMean
from regard.nn.edges import Edges
from regard.nn.embed_nodes import Features, NodeEmbedding
from regard.nn.tap import record
from regard.nn.trunk_graph import GraphAttention, GraphConvolution, GraphTrunk

NODES, HEADS, WIDTH = 11, 3, 5


def graph(nodes: int = NODES, *, loops: bool = True) -> Edges:
    """Eleven nodes and seventeen edges; the last node is joined to nobody."""
    pairs = torch.randint(0, nodes - 1, (17, 2), generator=torch.Generator().manual_seed(5))
    return Edges.of(pairs, nodes, loops=loops)


def attention(form: str = "edges", *, heads: int = HEADS, width: int = WIDTH) -> NeighbourAttention:
    torch.manual_seed(7)
    return NeighbourAttention(heads=heads, width=width, slope=0.2, dropout=0.0, form=form, name="graph.0")  # type: ignore[arg-type]


def test_a_pair_counts_in_both_directions_and_once():
    edges = Edges.of(torch.tensor([[0, 1], [1, 0], [0, 1], [2, 2]]), 4)
    assert sorted(zip(edges.target.tolist(), edges.source.tolist())) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (3, 3)]
    bare = Edges.of(torch.tensor([[0, 1]]), 3, loops=False)
    assert sorted(zip(bare.target.tolist(), bare.source.tolist())) == [(0, 1), (1, 0)]


def test_an_edge_to_nowhere_is_an_error():
    with pytest.raises(DataError, match="names node 4, but there are 4"):
        Edges.of(torch.tensor([[0, 4]]), 4)


def test_attention_by_hand():
    """Two nodes joined, one head of width 1: scores 2 h_i - 3 h_j through LeakyReLU, softmax over oneself and the other."""
    layer = attention(heads=1, width=1)
    with torch.no_grad():
        layer.score.query_HE.fill_(2.0)
        layer.score.key_HE.fill_(-3.0)
    out = layer(torch.tensor([[1.0], [2.0]]), Edges.of(torch.tensor([[0, 1]]), 2))

    def leaky(x: float) -> float:
        return x if x > 0 else 0.2 * x

    own, other = math.exp(leaky(2 - 3)), math.exp(leaky(2 - 6))
    assert out[0].item() == pytest.approx((own * 1 + other * 2) / (own + other), abs=1e-6)
    own, other = math.exp(leaky(4 - 6)), math.exp(leaky(4 - 3))
    assert out[1].item() == pytest.approx((own * 2 + other * 1) / (own + other), abs=1e-6)


@pytest.mark.parametrize("loops", [True, False])
def test_edge_by_edge_equals_attention_under_the_adjacency_pattern(loops: bool):
    edges, x = graph(loops=loops), torch.randn(NODES, HEADS * WIDTH, dtype=torch.float64)
    outs, gradients = [], []
    for form in ("edges", "dense"):
        layer, values = attention(form).double(), x.clone().requires_grad_()
        out = layer(values, edges)
        (out * torch.arange(out.numel(), dtype=torch.float64).view_as(out).sin()).sum().backward()
        outs.append(out)
        gradients.append([values.grad, layer.score.query_HE.grad, layer.score.key_HE.grad])
    torch.testing.assert_close(outs[0], outs[1])
    for sparse, dense in zip(*gradients):
        torch.testing.assert_close(sparse, dense)


def test_an_isolated_node_has_its_own_row_by_its_loop_and_zeros_without():
    x = torch.randn(NODES, HEADS * WIDTH)
    torch.testing.assert_close(attention()(x, graph())[-1], x[-1].view(HEADS, WIDTH))
    for form in ("edges", "dense"):
        assert attention(form)(x, graph(loops=False))[-1].abs().max() == 0


def test_a_graph_without_edges_leaves_every_node_to_itself():
    nobody = Edges.of(torch.zeros(0, 2, dtype=torch.long), NODES)
    x = torch.randn(NODES, HEADS * WIDTH)
    torch.testing.assert_close(attention()(x, nobody).flatten(1), x)
    torch.testing.assert_close(NeighbourMean()(x, nobody), x)


def test_scores_as_large_as_they_come_give_no_nan():
    edges = graph()
    layer = attention()
    out = layer(torch.full((NODES, HEADS * WIDTH), 1e4), edges)
    assert out.isfinite().all()
    torch.testing.assert_close(edges.sum(edges.softmax(torch.randn(len(edges.source), HEADS) * 1e4)), torch.ones(NODES, HEADS))


def test_convolution_is_the_normalised_adjacency():
    edges, x = graph(), torch.randn(NODES, 7)
    adjacency = edges.adjacency().float()
    root = torch.diag(adjacency.sum(1).rsqrt())
    torch.testing.assert_close(NeighbourMean()(x, edges), root @ adjacency @ root @ x)


@pytest.mark.parametrize(
    "config", [GraphAttention(heads=3, d_head=5), GraphConvolution(width=13), GraphAttention(layers=3), GraphAttention(layers=1)]
)
def test_renaming_the_nodes_renames_the_answers(config):
    torch.manual_seed(3)
    trunk = GraphTrunk(config, 4, name="graph").eval()
    x, order = torch.randn(NODES, trunk.d_in), torch.randperm(NODES)
    edges = graph()
    place = torch.argsort(order)  # node n is now called place[n]
    renamed = Edges(place[edges.source], place[edges.target], NODES)
    torch.testing.assert_close(trunk(x[order], renamed), trunk(x, edges)[order], atol=1e-5, rtol=1e-4)


def test_what_is_two_hops_away_is_seen_by_two_hops_and_not_by_one():
    chain = Edges.of(torch.tensor([[0, 1], [1, 2], [2, 3]]), 4)
    for layers in (1, 2):
        trunk = GraphTrunk(GraphAttention(layers=layers), 3, name="graph").eval()
        x = torch.randn(4, trunk.d_in, requires_grad=True)
        trunk(x, chain)[0].sum().backward()
        assert (x.grad.abs().sum(1) > 0).tolist() == [place <= layers for place in range(4)]


def test_the_embedding_is_a_linear_map_of_sparse_rows():
    dense = torch.randn(NODES, 13) * (torch.rand(NODES, 13) < 0.3)
    dense[4] = 0  # a node without a single feature
    features = Features.dense(dense)
    embedding = NodeEmbedding(13, 7, dropout=0.0, name="nodes")
    torch.testing.assert_close(embedding(features), dense @ embedding.weight)
    assert embedding(features)[4].abs().max() == 0
    rest = torch.arange(NODES) != 4
    shares = embedding(Features.dense(dense.abs()).shares())[rest]
    torch.testing.assert_close(shares, F.normalize(dense.abs()[rest], p=1, dim=1) @ embedding.weight)


def test_weights_of_the_edges_can_be_recorded():
    trunk = GraphTrunk(GraphAttention(), 3, name="graph").eval()
    edges = graph()
    with record(trunk, "graph.*.weights") as seen:
        trunk(torch.randn(NODES, trunk.d_in), edges)
    assert [seen[f"graph.{layer}.weights"][0].shape for layer in (0, 1)] == [(len(edges.source), 8), (len(edges.source), 1)]


def arrays(**changed) -> dict[str, np.ndarray]:
    plain = {
        "feat_row": [0, 0, 1, 2],
        "feat_col": [0, 4, 1, 2],
        "n": [4, 5],
        "label": [0, 1, 2, 1],
        "edges": [[0, 1], [1, 2]],
        "train": [0, 1],
        "val": [2],
        "test": [3],
    }
    return {name: np.array(value) for name, value in (plain | changed).items() if value is not None}


def test_a_graph_is_read(tmp_path: Path):
    np.savez(tmp_path / "g.npz", **arrays())
    graph = read_graph(tmp_path / "g.npz")
    assert (graph.features.nodes, graph.features.width, graph.classes) == (4, 5, 3)
    assert graph.features.values.tolist() == [0.5, 0.5, 1.0, 1.0]
    assert graph.test.tolist() == [3]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"label": [0, 1]}, "4 nodes, but 2 labels"),
        ({"edges": [[0, 9]]}, "names node 9"),
        ({"edges": [0, 1]}, "edges has the shape"),
        ({"test": [4]}, "test: 4 is beyond the 4"),
        ({"feat_col": [0, 5, 1, 2]}, "feat_col: 5 is beyond the 5"),
        ({"feat_col": [0, 4, 1]}, "differ in length"),
        ({"train": None}, "no array 'train'"),
    ],
)
def test_a_wrong_graph_is_named(tmp_path: Path, changed: dict, said: str):
    np.savez(tmp_path / "g.npz", **arrays(**changed))
    with pytest.raises(DataError, match=said):
        read_graph(tmp_path / "g.npz")


def test_a_file_cut_short_is_named(tmp_path: Path):
    np.savez(tmp_path / "g.npz", **arrays())
    (tmp_path / "g.npz").write_bytes((tmp_path / "g.npz").read_bytes()[:300])
    with pytest.raises(DataError, match=r"g\.npz: it is no whole \.npz"):
        read_graph(tmp_path / "g.npz")
    with pytest.raises(DataError, match="no such file"):
        read_graph(tmp_path / "absent.npz")

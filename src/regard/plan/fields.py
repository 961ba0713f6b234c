"""What models of pictures, recordings, graphs and points cost. A load's `source` is what is read: patches, frames, nodes, points."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import assert_never

from regard.models.configs import PointerNetwork
from regard.models.graph_classifier import GraphClassifier
from regard.models.image_classifier import ImageClassifier, VisionTransformer
from regard.models.pointer_network import COORDINATES
from regard.models.speech import Speech, SpeechTransformer
from regard.nn.embed_patches import PatchEmbedding
from regard.nn.stages_image import ImageStages
from regard.nn.stages_speech import FrameStages
from regard.nn.trunk_graph import GraphAttention, GraphConvolution, width_in
from regard.plan.attention import Heads, score_flops, score_parameters
from regard.plan.part import Load, Part
from regard.plan.trunks import handed, positions, trunk, width_out

NEIGHBOURS = 5  # edges of a node, itself included, where nobody says how many there are; Cora has 4.9
BATCH_NORM = LAYER_NORM = 2  # parameters for each channel


def pictures(config: ImageClassifier, load: Load) -> Part:
    """Patches or stages of convolutions; the load has pictures, and what each becomes follows from its size."""
    body, width, (height, across) = config.body, config.d_model, config.size
    end = labels(width, len(config.labels), load.batch, hidden=config.hidden)
    told = Part("tokenisation", shape=f"({load.batch}, {config.channels}, {height}, {across}) pixels", note="pictures as they are")
    match body:
        case VisionTransformer():
            embedding, places = patched(body.embedding, width, config.channels, config.size, load, first=body.pool == "first")
            inside = trunk(body.encoder, width, replace(load, source=places), name="encoder", causal=False, decodes=False)
            return Part(config.kind, parts=(told, embedding, Part("blocks", parts=(inside,)), end))
        case ImageStages():
            widths = [config.channels, *(max(8, width >> (body.stages - 1 - stage)) for stage in range(body.stages))]
            stages = []
            for number, (inward, outward) in enumerate(pairwise(widths)):
                size = sum(9 * channels * outward + BATCH_NORM * outward for channels in (inward, outward))
                places = load.batch * height * across
                stages.append(
                    Part(
                        f"stage{number}",
                        shape=f"({load.batch}, {outward}, {height}, {across})",
                        parameters=size,
                        maps=2 * size * places,
                        kept=2 * 2 * outward * places * load.width,
                        note="two convolutions of 3 x 3, batch norm",
                    )
                )
                height, across = -(-height // 2), -(-across // 2)
            return Part(config.kind, parts=(told, Part("embedding", note="none: pixels"), Part("blocks", parts=tuple(stages)), end))
        case _:
            assert_never(body)


def patched(config: PatchEmbedding, width: int, channels: int, size: tuple[int, int], load: Load, *, first: bool) -> tuple[Part, int]:
    """Patches through a map, with learned places; and how many vectors they are. `first`: one more that stands for the whole."""
    patch = config.patch
    grid = -(-size[0] // patch) * -(-size[1] // patch)
    places, map_ = grid + first, (channels * patch**2 + 1) * width
    part = Part(
        "embedding",
        shape=f"({load.batch}, {places}, {width})",
        parameters=map_ + places * width + first * width,
        maps=2 * map_ * grid * load.batch,
        kept=load.batch * places * (width if config.dropout else 0),
        note=f"patches of {patch} x {patch}{', and one for the class' if first else ''}; learned places",
    )
    return part, places


def recordings(config: Speech, load: Load) -> Part:
    """Frames, made fewer by convolutions; the load's `source` counts frames."""
    body, width, mels, frames = config.body, config.d_model, config.features.mels, load.source
    told = Part("tokenisation", shape=f"({load.batch}, {frames}, {mels}) frames", note=f"log-mel spectrum of {mels} bands")
    layers, kernel = [], 0
    match body:
        case SpeechTransformer(embedding=embedding):
            between, kernel = embedding.width or 2 * width, embedding.kernel
            inward = [mels, *[between // 2] * (embedding.convolutions - 1)]
            outward = [*[between] * (embedding.convolutions - 1), 2 * width]
            for number, (d_in, d_out) in enumerate(zip(inward, outward, strict=True)):
                frames = -(-frames // embedding.stride)
                layers.append(convolution(f"convolution{number}", d_in, d_out, kernel, load.batch, frames, load.width, note="gated"))
            extra = positions(embedding.positions, width)
            embedded = Part("embedding", parts=(*layers, Part("positions", parameters=extra, note=embedding.positions.kind)))
            inside = trunk(body.encoder, width, replace(load, source=frames), name="encoder", causal=False, decodes=False)
            blocks = Part("blocks", parts=(inside,))
        case FrameStages():
            for number in range(2 * body.stages):
                if number and number % 2 == 0:
                    frames = -(-frames // 2)
                d_in = width if number else mels
                one = convolution(f"convolution{number}", d_in, width, body.kernel, load.batch, frames, load.width, note="layer norm")
                layers.append(replace(one, parameters=one.parameters + LAYER_NORM * width))
            embedded, blocks = Part("embedding", note="none: frames"), Part("blocks", parts=tuple(layers))
        case _:
            assert_never(body)
    rows, classes = (load.batch, len(config.labels)) if config.output == "label" else (load.batch * frames, len(config.labels) + 1)
    return Part(config.kind, parts=(told, embedded, blocks, labels(width, classes, rows)))


def graph(config: GraphClassifier, load: Load) -> Part:
    """Hops over the nodes of one graph; the load's `source` counts nodes. The last hop ends on the labels."""
    hops, classes, nodes = config.trunk, len(config.labels), load.source
    edges, d_in = NEIGHBOURS * nodes, width_in(hops, classes)
    map_ = config.features * d_in
    told = Part("tokenisation", shape=f"({nodes}, {config.features}) features", note="nodes as they are; their zeros cost nothing")
    embedded = Part("embedding", shape=f"({nodes}, {d_in})", parameters=map_, maps=2 * map_ * nodes, note="an upper bound: all features")
    layers = []
    for layer in range(hops.layers):
        last = layer == hops.layers - 1
        match hops:
            case GraphAttention():
                heads, width = (hops.last_heads, classes) if last else (hops.heads, hops.d_head)
                inward, through, outward, own = hops.first, heads * width, classes if last else hops.first, 2 * heads * width
                core = edges * heads * (2 * width + 4)  # the weighted sum, and a score and its share of the softmax
            case GraphConvolution():
                inward = hops.width
                through = outward = classes if last else hops.width
                own, core = 0, 2 * edges * through
            case _:
                assert_never(hops)
        project = inward * through if layer else 0
        layers.append(
            Part(
                f"hop{layer}",
                shape=f"({nodes}, {outward})",
                parameters=project + own + outward,
                maps=2 * (project + own + outward) * nodes,
                core=core,
                kept=load.width * (2 * nodes * through + (edges * own // max(1, outward))),
                note=f"{hops.kind}, {NEIGHBOURS} edges a node",
            )
        )
    end = Part("output", shape=f"({nodes}, {classes})", note="the last hop")
    return Part(config.kind, parts=(told, embedded, Part("blocks", parts=tuple(layers)), end))


def points(config: PointerNetwork, load: Load) -> Part:
    """An encoder over the points, a decoder over the answer, and a pointer; both sides of the load count points."""
    width, read = config.d_model, handed(config.encoder, config.d_model)
    out, rows = width_out(config.decoder, width, [read]), load.batch * load.target
    map_ = COORDINATES * width + width
    told = Part("tokenisation", shape=f"({load.batch}, {load.source}, {COORDINATES}) points", note="points as they are")
    embedded = Part(
        "embedding", shape=f"({load.batch}, {load.source}, {width})", parameters=map_ + width, maps=2 * map_ * load.batch * load.source
    )
    blocks = Part(
        "blocks",
        parts=(
            trunk(config.encoder, width, load, name="encoder", causal=False, decodes=False),
            trunk(config.decoder, width, load, name="decoder", causal=True, memories=[read], decodes=True),
        ),
    )
    if config.places:
        size = (out + 1) * (config.places + 1)
        end = Part(
            "output", shape=f"({load.batch}, {load.target}, {config.places + 1})", parameters=size, maps=2 * size * rows, step=2 * size
        )
        return Part(config.kind, parts=(told, embedded, blocks, replace(end, note="a table of places")))
    shape, keys = Heads(1, 1, out), load.source + 1
    scored = score_flops(config.score, shape, d_key=read.width)
    pair = 2 * read.width + scored.pair
    end = Part(
        "output",
        shape=f"({load.batch}, {load.target}, {keys})",
        parameters=score_parameters(config.score, shape, d_key=read.width) + read.width,
        maps=rows * scored.query + load.batch * keys * scored.key,
        core=rows * keys * pair,
        step=scored.query + keys * pair,
        note=f"{config.score.kind} score of every point, and of the end",
    )
    return Part(config.kind, parts=(told, embedded, blocks, end))


def convolution(name: str, d_in: int, d_out: int, kernel: int, batch: int, places: int, width: int, *, note: str) -> Part:
    size = kernel * d_in * d_out + d_out
    shape = f"({batch}, {places}, {d_out})"
    return Part(name, shape=shape, parameters=size, maps=2 * size * batch * places, kept=2 * batch * places * d_out * width, note=note)


def labels(width: int, classes: int, rows: int, *, hidden: int = 0) -> Part:
    """The scores of labels, for so many rows of a batch."""
    shapes = [(width, hidden), (hidden, classes)] if hidden else [(width, classes)]
    size = sum(inward * outward + outward for inward, outward in shapes)
    return Part("output", shape=f"({rows}, {classes})", parameters=size, maps=2 * size * rows, note=f"one of {classes} labels")

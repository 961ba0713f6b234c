"""What residuals and norms do for a deep stack: the gradient at each layer, and how fast a task is learned, with and without them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.nn.trunk_transformer import Transformer

WIDTH, HEADS, LETTERS, LENGTH, BATCH, RATE, CAP = 32, 2, 12, 10, 32, 1e-3, 4.0
VARIANTS = ("pre-norm", "post-norm", "batch norm", "no norm", "no residual", "neither")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--layers", type=int, default=12, metavar="N", help="blocks of the stack (12)")
    parser.add_argument("--steps", type=int, default=200, metavar="N", help="steps of learning; 0: the gradients alone (200)")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="draws that are averaged (3)")
    parser.add_argument("--figure", metavar="FILE", help="draw the gradient by depth: .svg, .pdf or .png")
    parser.add_argument("--curves", metavar="FILE", help="draw the loss by step")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    from statistics import fmean

    from regard.errors import UsageError

    if min(arguments.layers, arguments.seeds) < 1 or arguments.steps < 0:
        raise UsageError("layers and seeds are 1 or more, steps 0 or more")
    seeds = range(1, arguments.seeds + 1)
    gradients, losses = {}, {}
    for variant in VARIANTS:
        found = [gradient_by_depth(stack(variant, arguments.layers), seed=seed) for seed in seeds]
        gradients[variant] = [fmean(column) for column in zip(*found, strict=True)]
        learned = [losses_of(stack(variant, arguments.layers), steps=arguments.steps, seed=seed) for seed in seeds]
        losses[variant] = [fmean(column) for column in zip(*learned, strict=True)]
    draw(arguments.figure, "Length of the gradient at each layer, before any learning", gradients, first=0, logarithmic=True)
    if arguments.steps:
        capped = {variant: [min(loss, CAP) for loss in line] for variant, line in losses.items()}
        draw(
            arguments.curves,
            f"Loss of writing backwards, {arguments.layers} layers (cut off at {CAP:g})",
            capped,
            first=1,
            logarithmic=False,
        )
    told = {
        variant: {"gradient_first_layer": f"{norms[0]:.3g}", "gradient_last_layer": f"{norms[-1]:.3g}"}
        | ({"loss": round(fmean(losses[variant][-20:]), 4)} if arguments.steps else {})
        for variant, norms in gradients.items()
    }
    return {**told, "layers": arguments.layers, "steps": arguments.steps, "seeds": arguments.seeds}


def stack(variant: str, layers: int) -> Transformer:
    """The encoder of this name."""
    from regard.nn.feedforward import FeedForward
    from regard.nn.norms import BatchNorm, LayerNorm, NoNorm
    from regard.nn.trunk_transformer import Transformer

    return Transformer(
        layers=layers,
        heads=HEADS,
        dropout=0.0,
        feed_forward=FeedForward(d_ff=4 * WIDTH),
        placement="pre" if variant in ("pre-norm", "batch norm", "no norm") else "post",
        norm=BatchNorm() if variant == "batch norm" else NoNorm() if variant in ("no norm", "neither") else LayerNorm(),
        skip=variant not in ("no residual", "neither"),
    )


def gradient_by_depth(encoder: Transformer, *, seed: int) -> list[float]:
    """The length of the loss's gradient at what leaves each layer of a fresh model."""
    import torch

    from regard.nn.tap import replace

    model, objective = fresh(encoder, seed=seed)
    seen: dict[int, float] = {}

    def watched(layer: int, stream: torch.Tensor) -> torch.Tensor:
        stream.register_hook(lambda gradient: seen.__setitem__(layer, float(gradient.norm())))
        return stream

    from contextlib import ExitStack
    from functools import partial

    with ExitStack() as taps:
        for layer in range(encoder.layers):
            taps.enter_context(replace(model, f"encoder.{layer}.stream", partial(watched, layer)))
        objective(batch(torch.Generator().manual_seed(seed))).backward()
    return [seen[layer] for layer in range(encoder.layers)]


def losses_of(encoder: Transformer, *, steps: int, seed: int) -> list[float]:
    """The mean loss of each step of learning to write letters backwards, every place at once."""
    import torch

    model, objective = fresh(encoder, seed=seed)
    optimiser, noise, found = torch.optim.Adam(model.parameters(), RATE), torch.Generator().manual_seed(seed), []
    for _ in range(steps):
        some = batch(noise)
        optimiser.zero_grad()
        loss = objective(some) / some.target_tokens
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        found.append(float(loss.detach()))
    return found


def fresh(encoder: Transformer, *, seed: int):
    """A tagger with this encoder, and model and loss as one."""
    import torch

    from regard.data.marks import FIRST
    from regard.models.build import tagger
    from regard.models.configs import Tagger
    from regard.nn.embed import Embedding
    from regard.train.loss import CrossEntropy, Objective

    torch.manual_seed(seed)
    labels = tuple(map(str, range(LETTERS)))
    config = Tagger(d_model=WIDTH, encoder=encoder, embedding=Embedding(dropout=0.0), vocabulary=FIRST + LETTERS, labels=labels)
    model = tagger(config).train()
    torch.nn.init.normal_(model.output.outer.weight, std=WIDTH**-0.5)  # type: ignore[union-attr]  # it begins at zero, which stops all gradients
    return model, Objective(model, CrossEntropy(smoothing=0.0))  # type: ignore[arg-type]


def batch(noise: Any):
    """Letters, and at each place the one that stands there from the end."""
    import torch

    from regard.data.batch import Side
    from regard.data.marks import FIRST
    from regard.data.text_batch import TextBatch
    from regard.nn.view import Tokens

    letters = torch.randint(LETTERS, (BATCH, LENGTH), generator=noise)
    return TextBatch(Side(letters + FIRST, Tokens.plain(BATCH, LENGTH)), letters.flip(1), tuple(range(BATCH)), letters.numel())


def draw(path: str | None, title: str, lines: Mapping[str, Sequence[float]], *, first: int, logarithmic: bool) -> None:
    from regard.look.plot import plot
    from regard.look.printing import write_figure

    if path:
        points = {name: [(float(place), value) for place, value in enumerate(line, first)] for name, line in lines.items()}
        write_figure(path, plot(title, points, across="steps" if first else "layer", logarithmic=logarithmic))

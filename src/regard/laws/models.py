"""Laws of whole models that have the mechanism in them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.config.toml import dumps, structure, unstructure
from regard.data.batch import IGNORED, PairBatch, Side
from regard.data.marks import EOS
from regard.data.text_batch import TextBatch
from regard.laws.law import NotApplicable, Verdict, equal, law
from regard.laws.subject import D_MODEL, Subject, built
from regard.models.configs import Model
from regard.models.saved import load_model, save_model
from regard.nn.cache import Growing
from regard.nn.tap import record
from regard.nn.view import Tokens, View
from regard.train.loss import CrossEntropy, Objective

TEXTS = [[1, 12, 7, 5], [1, 6, 8, 9, 10, 11, 3], [1, 4]]
Rows = list[list[int]]


def padded(rows: Rows, *, left: int = 0, right: int = 0) -> Side:
    width = left + max(map(len, rows)) + right
    ids = torch.tensor([[0] * left + row + [0] * (width - left - len(row)) for row in rows])
    real = torch.tensor([[left <= place < left + len(row) for place in range(width)] for row in rows])
    return Side(ids, Tokens.padded(real))


def packed(rows: Rows) -> Side:
    return Side(torch.tensor([sum(rows, [])]), Tokens.packed(torch.tensor([len(row) for row in rows])))


def texts(side: Side, rows: Rows) -> TextBatch:
    labels = torch.full_like(side.ids, IGNORED)
    labels[side.tokens.real] = torch.tensor([token for row in rows for token in (*row[1:], EOS)])
    return TextBatch(side, labels, tuple(range(len(rows))), int((labels != IGNORED).sum()))


def layouts_of(rows: Rows) -> dict[str, Side]:
    return {"padded": padded(rows), "padded on both sides": padded(rows, left=2, right=1), "packed": packed(rows)}


def by_text(found: Tensor, tokens: Tokens) -> list[Tensor]:
    """The real rows of each text, whatever the layout."""
    documents = tokens.documents + torch.arange(len(tokens.real))[:, None]
    return [found[tokens.real & (documents == number)] for number in range(len(TEXTS))]


@law("texts packed end to end, padded, and alone get the same scores from a language model", "writer")
def writer_layouts(subject: Subject) -> Verdict:
    model = built(subject.writer())
    alone = [model.output(model(texts(padded([row]), [row])))[0] for row in TEXTS]
    for name, side in layouts_of(TEXTS).items():
        for one, among in zip(alone, by_text(model.output(model(texts(side, TEXTS))), side.tokens), strict=True):
            if (verdict := equal(among, one)) is not True:
                return f"{name}: {verdict}"
    return True


@law("so do sources in an encoder", "encoder")
def encoder_layouts(subject: Subject) -> Verdict:
    model = built(subject.translator())
    alone = [model.encode(padded([row]))[0].states[0] for row in TEXTS]
    for name, side in layouts_of(TEXTS).items():
        for one, among in zip(alone, by_text(model.encode(side)[0].states, side.tokens), strict=True):
            if (verdict := equal(among, one)) is not True:
                return f"{name}: {verdict}"
    return True


def part(tokens: Tokens, start: int, end: int) -> Tokens:
    return Tokens(tokens.positions[:, start:end], tokens.documents[:, start:end], tokens.real[:, start:end])


@law("one token after the other from a cache gives what the whole row gives", "writer")
def one_past(subject: Subject) -> Verdict:
    model, side = built(subject.writer()), padded(TEXTS)
    whole, state = model.output(model(texts(side, TEXTS))), model.new_state(3, 9)
    for start, end in ((0, 3), (3, 4), (4, 7)):
        facts = part(side.tokens, start, end)
        found = model.output(model.step(side.ids[:, start:end], facts, state, longest=end))
        if (verdict := equal(found[facts.real], whole[:, start:end][facts.real])) is not True:
            return f"from token {start} on {verdict}"
    return True


@law("a beam may go on from another beam's past, and take a token back", "writer")
def reordered(subject: Subject) -> Verdict:
    model, rows = built(subject.writer()), torch.tensor([[1, 4, 5, 6], [1, 7, 8, 9], [1, 10, 11, 12]])
    state, facts = model.new_state(3, 9), Tokens.plain(3, 4)
    model.step(rows[:, :3], part(facts, 0, 3), state, longest=3)
    state.reorder(torch.tensor([1, 1, 2]))
    if all(isinstance(layer, Growing) for layer in state.layers):
        model.step(torch.full((3, 1), 7), part(facts, 3, 4), state, longest=4)
        state.trim(3)
    last = model.output(model.step(rows[:, 3:], part(facts, 3, 4), state, longest=4))[:, 0]
    wanted = [[1, 7, 8, 6], [1, 7, 8, 9], [1, 10, 11, 12]]
    return equal(last, torch.stack([model.output(model(texts(padded([row]), [row])))[0, 3] for row in wanted]))


@law("nothing comes from the future in a decoder", "writer")
def no_future(subject: Subject) -> Verdict:
    model = built(subject.writer())
    x = torch.randn(1, 5, D_MODEL, dtype=torch.double, requires_grad=True)
    (gradient,) = torch.autograd.grad(model.trunk(x, View(Tokens.plain(1, 5)))[0, 2].square().sum(), x)
    return not bool(gradient[0, 3:].any())


def objective(subject: Subject) -> tuple[nn.Module, Objective]:
    model = built(subject.writer())
    return model, Objective(model, CrossEntropy(smoothing=0.0))


def gradients(subject: Subject, rows: list[Rows]) -> dict[str, Tensor | None]:
    """Of the loss of these batches, one after the other."""
    model, goal = objective(subject)
    for some in rows:
        goal(texts(padded(some), some)).backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


@law("gradients are numbers, and reach every parameter", "writer")
def learnable(subject: Subject) -> Verdict:
    found = gradients(subject, [TEXTS])
    wrong = [name for name, gradient in found.items() if gradient is None or not bool(gradient.isfinite().all())]
    return f"not {wrong[0]}" if wrong else True


@law("the gradient of a batch is the sum of those of its parts", "writer")
def accumulation(subject: Subject) -> Verdict:
    whole, parts = gradients(subject, [TEXTS]), gradients(subject, [[row] for row in TEXTS])
    for name, gradient in whole.items():
        other = parts[name]
        if gradient is not None and other is not None and (verdict := equal(gradient, other)) is not True:
            return f"{name}: {verdict}"
    return True


@law("the same seed gives the same model, to the bit", "writer")
def repeatable(subject: Subject) -> Verdict:
    one, other = (built(subject.writer()).state_dict() for _ in range(2))
    return all(torch.equal(one[name], other[name]) for name in one)


@law("regard look sees its weights in every layer, and they do not change the answer", "writer")
def visible(subject: Subject) -> Verdict:
    model, side = built(subject.writer()), padded(TEXTS)
    layers = model.trunk.own_maps
    if not layers:
        raise NotApplicable("it says that it has no maps over the tokens")
    unseen = model(texts(side, TEXTS))
    with record(model, "trunk.*.own.weights") as seen:
        watched = model(texts(side, TEXTS))
    if sorted(seen) != [f"trunk.{layer}.own.weights" for layer in layers]:
        return f"only {', '.join(sorted(seen)) or 'nothing'} was seen"
    return equal(watched[side.tokens.real], unseen[side.tokens.real])


@law("its configuration comes back from TOML", "config")
def written_down(subject: Subject) -> Verdict:
    for config in (subject.writer(), subject.translator()):
        if structure(Model, unstructure(config), where="model") != config or not dumps(config):
            return "it is another one"
    return True


@law("saved and loaded, the model is the same", "writer")
def saved(subject: Subject) -> Verdict:
    config = subject.writer()
    model: Any = built(config).float()
    side = padded(TEXTS)
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder) / "model", model, config, tokenizers={}, tables={}, readme="")
        again: Any = load_model(Path(folder) / "model").model
    batch = texts(side, TEXTS)
    return equal(again(batch)[side.tokens.real], model(batch)[side.tokens.real])


@law("a translator that has it in its encoder learns from its loss", "encoder")
def translates(subject: Subject) -> Verdict:
    model = built(subject.translator())
    source, target = padded([row[1:] for row in TEXTS]), padded(TEXTS)
    batch = PairBatch(source, target, texts(target, TEXTS).labels, (), 0, int(target.tokens.real.sum()))
    Objective(model, CrossEntropy(smoothing=0.0))(batch).backward()
    found = [parameter.grad for parameter in model.encoder.parameters()]
    return all(gradient is not None and bool(gradient.isfinite().all()) for gradient in found)

"""Experts: goldens of capacity and losses, routers by hand, pads and full experts, balance that is learned, parameters that are counted."""

import math

import pytest
import torch

import small_run
from regard.errors import UsageError
from regard.models.build import build
from regard.models.configs import EncoderDecoder
from regard.nn.experts import Experts, NoisyTopK, Routed, Switch, TopTwo, balance, capacity, uneven
from regard.nn.feedforward import FeedForward
from regard.nn.trunk_transformer import Transformer
from regard.nn.view import Tokens
from regard.plan.models import model_parts
from regard.plan.part import Load

D, E = 5, 4


def layer(router, *, count: int = E, d_ff: int = 7) -> Routed:
    torch.manual_seed(2)
    made = Routed(Experts(count, router, FeedForward(d_ff=d_ff)), D, name="block.experts")
    torch.nn.init.normal_(made.router.weight)
    return made


def rows(*lengths: int) -> Tokens:
    return Tokens.padded(torch.arange(max(lengths)) < torch.tensor(lengths)[:, None])


def test_goldens():
    assert (capacity(10, 4, 1.0), capacity(10, 4, 1.25)) == (3, 4)
    assert uneven(torch.tensor([2.0, 1, 1, 0])).item() == pytest.approx(0.5)
    even = torch.full((8, E), 1 / E)
    assert balance(even, torch.arange(8) % E, torch.ones(8, dtype=torch.bool)).item() == pytest.approx(1)
    padded = torch.arange(8) < 4  # what is padding enters no statistic
    assert balance(even, torch.arange(8) % E, padded).item() == pytest.approx(1)
    one = torch.nn.functional.one_hot(torch.zeros(8, dtype=torch.long), E).float()
    assert balance(one, torch.zeros(8, dtype=torch.long), torch.ones(8, dtype=torch.bool)).item() == pytest.approx(E)


@pytest.mark.parametrize("router", [NoisyTopK(chosen=2), Switch(), TopTwo()], ids=lambda one: one.kind)
def test_each_token_gets_the_weighted_sum_of_its_experts(router):
    made, x, tokens = layer(router).eval(), torch.randn(2, 3, D), rows(3, 2)
    out = made(x, tokens)
    assert made.fine is None and (out[1, 2] == 0).all()  # padding has no expert
    for b, t in ((0, 0), (0, 2), (1, 1)):
        scores = made.router.weight @ x[b, t]
        shares = scores.softmax(0)
        order = scores.argsort(descending=True)[: made.config.chosen]
        gates = {"noisy-top-k": scores[order].softmax(0), "switch": shares[order], "top-2": shares[order] / shares[order].sum()}
        expected = sum(gate * made.experts[number](x[b, t]) for gate, number in zip(gates[router.kind], order.tolist()))
        torch.testing.assert_close(out[b, t], expected)


def test_a_full_expert_lets_tokens_pass_and_padding_takes_no_room():
    made = layer(Switch(capacity=2.0)).train()
    torch.nn.init.zeros_(made.router.weight)  # all are alike, and the first one is taken
    tokens = rows(1, 4)
    out = made(torch.randn(2, 4, D), tokens)
    room = math.ceil(5 / E * 2.0)
    served = (out != 0).any(-1)
    assert served.sum() == room == 3 and served[0].tolist() == [True, False, False, False] and served[1, :2].all()
    by_row = layer(Switch(capacity=1.0, per="row")).train()
    torch.nn.init.zeros_(by_row.router.weight)
    assert (by_row(torch.randn(2, 4, D), tokens) != 0).any(-1).sum(1).tolist() == [1, 1]


def test_first_choices_come_before_second_ones():
    made = layer(TopTwo(capacity=0.5), count=2).train()
    kept = made.within(torch.tensor([[0, 1], [0, 1], [1, 0], [1, 0]]), torch.ones(4, dtype=torch.bool), torch.zeros(4, dtype=torch.long))
    assert kept.tolist() == [[True, False]] * 4
    late = made.within(torch.tensor([[0, 1], [0, 1], [0, 1], [0, 1]]), torch.ones(4, dtype=torch.bool), torch.zeros(4, dtype=torch.long))
    assert late.tolist() == [[True, True], [True, True], [False, False], [False, False]]


def test_the_load_is_the_chance_to_be_chosen():
    """At first all scores are 0 and the noise decides: every chance is that of a normal draw against the others' threshold."""
    made = Routed(Experts(E, NoisyTopK(chosen=2), FeedForward(d_ff=3)), D, name="experts").train()
    torch.manual_seed(5)
    made(torch.randn(1, 400, D), Tokens.plain(1, 400))
    assert made.fine is not None and float(made.fine) < 0.01  # nearly even
    made.fine.backward()
    assert made.router.weight.grad is not None and made.router.weight.grad.isfinite().all()


@pytest.mark.parametrize(
    "router", [NoisyTopK(importance=1.0, load=1.0), Switch(balance=1.0), TopTwo(balance=1.0)], ids=lambda one: one.kind
)
def test_the_fine_teaches_balance(router):
    made, tokens = layer(router).train(), Tokens.plain(1, 256)
    with torch.no_grad():
        made.router.weight[0] += 2.0  # a favourite
    x = torch.randn(1, 256, D).abs()

    def share() -> float:
        with torch.no_grad():
            first = made.eval().choose(x[0], tokens.real.expand(1, 256)[0]).experts[:, 0]
        made.train()
        return float(torch.bincount(first, minlength=E).max()) / 256

    before, optimiser = share(), torch.optim.Adam([made.router.weight], lr=0.03)
    for _ in range(150):
        optimiser.zero_grad()
        made(x, tokens)
        assert made.fine is not None
        made.fine.backward()
        optimiser.step()
    assert before > 0.85 and share() < 0.5


def test_what_cannot_be_is_refused():
    with pytest.raises(UsageError, match="without a gradient"):
        NoisyTopK(chosen=1)
    with pytest.raises(UsageError, match="2 of 1 experts"):
        layer(TopTwo(), count=1)


@pytest.mark.parametrize("router", [NoisyTopK(), NoisyTopK(noise=False), Switch(), TopTwo()], ids=str)
def test_a_plan_counts_every_expert(router):
    feed_forward = Experts(5, router, FeedForward(d_ff=11))
    trunk = Transformer(layers=2, heads=2, feed_forward=feed_forward)
    config = EncoderDecoder(d_model=8, encoder=trunk, decoder=trunk, source_vocabulary=13, target_vocabulary=13)
    assert model_parts(config, Load()).size == sum(parameter.numel() for parameter in build(config).parameters())


def test_a_recipe_trains_with_experts(tmp_path):
    recipe = small_run.corpus(tmp_path / "corpus")
    flags = ["--train.steps", "12", "--train.evaluate_every", "6", "--train.sample_every", "0"]
    text = recipe.read_text().replace(
        "feed_forward = { d_ff = 64 }", 'feed_forward = { kind = "experts", count = 3, router = "switch", expert = { d_ff = 32 } }'
    )
    recipe.write_text(text)
    ended = small_run.regard("train", recipe, "--out", tmp_path / "run", "--progress", "none", *flags)
    assert ended.code == 0, ended.error
    ended = small_run.regard("translate", tmp_path / "run", stdin="Der Hund sieht Brot.\n")
    assert ended.code == 0 and ended.out.count("\n") == 1

"""Several models as one, by hand."""

import pytest
import torch

from regard.decode.beam import Beam
from regard.decode.draft import Job
from regard.decode.engine import decode
from regard.decode.ensemble import Ensemble, ensemble
from regard.decode.sample import Greedy
from regard.decode.step_function import FunctionStepper, function_stepper
from regard.errors import ModelError, UsageError


def constant(*probs: float, look: tuple[float, ...] = ()):
    def following(source, written):
        log_probs = torch.tensor(probs).log()
        return (log_probs, torch.tensor(look)) if look else log_probs

    return following


def stepper(following, **settings):
    return FunctionStepper(following, slots=1, beam=1, capacity=3, **settings)


def test_probabilities_are_averaged_by_share():
    models = [stepper(constant(0.1, 0.9, look=(0.2, 0.8))), stepper(constant(0.7, 0.3, look=(0.6, 0.4)))]
    joined = Ensemble(models, shares=[3, 1])
    joined.admit([0], [(5, 2)])
    step = joined.step(torch.tensor([1]))
    assert step.log_probs.exp().flatten().tolist() == pytest.approx([0.25, 0.75])
    assert step.attention is not None and step.attention.flatten().tolist() == pytest.approx([0.3, 0.7])
    assert Ensemble(models[:1]).step(torch.tensor([1])).log_probs.exp().flatten().tolist() == pytest.approx([0.1, 0.9])


def test_an_ensemble_of_equals_is_the_one_and_one_of_others_is_not():
    def first(source, written):
        return torch.randn(7, generator=torch.Generator().manual_seed(hash((1, written)) % 2**31)).log_softmax(0)

    def second(source, written):
        return torch.randn(7, generator=torch.Generator().manual_seed(hash((2, written)) % 2**31)).log_softmax(0)

    jobs = [Job((5, 2), 6)]
    alone = decode(function_stepper(first), jobs, search=Greedy())[0][0]
    twice = decode(ensemble([function_stepper(first)] * 2), jobs, search=Greedy())[0][0]
    mixed = decode(ensemble([function_stepper(first), function_stepper(second)]), jobs, search=Greedy())[0][0]
    assert twice.tokens == alone.tokens and twice.log_probs == pytest.approx(alone.log_probs)
    assert mixed.log_probs != pytest.approx(alone.log_probs)


def test_all_models_follow_the_beam():
    def one(source, written):
        return torch.randn(7, generator=torch.Generator().manual_seed(hash((3, written)) % 2**31)).log_softmax(0)

    def other(source, written):
        return torch.randn(7, generator=torch.Generator().manual_seed(hash((4, written)) % 2**31)).log_softmax(0)

    def mean(source, written):
        return ((one(source, written).exp() + other(source, written).exp()) / 2).log()

    search, jobs = Beam(size=4, n_best=4), [Job((5, 2), 6), Job((5, 6, 2), 6)]
    joined = decode(ensemble([function_stepper(one), function_stepper(other)]), jobs, search=search)
    expected = decode(function_stepper(mean), jobs, search=search)
    for found, wanted in zip(joined, expected, strict=True):
        assert [hypothesis.tokens for hypothesis in found] == [hypothesis.tokens for hypothesis in wanted]
        assert [hypothesis.score for hypothesis in found] == pytest.approx([hypothesis.score for hypothesis in wanted], abs=1e-5)


def test_a_model_without_attention_takes_it_from_all():
    joined = Ensemble([stepper(constant(0.5, 0.5, look=(1.0,))), stepper(constant(0.5, 0.5))])
    joined.admit([0], [(2,)])
    assert joined.step(torch.tensor([1])).attention is None


def test_one_that_cannot_be_refilled_stops_all():
    models = [stepper(constant(0.5, 0.5)), stepper(constant(0.5, 0.5), continuous=False)]
    assert not Ensemble(models).continuous and Ensemble(models[:1]).continuous


def test_what_does_not_fit_is_refused():
    with pytest.raises(ModelError, match=r"\[2, 3\]"):
        Ensemble([stepper(constant(0.5, 0.5)), stepper(constant(0.2, 0.3, 0.5))]).step(torch.tensor([1]))
    for shares in ([1.0], [1.0, -1.0], [0.0, 0.0]):
        with pytest.raises(UsageError):
            Ensemble([stepper(constant(1.0))] * 2, shares=shares)
    with pytest.raises(UsageError):
        Ensemble([])

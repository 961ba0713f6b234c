"""Hulls of five points: what can only be answered by pointing, since the answers are places of the input."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from regard.data.points import PointExamples, Points
from regard.decode.sample import Greedy
from regard.models.build import pointer_network
from regard.models.configs import PointerNetwork
from regard.nn.attention.scores import Additive, Bilinear
from regard.nn.trunk_recurrent import NoAttention, Recurrent
from regard.tasks.pointing import answers, judged
from regard.train.loss import CrossEntropy
from regard.train.pointing_loss import PointingObjective

ROWS, STEPS = 128, 300
LSTM = Recurrent("lstm", width=64, attention=NoAttention(), dropout=0.0)


def learned(config: PointerNetwork, examples: PointExamples, *, seed: int):
    torch.manual_seed(seed)
    model = pointer_network(replace(config, problem=examples.problem)).train()
    objective, optimiser = PointingObjective(model, CrossEntropy(smoothing=0.0)), torch.optim.AdamW(model.parameters(), 1e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.02, STEPS)
    for step in range(STEPS):
        batch = examples.batch(np.arange(step * ROWS, (step + 1) * ROWS))
        optimiser.zero_grad()
        (objective(batch) / batch.target_tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    return model.eval()


def scores(model, examples: PointExamples) -> dict[str, float]:
    found = answers(model, examples.batch(np.arange(len(examples.costs))), search=Greedy())
    return {score.name: score.score for score in judged(found, examples)}


@pytest.mark.parametrize(("score", "seed"), [(Additive(32), 1), (Additive(32), 2), (Bilinear(), 3)])
def test_hulls_of_five_points_are_learned(score, seed):
    config = PointerNetwork(d_model=32, encoder=LSTM, decoder=LSTM, score=score)
    model = learned(config, PointExamples.of([Points(count=ROWS * STEPS, seed=seed)]), seed=seed)
    found = scores(model, PointExamples.of([Points(count=300, seed=99)]))
    assert found["accuracy"] > 30 and found["area"] > 85  # one answer for all is right for 6 % at most


def test_tours_of_five_points_are_shorter_than_by_chance():
    config = PointerNetwork(d_model=32, encoder=LSTM, decoder=LSTM, score=Additive(32))
    model = learned(config, PointExamples.of([Points("tour", count=ROWS * STEPS, seed=1)]), seed=1)
    test = PointExamples.of([Points("tour", count=300, seed=99)])
    chance = {score.name: score.score for score in judged(["0 1 2 3 4"] * 300, test)}
    found = scores(model, test)
    assert found["tour-ratio"] < 1.05 < 1.2 < chance["tour-ratio"]

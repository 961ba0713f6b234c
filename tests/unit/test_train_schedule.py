"""Schedules by their golden values and at their corners."""

import math

import pytest

from regard.train.schedule import Constant, Cosine, InverseSqrt, Linear, Noam, Plateau, WarmupStableDecay, factor, falls


def test_noam_is_the_papers():
    assert factor(Noam(4000), 4000, width=512) == pytest.approx(6.9877e-4, rel=1e-4)
    assert factor(Noam(4000), 4000, width=1024) == pytest.approx(4.9411e-4, rel=1e-4)
    assert factor(Noam(4000), 100_000, width=512) == pytest.approx(1.3975e-4, rel=1e-4)
    assert factor(Noam(4000), 1, width=512) == pytest.approx(512**-0.5 * 4000**-1.5)


def test_inverse_sqrt_rises_in_a_line_and_halves_at_four_warmups():
    values = [factor(InverseSqrt(100), step) for step in (1, 50, 100, 400)]
    assert values == pytest.approx([0.01, 0.5, 1.0, 0.5])


def test_cosine_rises_peaks_and_falls_to_its_floor():
    schedule = Cosine(warmup=10, floor=0.1)
    assert factor(schedule, 5, share=5 / 110) == pytest.approx(0.5, abs=0.03)
    assert factor(schedule, 10, share=10 / 110) == pytest.approx(1.0)
    assert factor(schedule, 60, share=60 / 110) == pytest.approx(0.55)
    assert factor(schedule, 110, share=1.0) == pytest.approx(0.1)


@pytest.mark.parametrize(("share", "expected"), [(0.1, 0.5), (0.2, 1.0), (0.6, 0.5), (1.0, 0.0)])
def test_a_warmup_below_one_is_a_share_of_the_run(share, expected):
    assert factor(Linear(warmup=0.2), 7, share=share) == pytest.approx(expected)


def test_linear_by_the_clock_knows_its_warmup_in_steps():
    # 40 steps in a tenth of the time: 400 in all, so that 40 steps of warm-up end there
    assert factor(Linear(warmup=40), 40, share=0.1) == pytest.approx(1.0)
    assert factor(Linear(warmup=40), 220, share=0.55) == pytest.approx(0.5)


def test_warmup_stable_decay():
    schedule = WarmupStableDecay(warmup=0.1, decay=0.2, floor=0.0)
    assert factor(schedule, 5, share=0.05) == pytest.approx(0.5)
    assert factor(schedule, 5, share=0.5) == factor(schedule, 5, share=0.8) == 1
    assert factor(schedule, 5, share=0.85) == pytest.approx(1 - math.sqrt(0.25))
    assert factor(schedule, 5, share=1.0) == 0


def test_constant_rises_and_stays():
    assert [factor(Constant(4), step) for step in (1, 4, 400)] == [0.25, 1, 1]
    assert factor(Constant(), 1) == 1


def test_plateau_falls_after_more_than_patience_bad_scores():
    assert falls([1, 2, 2, 2], patience=2) == 0
    assert falls([1, 2, 2, 2, 2], patience=2) == 1
    assert falls([1, 2, 1, 1, 1, 3, 3, 3, 3], patience=2) == 2
    assert factor(Plateau(patience=2, factor=0.5), 9, scores=[1, 2, 2, 2, 2]) == 0.5
    assert factor(Plateau(patience=0, factor=0.1, floor=0.05), 9, scores=[3, 2, 1]) == 0.05
    assert factor(Plateau(warmup=10), 5) == 0.5


@pytest.mark.parametrize("schedule", [Cosine(), Linear(), WarmupStableDecay()])
def test_factors_stay_between_zero_and_one(schedule):
    for step in range(1, 101):
        assert 0 <= factor(schedule, step, share=step / 101) <= 1

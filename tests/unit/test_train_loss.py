"""The smoothed cross-entropy: golden shares, torch's own values and gradients, and the same numbers however it is cut."""

import pytest
import torch
from torch import nn

from regard.data.batch import IGNORED
from regard.train import loss as room
from regard.train.loss import CrossEntropy, Objective, real_rows, shares, smoothed, summed, symmetric_divergence

torch.manual_seed(3)


@pytest.mark.parametrize(
    ("convention", "right", "wrong", "padding"),
    [("torch", 0.91, 0.01, 0.01), ("fairseq", 0.9, 0.1 / 9, 0.1 / 9), ("annotated", 0.9, 0.0125, 0.0)],
)
def test_shares_are_the_golden_ones(convention, right, wrong, padding):
    assert shares(10, smoothing=0.1, convention=convention) == pytest.approx((right, wrong, padding))
    absent = 10 - 2 if convention == "annotated" else 10 - 1
    assert right + absent * wrong == pytest.approx(1)


@pytest.mark.parametrize("convention", ["torch", "fairseq", "annotated"])
@pytest.mark.parametrize("at_once", [1, 40, 10**6])
def test_loss_and_gradient_are_those_of_the_written_out_target(convention, at_once, monkeypatch):
    monkeypatch.setattr(room, "AT_ONCE", at_once)
    logits = torch.randn(11, 17, dtype=torch.float32) * 3
    labels = torch.randint(1, 17, (11,))
    right, wrong, padding = shares(17, smoothing=0.1, convention=convention)
    target = torch.full((11, 17), wrong)
    target[:, 0] = padding
    target[torch.arange(11), labels] = right
    ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    loss = smoothed(ours, labels, smoothing=0.1, convention=convention)
    expected = -(target * theirs.log_softmax(1)).sum()
    (loss * 0.7).backward()
    (expected * 0.7).backward()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_it_is_torchs_own_label_smoothing():
    logits, labels = torch.randn(13, 19), torch.randint(0, 19, (13,))
    expected = nn.functional.cross_entropy(logits, labels, label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(smoothed(logits, labels, smoothing=0.1, convention="torch"), expected)


def test_bf16_logits_are_summed_in_fp32():
    logits = (torch.randn(7, 5003) * 4).bfloat16()
    labels = torch.randint(0, 5003, (7,))
    ours = logits.clone().requires_grad_()
    loss = smoothed(ours, labels, smoothing=0.1, convention="torch")
    assert loss.dtype == torch.float32
    wide = logits.float().requires_grad_()
    expected = nn.functional.cross_entropy(wide, labels, label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(loss, expected)
    loss.backward()
    expected.backward()
    assert ours.grad.dtype == torch.bfloat16
    torch.testing.assert_close(ours.grad.float(), wide.grad, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("r_drop", [0.0, 5.0])
def test_pieces_that_are_computed_again_change_nothing(r_drop):
    output = nn.Linear(5, 23)
    hidden = [torch.randn(11, 5) for _ in range(2 if r_drop else 1)]
    labels = torch.randint(0, 23, (11,))
    results = []
    for held in (10**6, 60):
        leaves = [h.clone().requires_grad_() for h in hidden]
        output.zero_grad()
        loss = summed(output, leaves, labels, loss=CrossEntropy(r_drop=r_drop, held=held))
        loss.backward()
        results.append([loss, output.weight.grad.clone(), *(leaf.grad for leaf in leaves)])
    torch.testing.assert_close(results[0], results[1])


def test_symmetric_divergence_by_hand():
    first, second = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.25, 0.75]]).log()
    one_way = 0.5 * torch.tensor(2.0).log() + 0.5 * torch.tensor(2 / 3).log()
    other_way = 0.25 * torch.tensor(0.5).log() + 0.75 * torch.tensor(1.5).log()
    torch.testing.assert_close(symmetric_divergence(first, second), one_way + other_way)


def test_r_drop_is_half_of_the_papers_sum():
    output = nn.Linear(5, 7)
    one, other, labels = torch.randn(3, 5), torch.randn(3, 5), torch.tensor([1, 4, 6])
    entropies = sum(nn.functional.cross_entropy(output(h), labels, label_smoothing=0.1, reduction="sum") for h in (one, other))
    paper = entropies + 5 / 2 * symmetric_divergence(output(one), output(other))
    torch.testing.assert_close(summed(output, [one, other], labels, loss=CrossEntropy(r_drop=5.0)), paper / 2)


def test_rows_without_label_never_reach_the_output(train_toy):
    toy = train_toy
    batch = toy.padded([100, 101, 102, 103])
    assert (batch.labels == IGNORED).any()
    model = toy.Toy(dropout=0.0)
    seen = []
    model.output.register_forward_hook(lambda module, inputs, result: seen.append(len(inputs[0])))
    loss = Objective(model, CrossEntropy(smoothing=0.0))(batch)
    assert max(seen) == batch.target_tokens
    logits = model.output(model(batch))
    expected = nn.functional.cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), ignore_index=IGNORED, reduction="sum")
    torch.testing.assert_close(loss, expected)


def test_real_rows_keep_their_order(train_toy):
    batch = train_toy.padded([100, 101, 102])
    rows = real_rows(batch.labels, batch)
    assert rows.tolist() == [label for row in batch.labels.tolist() for label in row if label != IGNORED]


@pytest.fixture
def train_toy(monkeypatch):
    import importlib
    from pathlib import Path

    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "laws"))
    return importlib.import_module("train_toy")


@pytest.mark.parametrize("layout", ["packed", "padded"])
def test_r_drop_asks_the_same_rows_twice(train_toy, layout):
    batch = getattr(train_toy, layout)([1, 2, 7])
    plain, still, restless = (
        Objective(train_toy.Toy(dropout), CrossEntropy(r_drop=strength)).train()
        for dropout, strength in ((0.0, 0.0), (0.0, 4.0), (0.5, 4.0))
    )
    still.load_state_dict(plain.state_dict())
    restless.load_state_dict(plain.state_dict())
    torch.testing.assert_close(still(batch), plain(batch))  # two equal answers have nothing to be drawn together
    torch.manual_seed(0)
    hidden = torch.stack(list(real_rows(restless.model(batch.twice()), batch.twice()).chunk(2)))
    assert not torch.equal(*hidden)
    torch.manual_seed(0)
    entropies = [summed(restless.model.output, [rows], real_rows(batch.labels, batch), loss=CrossEntropy()) for rows in hidden]
    apart = symmetric_divergence(*map(restless.model.output, hidden))
    torch.testing.assert_close(restless(batch), sum(entropies) / 2 + apart)


def test_l2_adds_half_the_squares_of_matrices_to_the_mean(train_toy):
    batch = train_toy.packed([1, 2, 7])
    plain, pulled = (Objective(train_toy.Toy(0.0), CrossEntropy(l2=strength)) for strength in (0.0, 0.3))
    pulled.load_state_dict(plain.state_dict())
    squares = sum(float(parameter.detach().square().sum()) for parameter in plain.parameters() if parameter.ndim > 1)
    added = float(pulled(batch) - plain(batch)) / batch.target_tokens
    assert added == pytest.approx(0.15 * squares, rel=1e-4)
    torch.testing.assert_close(pulled.eval()(batch), plain.eval()(batch))  # a measure of the model has none

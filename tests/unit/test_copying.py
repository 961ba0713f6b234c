"""Copying, by hand-computed numbers and by a loop over words."""

import math

import pytest
import torch

from regard.errors import UsageError
from regard.nn.attention.scores import Additive, Bilinear, Dot
from regard.nn.copying import Cells, GatedCopying, JointCopy, JointCopying, Original, PointerGenerator, gated, joined

WORDS = torch.tensor([[[1.0, 0.0, -1.0]]])  # scores of a vocabulary of three
PLACES = torch.tensor([[[1.0, 0.0]]])  # scores of two places, where word 0 stands and one that the vocabulary lacks
IDS = torch.tensor([[0, 3]])
REAL = torch.ones(1, 2, dtype=torch.bool)


def test_the_joint_softmax_gives_the_published_numbers():
    cells = joined(WORDS, PLACES, IDS, REAL)
    torch.testing.assert_close(cells.words(width=4).exp()[0, 0], torch.tensor([0.6966, 0.1281, 0.0471, 0.1281]), atol=5e-5, rtol=0)


def test_the_pointer_generator_gives_the_published_numbers():
    gate = torch.tensor([[math.log(0.6 / 0.4)]])  # the vocabulary's share is 0.6
    cells = gated(WORDS, PLACES.softmax(-1), gate, IDS)
    torch.testing.assert_close(cells.words(width=4).exp()[0, 0], torch.tensor([0.6916, 0.1468, 0.0540, 0.1076]), atol=5e-5, rtol=0)


def random_original(batch=3, places=5, width=7, *, module):
    states = torch.randn(batch, places, width, dtype=torch.double)
    ids = torch.tensor([[4, 11, 4, 12, 2], [11, 11, 3, 2, 0], [2, 0, 0, 0, 0]])
    return Original(states, module.keys(states), ids, torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0], [1, 0, 0, 0, 0]]).bool())


def kinds():
    torch.manual_seed(5)
    return {
        "joint": JointCopying(JointCopy(Bilinear()), d_memory=7, d_hidden=6),
        "joint-additive": JointCopying(JointCopy(Additive(width=3)), d_memory=7, d_hidden=6),
        "gated": GatedCopying(PointerGenerator(width=5), d_memory=7, d_hidden=6, d_input=4),
        "coverage": GatedCopying(PointerGenerator(width=5, coverage=True), d_memory=7, d_hidden=6, d_input=4),
    }


def answers(module, *, steps=4):
    """The module's answer to random vectors, the vectors, and the source."""
    torch.manual_seed(6)
    if isinstance(module, GatedCopying) and module.past is not None:
        torch.nn.init.normal_(module.past)
    logits = torch.randn(3, steps, 11, dtype=torch.double)
    hidden, inputs = torch.randn(3, steps, 6, dtype=torch.double), torch.randn(3, steps, 4, dtype=torch.double)
    source = random_original(module=module)
    real = torch.ones(3, steps, dtype=torch.bool)
    cells, looked = module(logits, hidden, inputs, real, source, torch.zeros(3, 5, dtype=torch.double))
    return cells, looked, (logits, hidden, inputs, source)


def by_hand(module, logits, hidden, inputs, source):
    """One word after the other, in dictionaries; the attention of each step of a pointer-generator besides."""
    shares, looks = [], []
    looked = torch.zeros(source.ids.shape[1], dtype=torch.double)
    for step in range(len(logits)):
        places = [place for place in range(source.ids.shape[1]) if source.real[0, place]]
        if isinstance(module, JointCopying):
            scores = [
                float(module.score.pairwise(hidden[None, None, step : step + 1], source.states[:1, None])[0, 0, 0, j].detach())
                for j in places
            ]
            ways = [math.exp(x) for x in (*logits[step].tolist(), *scores)]
            ways = [way / sum(ways) for way in ways]
        else:
            state = module.key.weight.double() @ source.states[0].T + module.key.bias.double()[:, None]
            scores = []
            for j in places:
                inner = state[:, j] + module.query.weight.double() @ hidden[step]
                if module.past is not None:
                    inner = inner + module.past.double() * looked[j]
                scores.append(float(module.vector.weight[0].double() @ inner.tanh()))
            weights = torch.tensor(scores, dtype=torch.double).softmax(0)
            context = sum(weights[n] * source.states[0, j] for n, j in enumerate(places))
            gate = torch.sigmoid(
                module.gate.weight[0].double() @ torch.cat([context, hidden[step], inputs[step]]) + module.gate.bias.double()
            )
            ways = [*(gate * logits[step].softmax(0)).tolist(), *((1 - gate) * weights).tolist()]
            looks.append((weights, looked[places].clone()))
            looked[places] += weights
        found = dict(enumerate(ways[: logits.shape[1]]))
        for way, j in zip(ways[logits.shape[1] :], places):
            found[int(source.ids[0, j])] = found.get(int(source.ids[0, j]), 0.0) + way
        shares.append(found)
    return shares, looks


@pytest.mark.parametrize("kind", kinds())
def test_a_loop_over_words_gives_the_same(kind):
    module = kinds()[kind].double()
    cells, looked, (logits, hidden, inputs, source) = answers(module)
    found = cells.words(width=16).exp()
    for row in range(3):
        one = Original(source.states[row : row + 1], source.keys[row : row + 1], source.ids[row : row + 1], source.real[row : row + 1])
        shares, looks = by_hand(module, logits[row], hidden[row], inputs[row], one)
        for step, share in enumerate(shares):
            expected = torch.tensor([share.get(word, 0.0) for word in range(16)], dtype=torch.double)
            torch.testing.assert_close(found[row, step], expected, atol=1e-12, rtol=0)
        if kind == "coverage":
            penalties = torch.stack([torch.minimum(weights, before).sum() for weights, before in looks])
            torch.testing.assert_close(cells.again[row], penalties, atol=1e-12, rtol=0)
            torch.testing.assert_close(looked[row][one.real[0]], sum(weights for weights, _ in looks), atol=1e-12, rtol=0)


@pytest.mark.parametrize("kind", kinds())
def test_the_shares_sum_to_one_and_padding_gets_nothing(kind):
    module = kinds()[kind].double()
    cells, _, (*_, source) = answers(module)
    torch.testing.assert_close(cells.words(width=16).exp().sum(-1), torch.ones(3, 4, dtype=torch.double), atol=1e-12, rtol=0)
    assert not cells.copied.masked_select(~source.real[:, None]).any()


@pytest.mark.parametrize("kind", kinds())
def test_what_a_label_is_told_is_its_share(kind):
    module = kinds()[kind].double()
    cells, *_ = answers(module)
    labels = torch.tensor([[4, 11, 12, 0], [11, 3, 2, 10], [2, 5, 12, 15]])
    told, nothing = cells.told(labels)
    words = cells.words(width=16).gather(2, labels[..., None]).squeeze(2)
    assert nothing.tolist() == [[False] * 4, [False] * 4, [False, False, True, True]]
    torch.testing.assert_close(told[~nothing], words[~nothing], atol=1e-12, rtol=0)
    torch.testing.assert_close(told[nothing], torch.full((2,), math.log(1e-20), dtype=torch.double))
    told.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in module.parameters())


def test_a_source_without_words_leaves_all_to_the_vocabulary():
    module = kinds()["gated"].double()
    states = torch.randn(1, 2, 7, dtype=torch.double)
    empty = Original(states, module.keys(states), torch.zeros(1, 2, dtype=torch.long), torch.zeros(1, 2, dtype=torch.bool))
    logits = torch.randn(1, 1, 5, dtype=torch.double, requires_grad=True)
    vectors = torch.randn(1, 1, 6, dtype=torch.double), torch.randn(1, 1, 4, dtype=torch.double)
    cells, _ = module(logits, *vectors, torch.ones(1, 1, dtype=torch.bool), empty, torch.zeros(1, 2))
    torch.testing.assert_close(cells.words(width=5), logits.log_softmax(-1))
    cells.told(torch.tensor([[3]]))[0].sum().backward()
    assert logits.grad.isfinite().all() and all(p.grad is None or p.grad.isfinite().all() for p in module.parameters())


def test_gradients_are_right():
    torch.manual_seed(7)
    ids, labels, real = torch.tensor([[1, 3, 3]]), torch.tensor([[3, 1]]), torch.tensor([[True, True, False]])
    leaf = lambda *shape: torch.randn(*shape, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: joined(a, b, ids, real).told(labels)[0], (leaf(1, 2, 3), leaf(1, 2, 3)))
    assert torch.autograd.gradcheck(
        lambda a, b, c: gated(a, b.softmax(-1), c, ids).told(labels)[0], (leaf(1, 2, 3), leaf(1, 2, 3), leaf(1, 2))
    )


def test_scores_that_need_equal_widths_are_refused():
    with pytest.raises(UsageError, match="dot compares the decoder's 6 numbers with the encoder's 7; choose bilinear"):
        JointCopying(JointCopy(Dot()), d_memory=7, d_hidden=6)


def test_a_label_that_no_way_leads_to_is_counted_even_if_a_padded_place_has_its_id():
    cells = Cells(torch.zeros(1, 1, 3), torch.full((1, 1), math.log(3)), torch.zeros(1, 1, 2), torch.tensor([[4, 4]]))
    told, nothing = cells.told(torch.tensor([[4]]))
    assert nothing.all() and told.isfinite().all()

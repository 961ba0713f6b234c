"""Models that copy keep the laws of those that do not: layout, padding and cache change nothing, and unknown words are one word each."""

import pytest
import torch

from laws.test_model_laws import SOURCES, TARGETS, batch_of, packed, padded
from regard.data.batch import IGNORED, PairBatch
from regard.decode.beam import Beam
from regard.decode.draft import Job
from regard.decode.engine import decode
from regard.decode.sample import Greedy
from regard.decode.step_translator import opener
from regard.errors import UsageError
from regard.models.build import translator
from regard.models.configs import EncoderDecoder
from regard.nn.attention.scores import Additive
from regard.nn.copying import JointCopy, NoCopy, PointerGenerator
from regard.nn.embed import Embedding
from regard.nn.feedforward import FeedForward
from regard.nn.trunk_transformer import Transformer
from regard.nn.view import Tokens
from regard.train.copy_loss import CopyObjective
from regard.train.loss import CrossEntropy

SIZE = 13
UNKNOWN = [[5, 13, 7, 14, 2], [13, 2], [5, 13, 2]]  # sources with words that the vocabulary lacks
ASKED = [[13, 7, 2], [6, 13, 13, 10, 11, 2], [4, 2]]  # and targets with them

KINDS = {
    "joint": JointCopy(),
    "joint-additive": JointCopy(Additive(width=5)),
    "gated": PointerGenerator(width=7),
    "coverage": PointerGenerator(width=7, coverage=True),
}


def model_of(copy, *, d_model=16, **changes):
    torch.manual_seed(3)
    trunk = Transformer(layers=2, heads=4, dropout=0.0, feed_forward=FeedForward(d_ff=22))
    config = EncoderDecoder(
        d_model=d_model,
        encoder=trunk,
        decoder=trunk,
        embedding=Embedding(dropout=0.0),
        copy=copy,
        **({"source_vocabulary": SIZE, "target_vocabulary": SIZE} | changes),
    )
    model = translator(config).double().eval()
    for name, parameter in model.named_parameters():
        if name == "copying.past":
            torch.nn.init.normal_(parameter)
    return model


def told(model, batch):
    """The log-probability of each label, sentence by sentence."""
    log_probs, tokens = model.scores(batch).log_softmax(-1), batch.target.tokens
    labels = batch.labels.clamp_min(0)
    flat = log_probs.gather(2, labels[..., None]).squeeze(2)[tokens.real]
    documents = tokens.documents + torch.arange(len(tokens.real))[:, None]
    return [flat[documents[tokens.real] == document] for document in range(len(TARGETS))]


@pytest.mark.parametrize("kind", KINDS)
def test_packed_padded_and_alone_give_the_same_numbers(kind):
    model = model_of(KINDS[kind])
    alone = [told(model, batch_of([s], [t]))[0] for s, t in zip(UNKNOWN, ASKED)]
    for layout in (batch_of(UNKNOWN, ASKED), batch_of(UNKNOWN, ASKED, left=2, right=1), batch_of(UNKNOWN, ASKED, packed)):
        for one, among in zip(alone, told(model, layout), strict=True):
            torch.testing.assert_close(among, one, atol=1e-9, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_and_its_gradients_do_not_depend_on_the_layout(kind):
    found = []
    for layout in (padded, packed):
        model, batch = model_of(KINDS[kind]), batch_of(UNKNOWN, ASKED, layout)
        objective = CopyObjective(model, CrossEntropy(smoothing=0.0)).train()
        loss = objective(batch)
        loss.backward()
        assert int(objective.unreachable) == 0
        found.append((loss, {name: p.grad for name, p in model.named_parameters()}))
    torch.testing.assert_close(found[1][0], found[0][0], atol=1e-9, rtol=0)
    for name, gradient in found[0][1].items():
        torch.testing.assert_close(found[1][1][name], gradient, atol=1e-9, rtol=0, msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_is_that_of_the_scores(kind):
    model, batch = model_of(KINDS[kind]), batch_of(UNKNOWN, ASKED, right=1)
    loss = CopyObjective(model, CrossEntropy(smoothing=0.0)).eval()(batch)
    counted = batch.labels != IGNORED
    expected = -model.scores(batch).gather(2, batch.labels.clamp_min(0)[..., None]).squeeze(2)[counted].sum()
    torch.testing.assert_close(loss, expected)


def test_coverage_adds_its_penalty_in_training_only():
    model, batch = model_of(PointerGenerator(width=7, coverage=True, penalty=0.5)), batch_of(UNKNOWN, ASKED)
    objective = CopyObjective(model, CrossEntropy(smoothing=0.0))
    again = model.cells(batch).again[batch.labels != IGNORED].sum()
    torch.testing.assert_close(objective.train()(batch) - objective.eval()(batch), 0.5 * again)
    assert again > 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_prefill_and_steps_equal_the_whole(kind):
    model, batch = model_of(KINDS[kind]), batch_of(UNKNOWN, ASKED, left=1)
    whole = model.scores(batch)
    ids, tokens = batch.target.ids, batch.target.tokens
    state = model.new_state(3, 11)
    model.admit(state, batch.source)
    for start, end in ((0, 3), (3, 4), (4, 7)):
        facts = Tokens(tokens.positions[:, start:end], tokens.documents[:, start:end], tokens.real[:, start:end])
        scores = model.step_scores(ids[:, start:end], facts, state, longest=end)
        torch.testing.assert_close(scores[facts.real], whole[:, start:end][facts.real], atol=1e-9, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_beam_rows_reordered_and_sources_that_come_later(kind):
    model = model_of(KINDS[kind])
    state = model.new_state(4, 9, beam=2)
    model.admit(state, padded(UNKNOWN[1:]))
    model.admit(state, padded(UNKNOWN[:1]), torch.tensor([0]))  # a longer source takes the first slot
    state.clear([0, 1])
    rows = torch.tensor([[1, 4, 13], [1, 13, 7], [1, 10, 11], [1, 13, 4]])
    order = torch.tensor([1, 0, 2, 2])
    for step in range(3):
        if step == 2:
            state.reorder(order)
            rows = rows[order]
        facts = Tokens(torch.full((4, 1), step), torch.zeros(4, 1, dtype=torch.long), torch.ones(4, 1, dtype=torch.bool))
        scores = model.step_scores(rows[:, step : step + 1], facts, state, longest=step + 1)
    for row, sentence in enumerate(rows.tolist()):
        alone = model.scores(batch_of([[UNKNOWN[0], UNKNOWN[2]][row // 2]], [[*sentence[1:], 2]]))[0, 2]
        torch.testing.assert_close(scores[row, 0, : len(alone)], alone, atol=1e-9, rtol=0)
        assert not scores[row, 0, len(alone) :].exp().any()


def test_coverage_cannot_take_words_back_but_the_others_can():
    for kind, copy in KINDS.items():
        model = model_of(copy)
        state = model.new_state(3, 5)
        model.admit(state, padded(UNKNOWN))
        if kind == "coverage":
            with pytest.raises(UsageError, match="coverage cannot forget"):
                state.trim(0)
        else:
            state.trim(0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("search", [Greedy(), Beam(size=3, n_best=2)])
def test_search_may_write_the_words_of_its_own_source(kind, search):
    model = model_of(KINDS[kind])
    jobs = [Job(tuple(source), 6) for source in UNKNOWN]
    together = decode(opener(model), jobs, search=search)
    for job, found in zip(jobs, together, strict=True):
        (alone,) = decode(opener(model), [job], search=search)
        assert [one.tokens for one in alone] == [one.tokens for one in found]
        assert all(token < SIZE or token in job.source for one in found for token in one.tokens)


def test_without_copying_the_scores_are_the_output_s():
    model, batch = model_of(NoCopy()), batch_of(SOURCES, TARGETS)
    torch.testing.assert_close(model.scores(batch), model.output(model(batch)))


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(UsageError, match="joint = true"):
        model_of(JointCopy(), tie="none", source_vocabulary=11)
    with pytest.raises(UsageError, match=r"smoothing = 0\.1 is not defined"):
        CopyObjective(model_of(JointCopy()), CrossEntropy())
    with pytest.raises(UsageError, match=r"r_drop = 2\.0 is not defined"):
        CopyObjective(model_of(JointCopy()), CrossEntropy(smoothing=0.0, r_drop=2.0))


def test_labels_that_no_way_leads_to_are_counted():
    model = model_of(JointCopy())
    batch = batch_of(SOURCES, ASKED)  # the sources hold no unknown word
    objective = CopyObjective(model, CrossEntropy(smoothing=0.0)).train()
    assert objective(batch).isfinite()
    assert int(objective.unreachable) == 3
    assert isinstance(batch, PairBatch)

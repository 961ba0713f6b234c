"""The small rooms of training: averages, logs, displays, devices, buckets, measured choices."""

import io
import json
import random
import sys
from pathlib import Path

import numpy
import pytest
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "laws"))
import train_toy as toy

from regard.data.batching import Cursor
from regard.errors import ModelError, OutOfMemory, UsageError
from regard.models.tensors import state_of
from regard.train import auto
from regard.train.average import MovingAverage, mean_of
from regard.train.configs import Train
from regard.train.device import Late, Machine, is_out_of_memory, machine, seed_everything
from regard.train.display import display, duration, sentence
from regard.train.events import Evaluate, Every, Sample
from regard.train.log import Log, read_log, write_report
from regard.train.loop import train
from regard.train.loss import CrossEntropy
from regard.train.parallel import Ranks, _buckets
from regard.train.progress import Progress
from regard.train.step import Learner

CPU = torch.device("cpu")


def test_moving_average_by_hand():
    model = nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(2.0)
    average = MovingAverage(model, 0.9)
    model.weight.data.fill_(5.0)
    average.update(0, bad=torch.zeros(()))  # (1 + 0) / (10 + 0): a tenth of the old
    assert average.average["weight"].item() == pytest.approx(0.1 * 2 + 0.9 * 5)
    average.update(10**6, bad=torch.zeros(()))
    assert average.average["weight"].item() == pytest.approx(0.9 * 4.7 + 0.1 * 5)
    average.update(10**6, bad=torch.ones(()))
    assert average.average["weight"].item() == pytest.approx(4.73)


def test_the_average_is_worn_and_taken_off_even_after_an_error():
    model = toy.Toy()
    average = MovingAverage(model, 0.9)
    first = {name: tensor.clone() for name, tensor in average.average.items()}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1)
    with pytest.raises(ZeroDivisionError), average.worn():
        assert torch.equal(model.hidden.weight, first["hidden.weight"])
        assert model.output.weight is model.embedding.weight  # still one table
        raise ZeroDivisionError
    assert torch.equal(model.hidden.weight, first["hidden.weight"] + 1)
    with pytest.raises(ModelError):
        average.restore({"other": torch.zeros(1)})


def test_mean_of_checkpoints():
    one = {"w": torch.tensor([1.0, 2.0]).bfloat16(), "n": torch.tensor(3)}
    two = {"w": torch.tensor([3.0, 6.0]).bfloat16(), "n": torch.tensor(7)}
    mean = mean_of([one, two])
    assert mean["w"].tolist() == [2, 4] and mean["w"].dtype == torch.bfloat16 and mean["n"] == 7
    with pytest.raises(ModelError, match="not of one model"):
        mean_of([one, {"w": one["w"]}])


def test_shared_parameters_are_stored_once():
    assert set(state_of(toy.Toy())) == {"embedding.weight", "hidden.weight", "hidden.bias", "norm.weight", "norm.bias"}


def test_seeds_are_a_function_of_their_numbers():
    def draws(*numbers):
        seed_everything(*numbers)
        return torch.rand(1).item(), random.random(), numpy.random.random()

    assert draws(1, 2, 3) == draws(1, 2, 3)
    first = {draws(seed, step, micro)[0] for seed in (0, 1) for step in (0, 1, 2) for micro in (0, 1, 2)}
    assert len(first) == 18  # (1, 2) is not (2, 1)


def test_out_of_memory_is_told_from_other_errors():
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert is_out_of_memory(RuntimeError("[enforce fail] DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes"))
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    with pytest.raises(RuntimeError) as info:
        torch.empty(2**60, dtype=torch.uint8)
    assert is_out_of_memory(info.value)


def test_machine_from_words():
    assert machine("cpu") == Machine(CPU, "fp32")
    assert machine("cpu", "bf16").precision == "bf16"
    with machine("cpu", "bf16").autocast():
        assert nn.Linear(3, 3)(torch.zeros(1, 3)).dtype == torch.bfloat16
    if not torch.cuda.is_available():
        with pytest.raises(UsageError, match="no CUDA"):
            machine("cuda")


def test_late_numbers_are_there_at_once_on_the_cpu():
    assert Late(torch.tensor(3.0)).read().item() == 3


def test_buckets_keep_order_types_and_size(monkeypatch):
    monkeypatch.setattr("regard.train.parallel.BUCKET", 10)
    tensors = [torch.zeros(6), torch.zeros(4), torch.zeros(1), torch.zeros(2, dtype=torch.float64), torch.zeros(30, dtype=torch.float64)]
    assert [[t.numel() for t in bucket] for bucket in _buckets(tensors)] == [[6, 4], [1], [2], [30]]


def test_one_rank_alone_needs_no_talk():
    ranks = Ranks()
    assert ranks.any(True, False) == (True, False) and ranks.sum(2.0) == (2.0,) and ranks.gather([4, 1]) == [4, 1]


def test_log_drops_what_comes_again_and_what_was_torn(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 1, "loss": 3.0}\n{"step": 2, "loss": 2.0}\n{"step": 2, "event": "evaluate"}\n{"step": 3}\n{"step": 4, "lo')
    log = Log(path)
    log.begin(after=2)
    log.write({"step": 3, "loss": float("nan"), "norm": float("inf")})
    log.close()
    assert read_log(path)[-2:] == [{"step": 2, "event": "evaluate"}, {"step": 3, "loss": None, "norm": None}]
    assert len(path.read_text().splitlines()) == 4


def test_tensorboard_gets_the_numbers(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    log = Log(tmp_path / "log.jsonl", tensorboard=tmp_path / "board")
    log.begin(after=0)
    log.write({"step": 7, "loss": 2.5, "event": "x"})
    log.close()
    events = accumulator.EventAccumulator(str(tmp_path / "board"))
    events.Reload()
    (scalar,) = events.Scalars("loss")
    assert (scalar.step, scalar.value) == (7, 2.5)


def test_report_is_json(tmp_path):
    write_report(tmp_path, {"scores": {"bleu": {"score": 27.1}}, "pair": "é"})
    assert json.loads((tmp_path / "report.json").read_text())["pair"] == "é"


LINE = {"step": 50, "loss": 3.21987, "tokens_per_second": 12345.6, "seconds_left": 185.0, "share": 0.25, "skipped": 0}


def test_sentences():
    assert sentence(LINE) == "step 50  loss 3.220  12,346 tokens/s  3:05 left"
    assert sentence({"step": 9, "event": "sample", "source": "ja", "translation": "yes"}) == "step 9  ja  ->  yes"
    assert sentence({"step": 9, "event": "skipped", "pairs": list(range(11))}).endswith("pairs 0, 1, 2, 3, 4, 5, 6, 7 and 3 more")
    assert [duration(s) for s in (11.6, 185, 7385)] == ["12 s", "3:05", "2:03:05"]


@pytest.mark.parametrize("kind", ["plain", "rich", "auto"])
def test_displays_show_loss_and_sample(kind):
    file = io.StringIO()
    shown = display(kind, file=file)
    assert shown is not None
    for line in (
        LINE,
        {"step": 50, "event": "evaluate", "bleu": 27.13},
        {"step": 50, "event": "sample", "source": "[ja]", "translation": "yes"},
    ):
        shown.show(line)
    shown.close()
    for words in ("3.220", "bleu 27.13", "[ja]  ->  yes"):
        assert words in file.getvalue()
    assert display("none") is None


def test_progress_counts_and_survives_json():
    progress = Progress(step=9, skipped=2, cursor=Cursor(1, 4), scores=[0.5, 0.9, 0.7, 0.8], scored=[2, 4, 6, 8])
    assert (progress.updates, progress.best, progress.since_best) == (7, 4, 2)
    assert Progress.from_json(json.loads(json.dumps(progress.to_json()))) == progress
    assert (Progress().best, Progress().since_best) == (-1, 0)
    for wrong in ([], {"step": 3}, progress.to_json() | {"cursor": {"place": 3}}, progress.to_json() | {"cursor": 3}):
        with pytest.raises(ModelError):
            Progress.from_json(wrong)


def counted(run, name, **when):
    seen = []
    return seen, Every(name, lambda parts, report: seen.append(parts.progress.step), **when)


def test_events_come_when_they_are_due(tmp_path):
    run = toy.parts(tmp_path, steps=7)
    third, event = counted(run, "third", steps=3)
    only, last = counted(run, "last")
    never, no_last = counted(run, "never", last=False)
    always, clock = counted(run, "clock", seconds=1e-9, last=False)
    run.events = [event, last, no_last, clock]
    train(run)
    assert (third, only, never) == ([3, 6, 7], [7], [])
    assert always == [2, 3, 4, 5, 6, 7]  # its clock begins with the first step


def test_a_budget_of_seconds_and_one_of_epochs(tmp_path):
    run = toy.parts(tmp_path / "a", steps=0)
    run.budget = toy.Budget(seconds=0.3)
    assert train(run).elapsed >= 0.3 and run.share() == 1
    run = toy.parts(tmp_path / "b", steps=0)
    run.budget = toy.Budget(epochs=2, batches_in_epoch=9)
    assert train(run).step == 9  # two micro-batches to a step, nine to an epoch
    run = toy.parts(tmp_path / "c", steps=3)
    run.budget = toy.Budget(steps=3, seconds=1e9)
    assert train(run).step == 3


def test_early_stopping_and_the_best_model(tmp_path):
    run = toy.parts(tmp_path, steps=100)
    scores, exported = iter([1.0, 3.0, 2.0, 2.5, 9.0]), []
    evaluate = Evaluate(lambda check: {"bleu": next(scores), "loss": 1.0}, score="bleu", export=lambda: exported.append(run.progress.step))
    run.budget = toy.Budget(steps=100, patience=2)
    run.events = [Every("evaluate", evaluate, steps=5)]
    progress = train(run)
    assert (progress.step, progress.best, exported, progress.scores) == (20, 10, [5, 10], [1.0, 3.0, 2.0, 2.5])
    lines = [line for line in read_log(tmp_path / "log.jsonl") if line.get("event") == "evaluate"]
    assert [line["best"] for line in lines] == [True, True, False, False]


def test_lower_can_be_better(tmp_path):
    run = toy.parts(tmp_path, steps=2)
    losses = iter([2.0, 1.5])
    run.events = [Every("evaluate", Evaluate(lambda check: {"loss": next(losses)}, score="loss", better="lower"), steps=1)]
    assert train(run).best == 2


def test_samples_are_made_at_rest_and_shown(tmp_path):
    run = toy.parts(tmp_path, steps=2)
    modes = []

    def translate():
        modes.append((run.learner.model.training, torch.is_grad_enabled()))
        return [("ja", "yes")]

    run.events = [Every("sample", Sample(translate), steps=2)]
    run.learner.model.train()
    train(run)
    assert modes == [(False, False)] and run.learner.model.training
    assert read_log(tmp_path / "log.jsonl")[-1] == {"step": 2, "event": "sample", "source": "ja", "translation": "yes"}


def test_clipping_shortens_to_the_norm_and_no_further():
    def length(clip):
        own = toy.learner(dropout=0.0, clip=clip)
        moved = []
        own.optimiser.step = lambda factor, bad: moved.append(
            torch.cat([p.grad.flatten() for p in own.optimiser.parameters if p.grad is not None]).norm().item()
        )
        report = own.step([toy.packed([1, 2, 3])], step=1, updates=0, factor=1.0)
        return moved[0], report.norm.item()

    whole, norm = length(0.0)
    assert whole == pytest.approx(norm, rel=1e-5) and norm > 1
    assert length(0.5)[0] == pytest.approx(0.5, rel=1e-5) and length(0.5)[1] == pytest.approx(norm)
    assert length(norm * 2)[0] == pytest.approx(norm, rel=1e-5)


def test_every_micro_batch_step_and_rank_has_its_own_dropout():
    own = toy.learner(dropout=0.5)
    one, same = toy.packed([1, 2, 3]), toy.packed([1, 2, 3])

    def loss(batches, step):
        return own._accumulate(batches, step).item()

    first, both, later = loss([one], 1), loss([one, same], 1), loss([one], 2)
    assert first == loss([one], 1)
    assert first != later and both != pytest.approx(2 * first)
    own.ranks = Ranks(rank=1)
    assert loss([one], 1) != first


def test_r_drop_goes_twice_only_while_training():
    own = toy.learner(dropout=0.5, loss=CrossEntropy(r_drop=5.0))
    calls = []
    own.model.register_forward_hook(lambda model, given, out: calls.append(len(given[0].pairs)))
    own.step([toy.packed([1, 2])], step=1, updates=0, factor=1.0)
    assert calls == [4]  # both pairs, twice, in one pass
    own.objective.eval()
    own.objective(toy.packed([1, 2]))
    assert calls == [4, 2]


def test_precision_is_timed_and_nothing_is_learned():
    own = toy.learner(dropout=0.0)
    before = {name: tensor.clone() for name, tensor in own.model.state_dict().items()}
    choice, spent = auto.faster_precision(own.objective, toy.packed([1, 2, 3]), machine=Machine(CPU), seconds=0.01)
    assert spent[choice] == min(spent.values()) and set(spent) == {"fp32", "bf16"}
    assert all(torch.equal(tensor, before[name]) for name, tensor in own.model.state_dict().items())
    assert all(parameter.grad is None for parameter in own.model.parameters())


def test_tokens_are_halved_until_the_worst_batch_fits(monkeypatch):
    class Cuda(Machine):
        def free(self) -> None: ...

        def wait(self) -> None: ...

    tried = []

    def objective(batch):
        tried.append(batch.tokens)
        if batch.tokens > 4000:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return torch.zeros((), requires_grad=True)

    class Batch:
        def __init__(self, tokens):
            self.tokens = tokens

        def to(self, device):
            return self

    objective.zero_grad = lambda set_to_none: None  # type: ignore[attr-defined]
    fake = Cuda(torch.device("cuda"))
    assert auto.fit_tokens(objective, Batch, machine=fake, most=8192) == 2048  # type: ignore[arg-type]
    assert tried == [9011, 4505, 2252]
    assert auto.fit_tokens(objective, Batch, machine=Machine(CPU), on_cpu=77) == 77  # type: ignore[arg-type]
    monkeypatch.setattr(auto, "SMALLEST", 5000)
    with pytest.raises(OutOfMemory, match="a batch of 5000"):
        auto.fit_tokens(objective, Batch, machine=fake, most=8192)  # type: ignore[arg-type]


def test_the_configuration_survives_toml():
    from regard.config.toml import structure, unstructure
    from regard.train.optimise import Muon
    from regard.train.schedule import Noam

    config = Train(steps=7, optimiser=Muon(rate=0.02), schedule=Noam(3), loss=CrossEntropy(convention="fairseq"))
    assert structure(Train, unstructure(config)) == config
    assert structure(Train, {"schedule": "cosine"}).schedule.kind == "cosine"


def test_a_learner_needs_no_average():
    own = toy.learner()
    assert isinstance(own, Learner) and own.average is None
    with own.at_rest():
        assert not own.model.training


def test_small_corpora_get_small_batches():
    assert [auto.worth_trying(tokens) for tokens in (0, 900, 25_600, 400_000, 10**9)] == [16, 16, 512, 4096, auto.GPU_TOKENS]

"""A small model, an endless stream of small batches and a whole run of them, for the tests of training; also as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.data.batch import IGNORED, PairBatch, Side
from regard.data.batching import Cursor
from regard.errors import RegardError
from regard.nn.view import Tokens
from regard.train.average import MovingAverage
from regard.train.checkpoint import Checkpoints, Origin
from regard.train.device import Machine
from regard.train.events import Evaluate, Every, LogStep, save
from regard.train.log import Log
from regard.train.loop import Budget, Parts, train
from regard.train.loss import CrossEntropy, Objective
from regard.train.optimise import AdamW, OptimiserConfig, build_optimiser
from regard.train.parallel import Ranks, join
from regard.train.schedule import Constant, Cosine, Schedule
from regard.train.signals import Signals
from regard.train.step import Learner

__all__ = ["Budget", "Constant", "Cursor", "Every", "LogStep", "save"]  # for the tests that import from here
WORDS, WIDTH = 13, 7
PLAIN = AdamW(rate=0.01, decay=0.1)


class Toy(nn.Module):
    """The mean of the source and the last word say the next one; a hidden matrix, biases, dropout and a tied table."""

    def __init__(self, dropout: float = 0.2):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.hidden = nn.Linear(2 * WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(WIDTH, WORDS, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, batch: PairBatch) -> Tensor:
        same = batch.target.tokens.documents[:, :, None] == batch.source.tokens.documents[:, None, :]
        seen = (same & batch.source.tokens.real[:, None, :]).float()
        mean = seen @ self.embedding(batch.source.ids) / seen.sum(-1, keepdim=True).clamp_min(1)
        return self.norm(self.dropout(self.hidden(torch.cat([mean, self.embedding(batch.target.ids)], -1)).tanh()))


def pair(number: int) -> tuple[Tensor, Tensor]:
    """Source and target of a pair: lengths 2 to 6, words 3 to 12; the target is the source shifted by one word."""
    generator = torch.Generator().manual_seed(number)
    source = torch.randint(3, WORDS, (2 + number % 5,), generator=generator)
    return source, (source - 3 + 1) % (WORDS - 3) + 3


def packed(numbers: list[int]) -> PairBatch:
    sources, targets = zip(*(pair(number) for number in numbers))
    marked = [torch.cat([torch.tensor([1]), t]) for t in targets]
    labels = [torch.cat([t, torch.tensor([2])]) for t in targets]
    source = Side(torch.cat(sources)[None], Tokens.packed(torch.tensor([len(s) for s in sources])))
    target = Side(torch.cat(marked)[None], Tokens.packed(torch.tensor([len(t) for t in marked])))
    return PairBatch(source, target, torch.cat(labels)[None], tuple(numbers), source.ids.numel(), target.ids.numel())


def padded(numbers: list[int]) -> PairBatch:
    sources, targets = zip(*(pair(number) for number in numbers))
    marked = [torch.cat([torch.tensor([1]), t]) for t in targets]
    labels = [torch.cat([t, torch.tensor([2])]) for t in targets]

    def rows(parts, filler):
        return nn.utils.rnn.pad_sequence(list(parts), batch_first=True, padding_value=filler)

    def side(parts) -> Side:
        return Side(rows(parts, 0), Tokens.padded(rows([torch.ones(len(p), dtype=torch.bool) for p in parts], False)))

    source_tokens, target_tokens = sum(map(len, sources)), sum(map(len, marked))
    return PairBatch(side(sources), side(marked), rows(labels, IGNORED), tuple(numbers), source_tokens, target_tokens)


@dataclass(frozen=True)
class ToyStream:
    """`pairs` pairs in an order of the seed and the epoch, `size` to a batch; ranks take turns. Batches in `poison` come with NaN in."""

    pairs: int = 47
    size: int = 5
    seed: int = 1
    rank: int = 0
    world: int = 1

    def after(self, cursor: Cursor) -> Iterator[tuple[PairBatch, Cursor]]:
        epoch, batch = cursor.epoch, cursor.batch
        per_epoch = self.pairs // (self.size * self.world)
        while True:
            order = torch.randperm(self.pairs, generator=torch.Generator().manual_seed(1000 * self.seed + epoch)).tolist()
            while batch < per_epoch:
                start = (batch * self.world + self.rank) * self.size
                batch += 1
                following = Cursor(epoch, batch) if batch < per_epoch else Cursor(epoch + 1, 0)
                yield packed(order[start : start + self.size]), following
            epoch, batch = epoch + 1, 0


def learner(
    *,
    dropout: float = 0.2,
    optimiser: OptimiserConfig = PLAIN,
    ema: float = 0.0,
    ranks: Ranks = Ranks(),  # noqa: B008
    clip: float = 1.0,
    loss: CrossEntropy = CrossEntropy(),  # noqa: B008
    model: nn.Module | None = None,
    machine: Machine = Machine(torch.device("cpu")),  # noqa: B008
) -> Learner:
    torch.manual_seed(5)
    model = (model or Toy(dropout)).to(machine.device)
    return Learner(
        Objective(model, loss),  # type: ignore[arg-type]
        build_optimiser(optimiser, model),
        machine=machine,
        ranks=ranks,
        average=MovingAverage(model, ema) if ema else None,
        clip=clip,
    )


def parts(
    folder: Path,
    *,
    steps: int = 12,
    save_every: int = 4,
    evaluate_every: int = 0,
    stream: ToyStream = ToyStream(),
    schedule: Schedule = Cosine(warmup=3),  # noqa: B008
    signals: Signals | None = None,
    accumulate: int = 2,
    own: Learner | None = None,
    origin: Origin = Origin("c", "d"),  # noqa: B008
) -> Parts:
    own = own or learner(ema=0.9)
    batch = padded(list(range(100, 111)))

    def measure(check) -> dict[str, float]:
        check()
        own.objective.eval()
        return {"loss": own.objective(batch.to(own.machine.device)).item() / batch.target_tokens}

    events = [Every("log", LogStep(), steps=1)]
    if evaluate_every:
        events.append(Every("evaluate", Evaluate(measure, score="loss", better="lower"), steps=evaluate_every))
    events.append(Every("save", save, steps=save_every))
    return Parts(
        learner=own,
        batches=stream,
        schedule=schedule,
        budget=Budget(steps=steps),
        checkpoints=Checkpoints(folder / "checkpoints", warn=lambda text: None),
        log=Log(folder / "log.jsonl" if own.ranks.first else None),
        events=events,
        signals=signals or Signals(),
        origin=origin,
        accumulate=accumulate,
    )


def losses(folder: Path) -> dict[int, float]:
    """The loss of each step, from the log."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return {line["step"]: line["loss"] for line in lines if "event" not in line}


class Ended(NamedTuple):
    """How a forked process ended, and what it printed."""

    code: int
    out: str
    error: str


def forked(work: Callable[[], None], *, ranks: int = 1, seconds: float = 60) -> list[Ended]:
    """Run `work` in new processes that need not import torch again; as ranks of one group if there are several.

    A RegardError ends a process with its code, as it does on the command line.
    """
    torch.set_num_threads(1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = []
    for rank in range(ranks):
        out, error = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")  # noqa: SIM115  (read after the child has ended)
        sys.stdout.flush()
        if (child := os.fork()) == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(error.fileno(), 2)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            sys.__stderr__ = sys.stderr
            os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks)}
            os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            signal.alarm(int(seconds))  # a hang is a failure
            code = 1
            try:
                work()
                code = 0
            except RegardError as stop:
                print(stop, file=sys.stderr)
                code = stop.code
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        children.append((child, out, error))
    ended = []
    for child, out, error in children:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        error.seek(0)
        ended.append(Ended(code, out.read(), error.read()))
    return ended


def stop_at(stream: ToyStream, number: int, kind: signal.Signals = signal.SIGTERM) -> ToyStream:
    """The stream, during whose micro-batch `number` (of this process) a signal comes."""

    class Stopping(ToyStream):
        def after(self, cursor: Cursor) -> Iterator[tuple[PairBatch, Cursor]]:
            for count, item in enumerate(super().after(cursor), 1):
                if count == number:
                    signal.raise_signal(kind)
                yield item

    return Stopping(**vars(stream))


def go(folder: Path, steps: int, *, stop: int = 0, size: int = 5, dropout: float = 0.2, optimiser: OptimiserConfig = PLAIN) -> None:
    """Begin the run in the folder, or go on with it, and print the parameters; a signal comes in micro-batch `stop`."""
    torch.set_num_threads(1)
    ranks = join(cuda=False, patience=25)
    try:
        with Signals() as signals:
            own = learner(ema=0.9, optimiser=optimiser, ranks=ranks, dropout=dropout)
            ranks.same(own.model)
            stream = stop_at(ToyStream(size=size, rank=ranks.rank, world=ranks.world), stop)
            run = parts(folder, steps=steps, signals=signals, evaluate_every=5, own=own, stream=stream)
            run.resume()
            train(run)
        if ranks.first:
            print(json.dumps({name: tensor.flatten().tolist() for name, tensor in own.model.state_dict().items()}))
    finally:
        ranks.leave()


if __name__ == "__main__":  # train_toy.py FOLDER STEPS STOP
    try:
        go(Path(sys.argv[1]), int(sys.argv[2]), stop=int(sys.argv[3]), dropout=float(os.environ.get("DROPOUT", "0.2")))
    except RegardError as error:
        print(error, file=sys.stderr)
        sys.exit(error.code)

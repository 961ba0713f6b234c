"""`regard classify`: files in, a label and its probability for each, a line each, in order."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.loaded.classifier import Labels, LoadedClassifier
    from regard.loaded.reader import LoadedReader


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a model folder or a run folder")
    files = "pictures, recordings, graphs, points, or texts by lines; - or nothing: their paths (or the lines) by standard input"
    parser.add_argument("files", nargs="*", default=["-"], help=files)
    parser.add_argument("--top", type=int, default=1, metavar="N", help="so many labels for each, likeliest first")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")


def run(arguments: argparse.Namespace) -> int:
    import json
    from itertools import chain

    from regard.errors import UsageError
    from regard.loaded import load_classifier
    from regard.loaded.reader import LoadedReader

    if arguments.top < 1:
        raise UsageError(f"--top {arguments.top} shows nothing", do="take 1 or more")
    model = load_classifier(arguments.model, device=arguments.device, precision=arguments.precision)
    if isinstance(model, LoadedReader):
        return tag(model, arguments)
    lines = model.config.kind == "text-classifier"  # texts lie in files by lines, other things are files
    files = chain.from_iterable(named() if not lines and file == "-" else [file] for file in arguments.files)
    for name, labels in answers(model, files, top=arguments.top):
        if arguments.json:
            found = [{"label": label, "probability": round(share, 6)} for label, share in zip(labels.names, labels.probabilities)]
            print(json.dumps({"text" if lines else "file": name, "labels": found}, ensure_ascii=False))
        else:
            print("\t".join([name, *(f"{label} {share:.4f}" for label, share in zip(labels.names, labels.probabilities))]))
    return 0


def tag(model: LoadedReader, arguments: argparse.Namespace) -> int:
    """Texts by lines; of each word its label."""
    import json
    from itertools import islice

    from regard.commands.translate import sentences

    lines = (line for file in arguments.files for line in sentences(file))
    while some := list(islice(lines, 64)):
        for text, words in zip(some, model.tag(some), strict=True):
            if arguments.json:
                told = [{"word": one.word, "label": one.label, "probability": round(one.probability, 6)} for one in words]
                print(json.dumps({"text": text, "words": told}, ensure_ascii=False))
            else:
                print(" ".join(f"{one.word}/{one.label}" for one in words))
    return 0


def answers(model: LoadedClassifier, files: Iterator[str], *, top: int) -> Iterator[tuple[str, Labels]]:
    """The labels of each file, of each line of text, or of each node of each graph, which is named FILE:NUMBER."""
    from itertools import islice

    from regard.commands.translate import sentences

    if model.config.kind == "graph-classifier":
        for file in files:
            yield from ((f"{file}:{number}", labels) for number, labels in enumerate(model.classify_nodes(file, top=top)))
        return
    if model.config.kind == "text-classifier":
        files = (line for file in files for line in sentences(file))
    while some := list(islice(files, 64)):
        yield from zip(some, model.classify(some, top=top), strict=True)


def named() -> Iterator[str]:
    """The paths that come by standard input, a line each."""
    import os
    import sys

    from regard.data.text import unreadable

    try:
        yield from (os.fsdecode(line.rstrip(b"\n")) for line in sys.stdin.buffer if line != b"\n")
    except OSError as error:
        raise unreadable("standard input", error) from None

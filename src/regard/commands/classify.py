"""`regard classify`: files in, a label and its probability for each, a line each, in order."""

from __future__ import annotations

import argparse
from collections.abc import Iterator


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a model folder or a run folder")
    parser.add_argument("files", nargs="*", default=["-"], help="pictures or recordings; - or nothing: their paths by standard input")
    parser.add_argument("--top", type=int, default=1, metavar="N", help="so many labels for each, likeliest first")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")


def run(arguments: argparse.Namespace) -> int:
    import json
    from itertools import chain, islice

    from regard.errors import UsageError
    from regard.loaded import load_classifier

    if arguments.top < 1:
        raise UsageError(f"--top {arguments.top} shows nothing", do="take 1 or more")
    model = load_classifier(arguments.model, device=arguments.device, precision=arguments.precision)
    files = chain.from_iterable(named() if file == "-" else [file] for file in arguments.files)
    while some := list(islice(files, 64)):
        for file, labels in zip(some, model.classify(some, top=arguments.top), strict=True):
            if arguments.json:
                found = [{"label": name, "probability": round(share, 6)} for name, share in zip(labels.names, labels.probabilities)]
                print(json.dumps({"file": file, "labels": found}, ensure_ascii=False))
            else:
                print("\t".join([file, *(f"{name} {share:.4f}" for name, share in zip(labels.names, labels.probabilities))]))
    return 0


def named() -> Iterator[str]:
    """The paths that come by standard input, a line each."""
    import os
    import sys

    from regard.data.text import unreadable

    try:
        yield from (os.fsdecode(line.rstrip(b"\n")) for line in sys.stdin.buffer if line != b"\n")
    except OSError as error:
        raise unreadable("standard input", error) from None

"""`regard score`: how probable a model finds given translations, a number a line."""

from __future__ import annotations

import argparse

from regard.commands.translate import sentences


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a model folder or a run folder")
    parser.add_argument("--source", required=True, help="file of source sentences; -: standard input")
    parser.add_argument("--target", required=True, help="file of translations, line by line; -: standard input")
    parser.add_argument("--per-token", action="store_true", help="the mean over the tokens instead of the sum")
    parser.add_argument("--json", action="store_true", help="one JSON object a line, with every token's log-probability")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")


def run(arguments: argparse.Namespace) -> int:
    import json
    import sys

    from regard.errors import DataError
    from regard.evaluate.perplexity import perplexity
    from regard.loaded import load_translator

    model = load_translator(arguments.model, device=arguments.device, precision=arguments.precision)
    sources, targets = list(sentences(arguments.source)), list(sentences(arguments.target))
    if len(sources) != len(targets):
        what = f"{len(sources):,} lines, but {arguments.target} has {len(targets):,}"
        raise DataError(what, where=arguments.source, do="the two files must be aligned line by line")
    scores = model.score(sources, targets)
    for target, score in zip(targets, scores, strict=True):
        if arguments.json:
            pieces = [model.target.piece(piece) for piece in model.target.encode(target)]
            print(json.dumps({"log_prob": score.log_prob, "pieces": [*pieces, "</s>"], "log_probs": score.log_probs}, ensure_ascii=False))
        else:
            print(f"{score.log_prob / (score.tokens if arguments.per_token else 1):.6f}")
    print(perplexity(((score.log_prob, score.tokens) for score in scores), unit="token"), file=sys.stderr)
    return 0

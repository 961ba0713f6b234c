"""`regard score`: how probable a model finds given translations, a number a line."""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a model folder or a run folder")
    parser.add_argument("--source", required=True, help="file of source sentences")
    parser.add_argument("--target", required=True, help="file of translations, line by line")
    parser.add_argument("--per-token", action="store_true", help="the mean over the tokens instead of the sum")
    parser.add_argument("--json", action="store_true", help="one JSON object a line, with every token's log-probability")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")


def run(arguments: argparse.Namespace) -> int:
    import json
    import sys

    import regard
    from regard.data.parallel import Lines, read_rows
    from regard.evaluate.perplexity import perplexity

    model = regard.load(arguments.model, device=arguments.device, precision=arguments.precision)
    rows = list(read_rows(Lines(arguments.source, arguments.target)))
    for row in rows:
        for defect in row.defects:
            print(f"{defect}, scored as an empty line", file=sys.stderr)
    scores = model.score([row.source for row in rows], [row.target for row in rows])
    for row, score in zip(rows, scores, strict=True):
        if arguments.json:
            pieces = [model.target.piece(piece) for piece in model.target.encode(row.target)]
            print(json.dumps({"log_prob": score.log_prob, "pieces": [*pieces, "</s>"], "log_probs": score.log_probs}, ensure_ascii=False))
        else:
            print(f"{score.log_prob / (score.tokens if arguments.per_token else 1):.6f}")
    print(perplexity(((score.log_prob, score.tokens) for score in scores), unit="token"), file=sys.stderr)
    return 0

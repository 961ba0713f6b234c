"""`regard evaluate`: scores of a model on a test set, or of ready translations, as JSON with signatures."""

from __future__ import annotations

import argparse

from regard.commands.translate import decoding_of, loaded, search_arguments, sentences


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", help="a model folder or a run folder; or give --hypothesis")
    parser.add_argument("--hypothesis", help="file of ready translations, instead of a model")
    parser.add_argument("--source", help="file of source sentences, for a model")
    parser.add_argument("--reference", required=True, action="append", help="file of reference translations; may be repeated")
    parser.add_argument(
        "--metric",
        action="append",
        help="bleu, chrf, chrf++, ter, multi-bleu, rouge-1, rouge-2, rouge-l, exact; may be repeated (bleu, chrf and ter unless given)",
    )
    parser.add_argument("--against", metavar="FILE", help="other translations: is the difference more than chance?")
    parser.add_argument("--lowercase", action="store_true", help="score without case")
    parser.add_argument("--output", metavar="FILE", help="write the translations there")
    search_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    import json
    from pathlib import Path

    from regard.errors import DataError, UsageError
    from regard.evaluate.bleu import metric, score
    from regard.evaluate.significance import paired_bootstrap
    from regard.evaluate.translations import score_translations
    from regard.models.folder import replace_text

    names = arguments.metric or ["bleu", "chrf", "ter"]
    for name in names:
        metric(name)
    if arguments.output and not Path(arguments.output).absolute().parent.is_dir():
        raise UsageError("there is no such folder to write into", where=arguments.output, do="make it, or choose another --output")
    if bool(arguments.model) == bool(arguments.hypothesis):
        raise UsageError("give either a model (with --source) or --hypothesis")
    if arguments.model and not arguments.source:
        raise UsageError("a model needs source sentences to translate", do="give --source FILE")
    lines = list(sentences(arguments.source if arguments.model else arguments.hypothesis))
    references = [list(sentences(file)) for file in arguments.reference]
    others = list(sentences(arguments.against)) if arguments.against else lines
    for file, beside in zip([*arguments.reference, arguments.against], [*references, others]):
        if len(beside) != len(lines):  # said before minutes are spent on translating
            against = f"{len(lines):,} {'sources' if arguments.model else 'hypotheses'}"
            raise DataError(f"{len(beside):,} lines beside {against}", where=file, do="give line for line")
    if arguments.model:
        model = loaded(arguments)
        answers = model.candidates(lines, decoding=decoding_of(arguments, model.decoding))
        texts = [answer.text for answer in answers]
        scores = score_translations(names, answers, references[0], target=model.target) if len(references) == 1 else None
    else:
        texts, scores = lines, None
    if scores is None or arguments.lowercase:
        scores = {name: score(name, texts, references, lowercase=arguments.lowercase).json() for name in names}
    report: dict = {"scores": scores, "lines": len(texts)}
    if arguments.against:
        measures = {name: metric(name, lowercase=arguments.lowercase) for name in names}
        report["against"] = {name: paired_bootstrap(measures[name], texts, others, references).json() for name in names}
    print(json.dumps(report, indent=1, ensure_ascii=False), flush=True)
    if arguments.output:
        replace_text(Path(arguments.output), "".join(text + "\n" for text in texts))
    return 0

"""`regard translate`: lines in, as many lines out, in order."""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a model folder, a run folder, or several with commas between them, which then decide together")
    parser.add_argument(
        "file", nargs="?", default="-", help="file of sentences, one a line (plain, .gz, .xz, .zst); - or nothing: standard input"
    )
    search_arguments(parser)
    parser.add_argument("--n-best", type=int, default=0, metavar="N", help="N candidates a line, in Moses' form")
    parser.add_argument("--json", action="store_true", help="one JSON object a line: text, score, pieces, log-probabilities")
    parser.add_argument("--alignment", action="store_true", help="word alignments i-j behind each line")
    parser.add_argument("--heads", default="", metavar="L:H,...", help="with --alignment: the layers and heads of the decoder to ask")
    parser.add_argument("--prefix", metavar="FILE", help="file with how each translation must begin, line for line")
    parser.add_argument("--ban", action="append", default=[], metavar="WORDS", help="words that no translation contains; may be repeated")
    parser.add_argument("--interactive", action="store_true", help="answer each line before the next one is read")


def search_arguments(parser: argparse.ArgumentParser) -> None:
    """How to search and where to compute: the same for every verb that translates."""
    parser.add_argument("--beam", type=int, help="width of the beam; 1: greedy")
    parser.add_argument("--length-penalty", type=float, metavar="A", help="GNMT's alpha of the beam")
    parser.add_argument("--length-exponent", type=float, metavar="P", help="divide by length^P instead, as Hugging Face and fairseq do")
    parser.add_argument("--coverage", type=float, metavar="B", help="GNMT's coverage penalty of the beam")
    parser.add_argument("--sample", action="store_true", help="draw words by lot")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--top-k", type=int, default=0)
    parser.add_argument("--top-p", type=float, default=1.0)
    parser.add_argument("--min-p", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0, help="of sampling")
    parser.add_argument("--max-length", type=int, help="no translation has more tokens")
    parser.add_argument("--no-repeat", type=int, metavar="N", help="no N tokens occur twice in a row of words")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0: as many as there are cores")


def run(arguments: argparse.Namespace) -> int:
    import sys
    from functools import partial

    from regard.data.text import read_lines
    from regard.decode.formats import as_json, n_best, plain
    from regard.decode.translate import translate_stream

    model = loaded(arguments)
    decoding = decoding_of(arguments, model.decoding, count=arguments.n_best)
    prefixes = [line.text for line in read_lines(arguments.prefix)] if arguments.prefix else []
    warn = partial(print, file=sys.stderr)

    def some(texts: list[str], *, first: int):
        return model.candidates(
            texts,
            decoding=decoding,
            prefixes=prefixes[first : first + len(texts)],
            banned=arguments.ban,
            alignment=arguments.alignment,
            heads=heads_of(arguments.heads),
            first=first,
            warn=warn,
        )

    # a terminal gets its answer at once; a file is sorted by length in large pieces
    chunk = 1 if arguments.interactive or (arguments.file == "-" and sys.stdin.isatty()) else 4096
    for number, answer in enumerate(translate_stream(sentences(arguments.file), some, chunk=chunk)):
        if arguments.json:
            print(as_json(answer, n_best=arguments.n_best > 0, alignment=arguments.alignment), flush=chunk == 1)
        elif arguments.n_best:
            print("\n".join(n_best(number, answer, alignment=arguments.alignment)), flush=chunk == 1)
        else:
            print(plain(answer, alignment=arguments.alignment), flush=chunk == 1)
    return 0


def loaded(arguments: argparse.Namespace):
    """The model or models that were named, where they are wanted."""
    from regard.loaded import load_translator

    threaded(arguments.threads)
    return load_translator(*arguments.model.split(","), device=arguments.device, precision=arguments.precision)


def threaded(threads: int) -> None:
    """So many CPU threads, if a number is given."""
    import torch

    from regard.errors import UsageError

    if threads < 0:
        raise UsageError(f"--threads {threads} is negative", do="take 0 (all cores) or more")
    if threads:
        torch.set_num_threads(threads)


def decoding_of(arguments: argparse.Namespace, proposed, *, count: int = 0):
    """What the model proposes, changed by what the flags say."""
    from dataclasses import replace

    from regard.decode.beam import Beam
    from regard.decode.penalties import Exponent, Gnmt
    from regard.decode.sample import Greedy, Sample
    from regard.errors import UsageError

    for name, number in {"--beam": arguments.beam, "--n-best": count or None}.items():
        if number is not None and number < 1:
            raise UsageError(f"{name} {number} finds nothing", do="take 1 or more")
    search = proposed.search
    if arguments.sample:
        search = Sample(arguments.temperature, arguments.top_k, arguments.top_p, arguments.min_p, seed=arguments.seed, draws=max(1, count))
    elif arguments.beam == 1 and count <= 1:
        search = Greedy()
    elif arguments.beam or count or arguments.length_penalty is not None or arguments.length_exponent is not None or arguments.coverage:
        size = arguments.beam or max(count, search.size if isinstance(search, Beam) else 4)
        search = replace(search if isinstance(search, Beam) else Beam(), size=size, n_best=max(1, count))
        if arguments.length_penalty is not None:
            search = replace(search, penalty=Gnmt(arguments.length_penalty))
        if arguments.length_exponent is not None:
            search = replace(search, penalty=Exponent(arguments.length_exponent))
        if arguments.coverage is not None:
            search = replace(search, coverage=arguments.coverage)
    given = {"search": search, "max_length": arguments.max_length, "no_repeat": arguments.no_repeat}
    return replace(proposed, **{name: value for name, value in given.items() if value is not None})


def heads_of(text: str) -> list[tuple[int, int]]:
    """`2:0,2:3` as pairs of layer and head."""
    from regard.errors import UsageError

    try:
        return [(int(layer), int(head)) for layer, head in (pair.split(":") for pair in text.split(",") if pair)]
    except ValueError:
        raise UsageError(f"{text!r} does not name heads", where="--heads", do="write layer:head,layer:head with numbers from 0") from None


def sentences(file: str):
    """The lines of a file or of standard input, split at newlines only; what is no text is an empty line, so that lines stay aligned."""
    import sys

    from regard.data.text import lines_of, read_lines

    name = "standard input" if file == "-" else file
    for line in lines_of(sys.stdin.buffer, name=name) if file == "-" else read_lines(file):
        if line.defect:
            print(f"{name}:{line.number}: {line.defect}, left empty", file=sys.stderr)
        yield line.text

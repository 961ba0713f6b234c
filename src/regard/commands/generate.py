"""`regard generate`: a language model goes on with what it is given, or fills in what is hidden in it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.loaded.reader import LoadedReader


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a model folder or a run folder")
    parser.add_argument(
        "--prompt",
        default="",
        metavar="TEXT",
        help="how the text begins, or a text with <mask> in it; -: each line of standard input is one; of music a MIDI file",
    )
    parser.add_argument("--midi", default="", metavar="FILE", help="write music as a MIDI file; several pieces are numbered")
    parser.add_argument("--max-length", type=int, default=200, metavar="N", help="tokens that are written at most, without the prompt's")
    parser.add_argument("--count", type=int, default=1, metavar="N", help="so many texts for each prompt")
    parser.add_argument("--beam", type=int, default=0, help="search for the likeliest text with a beam of this width; 1: greedy")
    parser.add_argument("--temperature", type=float, default=1.0, help="of drawing by lot: below 1 surer, above 1 wilder")
    parser.add_argument("--top-k", type=int, default=0, help="draw from the K likeliest tokens alone")
    parser.add_argument("--top-p", type=float, default=1.0, help="draw from the fewest tokens that hold this share of the probability")
    parser.add_argument("--min-p", type=float, default=0.0, help="draw from tokens with this share of the likeliest one's probability")
    parser.add_argument("--seed", type=int, default=0, help="of drawing by lot")
    parser.add_argument("--json", action="store_true", help="one JSON object a text: prompt, text, pieces, log-probabilities")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")


def run(arguments: argparse.Namespace) -> int:
    import json
    import sys
    from functools import partial
    from itertools import islice

    from regard.commands.composing import MidiFiles, grid_of, prompt_of
    from regard.commands.translate import sentences
    from regard.errors import UsageError
    from regard.loaded import load_language_model
    from regard.loaded.reader import LoadedReader

    if arguments.count < 1:
        raise UsageError(f"--count {arguments.count} writes nothing", do="take 1 or more")
    model, search = load_language_model(arguments.model, device=arguments.device, precision=arguments.precision), search_of(arguments)
    if isinstance(model, LoadedReader):
        return fill(model, arguments)
    grid = grid_of(model.text.vocabulary, midi=arguments.midi, where=arguments.model)
    several = arguments.count > 1 or arguments.prompt == "-"
    files = MidiFiles(arguments.midi, grid, several=several) if grid is not None and arguments.midi else None
    prompts, first = iter(sentences("-") if arguments.prompt == "-" else [prompt_of(arguments.prompt, grid)]), 0
    chunk = 1 if arguments.prompt == "-" and sys.stdin.isatty() else 256
    while some := list(islice(prompts, chunk)):
        found = model.generate(
            some,
            max_length=arguments.max_length,
            search=search,
            count=arguments.count,
            first=first,
            warn=partial(print, file=sys.stderr),
        )
        first += len(some)
        for one in (one for each in found for one in each):
            if files is not None:
                print(files.write(one.prompt + one.text), flush=chunk == 1)
            elif arguments.json:
                told = {"prompt": one.prompt, "text": one.text, "log_prob": one.log_prob, "ended": one.ended}
                print(json.dumps(told | {"pieces": one.pieces, "log_probs": one.log_probs}, ensure_ascii=False), flush=chunk == 1)
            else:
                print(one.prompt + one.text, flush=chunk == 1)
    return 0


def fill(model: LoadedReader, arguments: argparse.Namespace) -> int:
    """Masked words: the likeliest text, or with --count for each mask so many words and their probabilities."""
    import json
    from math import exp

    from regard.commands.translate import sentences

    for prompt in sentences("-") if arguments.prompt == "-" else [arguments.prompt]:
        (found,) = model.fill([prompt], top=max(arguments.count, 5 if arguments.json else 1))
        if arguments.json:
            masks = [[{"piece": piece, "log_prob": log_prob} for piece, log_prob in words] for words in found.choices]
            print(json.dumps({"prompt": found.prompt, "text": found.text, "masks": masks}, ensure_ascii=False))
        elif arguments.count == 1:
            print(found.text)
        else:
            for words in found.choices:
                print("  ".join(f"{piece} {exp(log_prob):.4f}" for piece, log_prob in words))
    return 0


def search_of(arguments: argparse.Namespace):
    """Greedy, a beam, or by lot."""
    from regard.decode.beam import Beam
    from regard.decode.sample import Greedy, Sample
    from regard.errors import UsageError

    if arguments.beam < 0:
        raise UsageError(f"--beam {arguments.beam} finds nothing", do="take 1 or more, or leave it out to draw by lot")
    if arguments.beam and arguments.count > arguments.beam:
        raise UsageError(f"--count {arguments.count} of a beam of {arguments.beam}", do="widen the beam")
    if arguments.beam > 1:
        return Beam(size=arguments.beam)
    if arguments.beam:
        return Greedy()
    return Sample(arguments.temperature, arguments.top_k, arguments.top_p, arguments.min_p, seed=arguments.seed)

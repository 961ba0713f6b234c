"""`regard look`: one page on which to see a model at work; opened in a browser, written to a file, drawn as a figure, or told as text."""

from __future__ import annotations

import argparse

from regard.commands.translate import search_arguments

KINDS = {"encoder": "enc-self", "cross": "cross", "decoder": "dec-self"}
MOST = 64  # sentences on one page
FILES = ("image-classifier", "image-captioner", "graph-classifier")  # models of these kinds read files


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", help="a model folder or a run folder; not needed where --trace gives what is shown")
    reads = "a sentence, the path of a picture, or FILE:NODE of a graph; - or nothing: standard input, one a line"
    parser.add_argument("text", nargs="?", default="-", help=reads)
    parser.add_argument("--export", metavar="FILE.html", help="write the page as one file that needs no server and no network")
    parser.add_argument("--figure", metavar="FILE", help="draw one view as .svg, .pdf or .png, for a slide or a paper")
    parser.add_argument("--save", metavar="FILE.trace", help="write what was seen as a file (docs/traces.md)")
    parser.add_argument("--trace", action="append", default=[], metavar="FILE", help="show such a file; may be repeated")
    parser.add_argument("--walk", metavar="TOKEN", help="tell every vector of one token, by its place from 0 or its text, layer by layer")
    tables = "tell a number for each pair of tokens: scores, bias, mask, masked, weights or form (W_Q W_K^T) of one head"
    parser.add_argument("--table", metavar="NAME", help=tables + "; or next: the words that may follow, or the labels")
    parser.add_argument("--json", action="store_true", help="what --walk and --table tell as JSON, every number of it")
    parser.add_argument("--layer", type=int, metavar="N", help="record this layer only; a figure shows it")
    parser.add_argument("--heads", default="", metavar="0,3,...", help="record these heads only; a figure shows them")
    parser.add_argument(
        "--from", dest="looks", metavar="TOKEN", help="of a figure over a picture: who looks, the class, a patch as 3,5 or a word"
    )
    parser.add_argument("--kind", choices=list(KINDS), help="record this attention only; a figure shows it")
    parser.add_argument(
        "--mask", action="append", default=[], metavar="PATTERN", help="draw who may see whom, as [model.encoder.own] writes it; repeatable"
    )
    plates = "draw what needs no model, to --figure: hull, regression or sinusoid"
    parser.add_argument("--draw", choices=["hull", "regression", "sinusoid"], metavar="NAME", help=plates)
    parser.add_argument("--length", type=int, default=12, metavar="N", help="positions of a mask (12)")
    parser.add_argument("--port", type=int, default=0, help="where to serve the page on this machine; 0: any free port")
    parser.add_argument("--no-browser", action="store_true", help="print the address of the page and open nothing")
    search_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from regard.errors import UsageError
    from regard.look.page import write_page
    from regard.look.trace import load, save

    if arguments.draw:
        plate(arguments.draw, arguments.figure)
        return 0
    if arguments.mask:
        masks(arguments.mask, arguments.length, head=numbers(arguments.heads)[0] if arguments.heads else 0, figure=arguments.figure)
        return 0
    for name, value in {"--layer": arguments.layer or 0, "--port": arguments.port}.items():
        if value < 0:
            raise UsageError(f"{name} {value} is negative", do="take 0 or more")
    kinds, layers, heads = (KINDS[arguments.kind],) if arguments.kind else tuple(KINDS.values()), None, None
    if arguments.layer is not None:
        layers = [arguments.layer]
    if arguments.heads:
        heads = numbers(arguments.heads)
    if arguments.walk is not None or arguments.table:
        print(told_inside(arguments, kind=kinds[0] if arguments.kind else None, layers=layers, heads=heads), end="")
        return 0
    traces, look = [load(path) for path in arguments.trace], None
    if arguments.model:
        look, reads = watching(arguments, kinds=kinds, layers=layers, heads=heads)
        traces += [look(text) for text in texts(arguments.text)]
        if reads != "texts":  # a page may ask for sentences, but not name files
            look = None
    if not traces:
        raise UsageError("there is nothing to look at", do='name a model and a text: regard look runs/demo "Guten Morgen!"')
    if arguments.save:
        save(only(traces, "--save"), arguments.save)
        told(arguments.save, "regard look --trace FILE shows it again")
    if arguments.figure:
        draw(
            only(traces, "--figure"),
            arguments.figure,
            kind=kinds[0] if arguments.kind else None,
            layer=arguments.layer,
            heads=heads,
            looks=arguments.looks,
        )
        told(arguments.figure, "")
    if arguments.export:
        write_page(arguments.export, traces)
        told(arguments.export, "open it in a browser")
    if not (arguments.save or arguments.figure or arguments.export):
        serve(traces, look, port=arguments.port, browser=not arguments.no_browser)
    return 0


def watching(arguments: argparse.Namespace, *, kinds, layers, heads):
    """The model as a function from a text, or from the name of a file, to what was seen; and which of the two."""
    from functools import partial

    model, decoding = opened(arguments)
    reads = "files" if model.config.kind in FILES else "texts"
    return partial(model.look, decoding=decoding, kinds=kinds, layers=layers, heads=heads), reads


def opened(arguments: argparse.Namespace):
    """The model, of any kind, and how it searches if it translates."""
    from regard.commands.translate import decoding_of, threaded
    from regard.loaded import load
    from regard.loaded.translator import LoadedTranslator

    threaded(arguments.threads)
    model = load(*arguments.model.split(","), device=arguments.device, precision=arguments.precision)
    return model, decoding_of(arguments, model.decoding) if isinstance(model, LoadedTranslator) else None


def told_inside(arguments: argparse.Namespace, *, kind, layers, heads) -> str:
    """A walk or a table, as text or as JSON."""
    import json

    from regard.errors import UsageError
    from regard.look import telling

    if not arguments.model:
        raise UsageError("a walk and a table need a model", do='name one: regard look runs/demo "Guten Morgen!" --walk 0')
    one = texts(arguments.text)
    if len(one) > 1:
        raise UsageError(f"--walk and --table take one sentence, not {len(one)}")
    model, decoding = opened(arguments)
    head, layer = heads[0] if heads else 0, layers[0] if layers else None

    def told(found, as_text, as_json) -> str:
        return json.dumps(as_json(found), ensure_ascii=False) + "\n" if arguments.json else as_text(found)

    if arguments.walk is not None:
        found = model.walk(one[0], arguments.walk, decoding=decoding, kind=kind, layers=layers, heads=heads)
        return told(found, telling.told_walk, telling.walk_json)
    if arguments.table == "next":
        return told(model.look(one[0], decoding=decoding), telling.told_next, telling.next_json)
    if arguments.table == "form":
        found = model.form(one[0], decoding=decoding, kind=kind, layer=layer, head=head)
        return told(found, telling.told_form, telling.form_json)
    found = model.table(one[0], arguments.table, decoding=decoding, kind=kind, layer=layer, head=head)
    return told(found, telling.told_table, telling.table_json)


def texts(given: str) -> list[str]:
    """The sentences to look at: those of the argument, or of standard input."""
    import sys

    from regard.commands.translate import sentences
    from regard.errors import UsageError

    if given == "-" and sys.stdin.isatty():
        raise UsageError("there is no text to look at", do='write one: regard look MODEL "Guten Morgen!"')
    lines = sentences("-") if given == "-" else given.split("\n")
    found = [line for line in lines if line.strip()]
    if not found:
        raise UsageError("there is no text to look at", do='write one: regard look MODEL "Guten Morgen!"')
    if len(found) > MOST:
        raise UsageError(f"{len(found)} sentences do not fit on one page", do=f"give at most {MOST}")
    return found


def draw(trace, path: str, *, kind, layer, heads, looks) -> None:
    """One view; what nobody has chosen is the head in which most is to be seen."""
    from regard.look.figure import figure
    from regard.look.figure_picture import over_picture
    from regard.look.opening import clearest
    from regard.look.printing import write_figure

    opening = clearest(trace, kind, layer=layer)
    if trace.pictures and opening.kind != "dec-self":
        write_figure(
            path, over_picture(trace, opening.kind, opening.layer, heads or trace.find(opening.kind, opening.layer).heads, looks=looks)
        )
        return
    write_figure(path, figure(trace, opening.kind, opening.layer, heads or [opening.head]))


def plate(name: str, path: str | None) -> None:
    """A drawing of its own."""
    from regard.errors import UsageError
    from regard.look.plates import PLATES
    from regard.look.printing import write_figure

    if not path:
        raise UsageError("--draw needs a file", do=f"say where to: --draw {name} --figure {name}.svg")
    write_figure(path, PLATES[name]())
    told(path, "")


def masks(patterns: list[str], length: int, *, head: int, figure: str | None) -> None:
    """Each pattern as text, or all of them as one figure."""
    from regard.look.masks import mask, picture, text
    from regard.look.printing import write_figure

    seen = {given: mask(pattern(given), length, head=head) for given in patterns}
    if figure:
        write_figure(figure, picture(seen))
        told(figure, "")
        return
    print("\n".join(f"{given}\n{text(one)}" for given, one in seen.items()), end="")


def pattern(given: str):
    """`causal`, or a value of TOML such as `[{ kind = "window", reach = 2 }, "causal"]`, whose parts must all hold."""
    import re
    import tomllib

    from regard.config.toml import structure
    from regard.errors import UsageError
    from regard.nn.attention.multihead import Attention
    from regard.nn.attention.patterns import together

    value = f'"{given}"' if re.fullmatch(r"[\w-]+", given) else given
    try:
        table = tomllib.loads(f"pattern = {value}")
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{given} is not TOML: {error}", where="--mask", do='write causal, or { kind = "window", reach = 2 }') from None
    found = structure(Attention, table, where="--mask").pattern
    return together(found)


def serve(traces, look, *, port: int, browser: bool) -> None:
    """The live page, until Ctrl-C."""
    import webbrowser
    from contextlib import suppress

    from regard.serve.app import Server
    from regard.serve.explorer import explorer

    with Server(explorer(traces, look=look), port=port) as server:
        print(f"{server.url}\nThe page is served to this machine alone; Ctrl-C ends it.", flush=True)
        if browser:
            webbrowser.open(server.url)
        with suppress(KeyboardInterrupt):
            server.serve_forever()


def numbers(text: str) -> list[int]:
    """`0,3` as numbers."""
    from regard.errors import UsageError

    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{text!r} does not name heads", where="--heads", do="write numbers from 0 with commas between them") from None


def only(traces, flag: str):
    """The one trace that a file can hold."""
    from regard.errors import UsageError

    if len(traces) > 1:
        raise UsageError(f"{flag} takes one sentence, not {len(traces)}", do="give one, or --export a page of them all")
    return traces[0]


def told(path: str, then: str) -> None:
    """What was written, and how large it is."""
    from pathlib import Path

    print(f"{path}: {Path(path).stat().st_size / 1000:,.0f} kB{f'; {then}' if then else ''}")

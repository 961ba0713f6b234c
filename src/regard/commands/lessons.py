"""`regard lessons`: a course whose pages run; in a browser, as files, as notebooks, and for a class with blanks."""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="open this lesson; nothing: list them, or with --to write them all")
    parser.add_argument("--to", metavar="FOLDER", help="write pages that need no network into this folder, and open nothing")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--notebook", action="store_true", help="with --to: a notebook, its outputs within")
    kinds.add_argument("--markdown", action="store_true", help="with --to: Markdown, its figures beside it")
    parser.add_argument(
        "--blanks", action="store_true", help="the version for a class: answers, verdicts and some lines of code are left out"
    )
    parser.add_argument("--port", type=int, default=0, help="where to serve the page on this machine; 0: any free port")
    parser.add_argument("--no-browser", action="store_true", help="print the address of the page and open nothing")


def run(arguments: argparse.Namespace) -> None:
    from regard import lessons
    from regard.errors import UsageError

    if arguments.name:
        lessons.find(arguments.name)
    if (arguments.notebook or arguments.markdown) and not arguments.to:
        raise UsageError("a notebook and Markdown are files", do="say into which folder: --to FOLDER")
    if arguments.to:
        write(arguments)
    elif arguments.name:
        serve(arguments)
    else:
        for place, name in enumerate(lessons.names(), 1):
            print(f"{place:2} {name:24} {lessons.find(name).summary}")


def write(arguments: argparse.Namespace) -> None:
    """One lesson, or the whole course and its contents."""
    from pathlib import Path

    from regard.lessons import names, written

    chosen = [arguments.name] if arguments.name else names()
    kind = "notebook" if arguments.notebook else "markdown" if arguments.markdown else "html"
    folder = Path(arguments.to)
    for name in chosen:
        for path in written.write(folder, written.lesson(name, kind, blanks=arguments.blanks, course=len(chosen) > 1)):
            print(path)
    if len(chosen) > 1 and kind != "notebook":
        print(*written.write(folder, written.contents(kind)), sep="\n")


def serve(arguments: argparse.Namespace) -> None:
    """The course as live pages, until Ctrl-C."""
    import webbrowser
    from contextlib import suppress

    from regard.lessons import names, written
    from regard.serve.app import Server
    from regard.serve.lessons import course

    with Server(course(arguments.name, names(), lambda name: written.page(name, blanks=arguments.blanks)), port=arguments.port) as server:
        print(f"{server.url}\nThe page is served to this machine alone; Ctrl-C ends it.", flush=True)
        if not arguments.no_browser:
            webbrowser.open(server.url)
        with suppress(KeyboardInterrupt):
            server.serve_forever()

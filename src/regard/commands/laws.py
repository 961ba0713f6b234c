"""`regard laws`: a mechanism of one's own against the laws that the package's own mechanisms keep."""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a file of Python with kinds of your own; see docs/extend.md")
    parser.add_argument("--json", action="store_true", help="one JSON object a law")


def run(arguments: argparse.Namespace) -> int:
    import json
    from dataclasses import asdict

    from regard.config.extend import extended
    from regard.laws.book import findings, page

    with extended([arguments.file]) as (extension,):
        found = list(findings(extension))
    print("\n".join(json.dumps(asdict(one)) for one in found) if arguments.json else page(found))
    return 1 if any(one.result == "broken" for one in found) else 0

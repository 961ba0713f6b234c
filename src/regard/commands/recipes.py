"""`regard recipes`: what can be trained by name."""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="show this recipe's TOML")


def run(arguments: argparse.Namespace) -> None:
    from regard import recipes

    if arguments.name:
        print(recipes.find(arguments.name).read_text("utf-8"), end="")
        return
    for name, says in recipes.listed():
        print(f"{name:28} {says}")

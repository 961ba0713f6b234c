"""The command line: parse, call, and turn what went wrong into one line and an exit code. Nothing heavy is imported before a verb runs."""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import os
import signal
import sys
from importlib import import_module
from typing import NoReturn

from regard.errors import Interrupted, RegardError

VERBS = {
    "demo": "train the embedded corpus on this CPU, score it, translate, and write a page to look inside",
    "train": "train a model from a recipe, a TOML file, or just two text files",
    "translate": "translate lines with a trained model",
    "generate": "go on with a text, by a language model",
    "classify": "labels of texts, pictures, recordings and graphs, with their probabilities",
    "score": "log-probability of given translations, line by line",
    "evaluate": "BLEU and other scores of a model or of ready translations",
    "look": "see what each head attends to: one self-contained page",
    "plan": "parameters, FLOPs, memory and time of a recipe or preset, before they are spent",
    "compare": "variants of a recipe with several seeds each, and one table of them",
    "laws": "which laws of the package a mechanism of your own keeps, and which it breaks",
    "check": "the data doctor: what is wrong in these files, where, in which line",
    "clean": "write these files again without what is wrong in them",
    "average": "average the parameters of several models into one",
    "recipes": "list the recipes, or show one",
    "lessons": "a course whose pages run: in a browser, as files, as notebooks",
    "bench": "measure, by name, what a test should not time",
}

# Those that read configurations or models, in which kinds of the user's own may stand.
EXTENDED = ("train", "translate", "generate", "classify", "score", "evaluate", "look", "plan", "compare", "average")

EXIT_CODES = """exit codes: 0 ok, 1 failure, 2 usage, 3 bad data, 4 bad model folder, 5 out of memory,
75 interrupted and resumable, 130 Ctrl-C, 141 broken pipe"""


class Parser(argparse.ArgumentParser):
    """One line for what was mistyped; the usage is a --help away."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"regard: {message}; see `{self.prog} --help`\n")


def parser(verb: str = "") -> Parser:
    """The whole parser, or with the arguments of one verb only filled in: the others then cost no import."""
    root = Parser(
        prog="regard",
        description="Train, run and look inside Transformers.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    root.add_argument("--version", action="store_true", help="versions of regard, Python, torch and CUDA")
    root.add_argument(
        "--completion", choices=["bash", "zsh", "fish"], metavar="SHELL", help="print a script of completions: bash, zsh, fish"
    )
    root.add_argument("--traceback", action="store_true", help="show where in the code an error arose")
    verbs = root.add_subparsers(dest="verb", metavar="VERB")
    for name, says in VERBS.items():
        one = verbs.add_parser(name, help=says, description=says[0].upper() + says[1:] + ".", allow_abbrev=False)
        if name == verb or verb == "*":
            command(name).arguments(one)
            if name in EXTENDED:
                one.add_argument("--extend", metavar="FILE", action="append", help="a file of kinds of your own; see docs/extend.md")
    return root


def command(verb: str):
    """The module of a verb: `arguments(parser)` declares, `run(arguments)` does."""
    return import_module(f"regard.commands.{verb}")


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    open_streams()
    root = parser(next((word for word in argv if word in VERBS), ""))
    rest, given = apart(argv)
    arguments, strange = root.parse_known_args(rest)
    if strange:
        misspelt(strange[0], among=argv, root=root)
    if given and not hasattr(arguments, "settings"):
        root.error(f"--{next(iter(given))}: only train, plan and compare take settings of the configuration")
    if given:
        arguments.settings = given
    try:
        code = do(arguments, root)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        let_go_of_output()
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return fail("stopped", 128 + signal.SIGINT)
    except Interrupted as error:
        return fail(str(error), error.code)
    except Exception as error:
        if arguments.traceback:
            raise
        return explain(error)


def do(arguments: argparse.Namespace, root: Parser) -> int:
    """What was asked for; its exit code."""
    if arguments.version:
        print(versions())
        return 0
    if arguments.completion:
        from regard.completion import script

        print(script(arguments.completion, parser("*")), end="")
        return 0
    if not arguments.verb:
        root.print_help()
        return 2
    if not getattr(arguments, "extend", None):
        return command(arguments.verb).run(arguments) or 0
    from regard.config.extend import extended

    with extended(arguments.extend):
        return command(arguments.verb).run(arguments) or 0


def open_streams() -> None:
    """All three streams are there and speak UTF-8, whatever the locale says. Where one is closed, using it is an error that can be told:
    Python would give None, print nothing at all, and let warnings for a closed stderr run into the output."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY), "r")
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (for the life of the process)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def let_go_of_output() -> None:
    """What is left in the buffer goes nowhere, or Python would complain once more at its exit."""
    with contextlib.suppress(OSError):  # a stream of a test has no number
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def apart(words: list[str]) -> tuple[list[str], dict[str, str]]:
    """Ordinary arguments, and settings of the configuration: `--train.steps 100`, `--train.steps=100`, `--preset tiny`."""
    rest, found, words = [], {}, list(words)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if is_setting(name) and (equals or (words and not words[0].startswith("--"))):
            found[name[2:]] = value if equals else words.pop(0)
        else:
            rest.append(word)
    return rest, found


def is_setting(name: str) -> bool:
    return name.startswith("--") and ("." in name or name == "--preset")


def misspelt(word: str, *, among: list[str], root: Parser) -> NoReturn:
    """Leave with the flag that was probably meant."""
    if is_setting(word):
        root.error(f"{word}: its value is missing")
    from difflib import get_close_matches

    from regard.completion import flags_of, verbs_of

    verb = verbs_of(root).get(next((one for one in among if one in VERBS), ""), root)
    close = get_close_matches(word.partition("=")[0], flags_of(verb), n=1) if word.startswith("-") else []
    meant = f" (did you mean {close[0]}?)" if close else ""
    (verb if isinstance(verb, Parser) else root).error(f"{word} is not understood here{meant}")


def explain(error: Exception) -> int:
    """One line for the error, and its exit code."""
    if isinstance(error, RegardError):
        return fail(str(error), error.code)
    if isinstance(error, MemoryError) or "out of memory" in str(error).lower() or "can't allocate memory" in str(error):
        return fail(f"out of memory ({str(error).splitlines()[0] if str(error) else 'no details'}); make the batch or the model smaller", 5)
    if isinstance(error, OSError) and error.strerror:
        return fail(*told(error))
    what = str(error).splitlines()[0] if str(error) else "no message"
    return fail(f"a fault of regard itself: {type(error).__name__}: {what}; run again with `regard --traceback ...` to see where", 1)


def told(error: OSError) -> tuple[str, int]:
    """What the system would not do, to what, and the exit code. Whoever writes a file names it in the error; a stream cannot."""
    if error.filename or error.errno not in (errno.EBADF, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
        return f"{error.filename or 'the system'}: {error.strerror}; check the path, its permissions and the free space", 1
    let_go_of_output()
    closed = error.errno == errno.EBADF
    return f"standard output: {'it is closed' if closed else error.strerror}; check where the output goes, and the free space there", 1


def fail(line: str, code: int) -> int:
    print(f"regard: {line}", file=sys.stderr)
    return code


def versions() -> str:
    import platform

    import torch

    from regard.version import version

    cuda = f"CUDA {torch.version.cuda}" if torch.version.cuda else "no CUDA"
    return f"regard {version()}, Python {platform.python_version()}, torch {torch.__version__}, {cuda}"


if __name__ == "__main__":
    sys.exit(main())

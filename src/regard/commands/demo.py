"""`regard demo`: raw text to a scored model that translates, in minutes on a CPU; it is train, translate and look, one after the other."""

from __future__ import annotations

import argparse

LAST_WORDS = {  # what a pair ends on, in the manner of the decks
    "de-en": ["Guten Morgen!", "Ich habe die Katze gesehen."],
    "fr-en": ["bonjour le monde .", "Je suis étudiant"],
}
AROUND = 30  # seconds before and after training, about: tokenising, scoring, the page
SHOWN = 10  # translations of test sentences


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pair", choices=sorted(LAST_WORDS), default="de-en", help="the embedded corpus")
    parser.add_argument("--out", default="runs/demo", help="the run's folder; an earlier demo in it is replaced")
    parser.add_argument("--seconds", type=float, default=0.0, help="train for so long instead of the recipe's own time")
    parser.add_argument("--progress", choices=["auto", "rich", "plain", "none"], default="auto")


def run(arguments: argparse.Namespace) -> int:
    import shutil
    import time
    from pathlib import Path

    from regard import recipes
    from regard.assemble import read_begun
    from regard.cli import main
    from regard.data.parallel import read_pairs
    from regard.errors import UsageError
    from regard.loaded import load_translator
    from regard.look.page import write_page
    from regard.run import EMBEDDED, read_run, root_of
    from regard.tasks.telling import say
    from regard.tasks.translation import pairs_only
    from regard.train.display import duration

    started, out = time.monotonic(), Path(arguments.out)
    if (out / "run.toml").is_file() and read_begun(out).data.root == EMBEDDED:
        shutil.rmtree(out)
    elif out.exists() and any(out.iterdir()):
        raise UsageError("is not empty, and not an earlier demo", where=str(out), do="choose another folder with --out")
    seconds = ["--train.seconds", str(arguments.seconds)] if arguments.seconds else []
    train = ["train", f"demo-{arguments.pair}", "--out", str(out), "--progress", arguments.progress, *seconds]
    translate = ["translate", str(out / "best")]
    say("This demo stands for these commands, which do the same with files of your own:\n")
    say(f"    regard {' '.join(train[:4])}")
    say(f"    regard {' '.join(translate)} FILE")
    say(f"    regard look {out / 'best'} TEXT --export {out / 'look.html'}\n")
    lasts = arguments.seconds or read_run(recipes.find(train[1])).train.seconds
    say(f"It takes about {duration(lasts + AROUND)}, of which {duration(lasts)} are training.\n")
    if code := main(train):
        return code

    test = [
        pair
        for corpus in pairs_only(read_begun(out).data.test, part="test")
        for pair in read_pairs(corpus, root=root_of(read_begun(out).data))
    ]
    some = test[:: max(1, len(test) // SHOWN)][:SHOWN]
    texts = [source for source, _ in some] + LAST_WORDS[arguments.pair]
    model = load_translator(out)
    answers = model.translate(texts)
    say("")
    for (source, wanted), answer in zip(some, answers):
        say(f"  {source}\n    -> {answer}\n    ({wanted})")
    for source, answer in zip(LAST_WORDS[arguments.pair], answers[SHOWN:]):
        say(f"  {source}\n    -> {answer}")

    write_page(out / "look.html", [model.look(text) for text in texts[: SHOWN // 2] + LAST_WORDS[arguments.pair]])
    say(f"\n{time.monotonic() - started:.0f} seconds in all. Now look inside: open {out / 'look.html'} in a browser, and then:\n")
    say(f"    echo '{LAST_WORDS[arguments.pair][0]}' | regard translate {out / 'best'}")
    say(f"    regard look {out / 'best'} '{LAST_WORDS[arguments.pair][1]}'")
    say("    regard train --source mine.de --target mine.en --out runs/mine")
    return 0

"""Two small corpora that travel with the package: German-English and French-English sentences of Tatoeba, already split."""

from pathlib import Path

HERE = Path(__file__).parent
PAIRS = ("de-en", "fr-en")


def files(pair: str) -> dict[str, Path]:
    """The `train`, `dev` and `test` files of a pair: source, tab, target; train is xz-compressed."""
    return {"train": HERE / pair / "train.tsv.xz", "dev": HERE / pair / "dev.tsv", "test": HERE / pair / "test.tsv"}

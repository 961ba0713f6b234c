"""The tokenizers of a run: made once, by the first rank, and kept in its folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from regard.data.tokenise import Tokenizer, load_tokenizer
from regard.models.folder import publish
from regard.models.saved import tokenizer_files
from regard.train.parallel import Ranks

FOLDER = "tokenizers"


def kept(out: Path, names: tuple[str, ...], make: Callable[[], Mapping[str, Tokenizer]], *, ranks: Ranks) -> list[Tokenizer]:
    """The tokenizers of these names; `make` is asked where the run has none yet."""
    if ranks.first and not (out / FOLDER).is_dir():
        publish(out / FOLDER, tokenizer_files(make()))
    ranks.wait()
    return [load_tokenizer(out / FOLDER, name) for name in names]

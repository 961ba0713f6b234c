"""What can be seen inside a model in the hand, whatever it reads: traces, the walk of a token, tables between tokens."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from regard.decode.translate import Decoding
from regard.look.trace import KINDS, Kind, Trace
from regard.train.device import Machine

if TYPE_CHECKING:
    from regard.look.reading import Reading
    from regard.look.table import Form, Table
    from regard.look.walk import Walk

Thing = str | Path


class Inside:
    """Of a model that says how it reads a thing: a text, the path of a picture, FILE:NODE of a graph."""

    machine: Machine

    def reading(self, thing: Thing, *, decoding: Decoding | None = None) -> Reading:
        """The thing as this model reads it; `decoding` is how a translator searches."""
        raise NotImplementedError

    def look(
        self,
        thing: Thing,
        *,
        decoding: Decoding | None = None,
        kinds: Sequence[Kind] = KINDS,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
    ) -> Trace:
        """Every map, step and answer, or the maps of these kinds, layers and heads; shows itself in a notebook."""
        from regard.look.record import record_reading

        with self._watching():
            return record_reading(self.reading(thing, decoding=decoding), kinds=kinds, layers=layers, heads=heads)

    def walk(
        self,
        thing: Thing,
        place: int | str,
        *,
        decoding: Decoding | None = None,
        kind: Kind | None = None,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
    ) -> Walk:
        """Every vector of one token (its place from 0, or its text) on its way through these layers."""
        from regard.look.walk import walk

        with self._watching():
            return walk(self.reading(thing, decoding=decoding), place, kind=kind, layers=layers, heads=heads)

    def table(
        self,
        thing: Thing,
        stage: str = "scores",
        *,
        decoding: Decoding | None = None,
        kind: Kind | None = None,
        layer: int | None = None,
        head: int = 0,
    ) -> Table:
        """Scores, bias, mask, masked or weights of one head, for every pair of tokens."""
        from regard.look.table import table

        with self._watching():
            return table(self.reading(thing, decoding=decoding), stage, kind=kind, layer=layer, head=head)

    def form(
        self, thing: Thing, *, decoding: Decoding | None = None, kind: Kind | None = None, layer: int | None = None, head: int = 0
    ) -> Form:
        """The bilinear form by which one head scores words against words."""
        from regard.look.table import form

        with self._watching():
            return form(self.reading(thing, decoding=decoding), kind=kind, layer=layer, head=head)

    @contextlib.contextmanager
    def _watching(self) -> Iterator[None]:
        with torch.inference_mode(), self.machine.autocast():
            yield

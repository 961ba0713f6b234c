"""A trained model in the hand that says something of every place of a text: hidden words filled in, or a label for each word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard.data.batch import IGNORED
from regard.data.spelled_words import SpelledWords, unlabelled
from regard.decode.fill import Filled, fill_texts
from regard.decode.translate import Decoding
from regard.errors import UsageError
from regard.loaded.inside import Inside, Thing
from regard.models.configs import MaskedLanguageModel, Tagger
from regard.models.reader import Reader
from regard.models.saved import Saved
from regard.train.device import Machine

if TYPE_CHECKING:
    from regard.look.reading import Reading

AT_ONCE = 64


@dataclass(frozen=True)
class TaggedWord:
    """A word, its likeliest label, and how probable that is; a word behind the longest text that the model reads has none."""

    word: str
    label: str
    probability: float


class LoadedReader(Inside):
    """A masked language model, which fills texts, or a tagger, which tags their words."""

    def __init__(self, saved: Saved, machine: Machine):
        assert isinstance(saved.model, Reader)
        self.saved, self.machine, self.text = saved, machine, saved.tokenizers["text"]
        self.model, self.config = saved.model, saved.model.config

    def fill(self, texts: Sequence[str], *, top: int = 5) -> list[Filled]:
        """What belongs in place of each <mask> of these texts."""
        if not isinstance(self.config, MaskedLanguageModel):
            raise UsageError("a tagger fills nothing in", where=str(self.saved.folder), do="use regard classify")
        with self._watching():
            return fill_texts(self.model, texts, tokenizer=self.text, top=top)

    def tag(self, texts: Sequence[str]) -> list[list[TaggedWord]]:
        """The label of each word; words are what stands between spaces."""
        if not isinstance(self.config, Tagger):
            raise UsageError("it knows words and no labels", where=str(self.saved.folder), do="use regard generate")
        found: list[list[TaggedWord]] = []
        with self._watching():
            for start in range(0, len(texts), AT_ONCE):
                found += self._tagged([text.split() for text in texts[start : start + AT_ONCE]], self.config)
        return found

    def reading(self, thing: Thing, *, decoding: Decoding | None = None) -> Reading:
        """The text, with what is said of its masks or of its words."""
        from regard.look.reading import places

        return places(self.saved, str(thing))

    def _tagged(self, texts: list[list[str]], config: Tagger) -> list[list[TaggedWord]]:
        batch = unlabelled([SpelledWords.of(words, self.text, longest=config.longest) for words in texts]).to(self.machine.device)
        asked = batch.labels != IGNORED
        shares, best = self.model.output(self.model(batch)[asked]).float().softmax(-1).max(-1)
        said = iter(zip(best.tolist(), shares.tolist()))
        found = []
        for words, count in zip(texts, asked.sum(1).tolist(), strict=True):
            told = [TaggedWord(word, config.labels[label], share) for word, (label, share) in zip(words[:count], said)]
            found.append(told + [TaggedWord(word, "", 0.0) for word in words[count:]])
        return found

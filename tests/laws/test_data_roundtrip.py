"""decode(encode(text)) == text for every lossless kind, whatever the text; marks never come out of it."""

import os
from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regard.data.tokenise import Bpe, Byte, Character, Tokenizer, Unigram, train_tokenizer

TORTURE = bool(os.environ.get("REGARD_TORTURE"))
TEXT = ["the quick brown fox jumps over the lazy dog", "größe und straße", "▁ already  a sign", "one  two   three", "e\u0301 combining"] * 9
CONFIGS = {
    "unigram": Unigram(size=340, tags=("<2de>", "<x>")),
    "bpe": Bpe(size=340, tags=("<2de>", "<x>")),
    "character": Character(coverage=0.9, tags=("<2de>",)),
    "byte": Byte(tags=("<2de>",)),
}


@cache
def tokenizer(kind: str) -> Tokenizer:
    return train_tokenizer(CONFIGS[kind], TEXT)


characters = st.characters(exclude_categories=["Cs"])
odd = st.sampled_from(
    [
        "▁",
        " ",
        "  ",
        "\u3000",
        "\xa0",
        "e\u0301",
        "😀",
        "👩‍👩‍👧",
        "<s>",
        "<0x41>",
        "<2de>",
        "<x>",
        "<2d",
        "\t",
        "\r",
        "\n",
        "\u2028",
        "\ufeff",
        "▅",
        "\0",
    ]
)
texts = st.lists(st.one_of(st.text(characters, max_size=9), odd, st.sampled_from(TEXT)), max_size=8).map("".join)


@pytest.mark.parametrize("kind", CONFIGS)
@given(text=texts)
@example(text=" leading and trailing ")
@example(text="<2de> a tag <2de>  and after")
@example(text="")
@settings(max_examples=100_000 if TORTURE else 300, deadline=None)
def test_any_text_comes_back(kind, text):
    ids = tokenizer(kind).encode(text)
    assert tokenizer(kind).decode(ids) == text
    assert all(4 <= place < tokenizer(kind).size for place in ids)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@given(text=texts, seed=st.integers(0, 9))
@settings(max_examples=30_000 if TORTURE else 100, deadline=None)
def test_drawn_spellings_come_back_too(kind, text, seed):
    vocabulary = tokenizer(kind).vocabulary
    for word in text.replace("▁", "").split(" "):
        for ids in vocabulary.draws("▁" + word, 2, amount=0.3, seed=seed):
            assert vocabulary.decode(ids) == word


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_line_of_a_megabyte_and_a_lone_surrogate_are_no_trouble(kind):
    long = "xyz" * 350_000
    assert tokenizer(kind).decode(tokenizer(kind).encode(long)) == long
    assert tokenizer(kind).decode(tokenizer(kind).encode("a\ud800b")) == "a?b"

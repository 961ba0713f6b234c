import random

import pytest

from regard.config.toml import dumps, structure, unstructure
from regard.data.marks import BOS, EOS, PAD, UNK
from regard.data.parallel import Lines, Tsv
from regard.data.surface import Surface
from regard.data.tokenise import (
    Bpe,
    Byte,
    Character,
    TokenizerConfig,
    Unigram,
    Word,
    lending,
    load_tokenizer,
    sample_pairs,
    train_tokenizer,
    train_tokenizers,
)
from regard.errors import DataError, ModelError, UsageError

SYLLABLES = ["ba", "do", "ki", "lu", "ne", "sho", "tra", "wim"]


def corpus_lines(count: int = 211) -> list[str]:
    noise = random.Random(3)
    return [" ".join("".join(noise.choices(SYLLABLES, k=noise.randint(1, 4))) for _ in range(noise.randint(2, 7))) for _ in range(count)]


CONFIGS = [Unigram(size=331), Bpe(size=331), Word(), Character(), Byte()]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.kind)
def test_saved_and_loaded_it_is_the_same(tmp_path, config):
    tokenizer = train_tokenizer(config, corpus_lines())
    tokenizer.save(tmp_path, "source")
    again = load_tokenizer(tmp_path, "source")
    for text in (*corpus_lines(7), "unseen 漢字"):
        assert again.encode(text) == tokenizer.encode(text)
    assert again.size == tokenizer.size and again.fingerprint == tokenizer.fingerprint
    assert [again.piece(place) for place in range(4)] == ["<pad>", "<s>", "</s>", "<unk>"]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.kind)
def test_training_is_deterministic(config):
    assert train_tokenizer(config, corpus_lines()).fingerprint == train_tokenizer(config, corpus_lines()).fingerprint


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.kind)
def test_marks_never_come_out_of_plain_text(config):
    tokenizer = train_tokenizer(config, [*corpus_lines(), "<pad> <s> </s> <unk>"] * 2)
    ids = tokenizer.encode("<pad> <s> </s> <unk> badoki")
    assert not {PAD, BOS, EOS, UNK} & set(ids)
    assert tokenizer.decode([BOS, *ids, EOS, PAD]) == "<pad> <s> </s> <unk> badoki"


def test_words_by_hand():
    tokenizer = train_tokenizer(Word(min_count=2), ["b a a", "a  b c"])
    assert [tokenizer.piece(place) for place in range(tokenizer.size)] == ["<pad>", "<s>", "</s>", "<unk>", "a", "b"]
    assert tokenizer.encode("a b  c a") == [4, 5, UNK, 4]
    assert tokenizer.decode([4, 5, UNK]) == "a b <unk>"
    assert train_tokenizer(Word(size=5, min_count=1), ["b a a", "a b c"]).size == 5


def test_bytes_and_characters_by_hand():
    assert train_tokenizer(Byte(), []).encode("aé") == [4 + 0x61, 4 + 0xC3, 4 + 0xA9]
    tokenizer = train_tokenizer(Character(byte_fallback=False, coverage=0.9), ["aaaaabbbbc"])
    assert tokenizer.encode("abcd") == [4, 5, UNK, UNK]


def test_without_byte_fallback_the_unknown_is_unk():
    tokenizer = train_tokenizer(Bpe(size=64, byte_fallback=False), corpus_lines())
    assert UNK in tokenizer.encode("漢") and tokenizer.size <= 64


def test_tags_are_one_token_and_take_no_space():
    tokenizer = train_tokenizer(Bpe(size=331, tags=("<2de>", "<2d>")), corpus_lines())
    first, second = tokenizer.size - 2, tokenizer.size - 1
    assert tokenizer.encode("<2de> bado") == [first, *tokenizer.encode("bado")]
    assert tokenizer.encode("<2d><2de>") == [second, first]
    for text in ("<2de> bado", "<2de>bado", "bado<2d> lu", " <2d>  ", "x <2de>"):
        assert tokenizer.decode(tokenizer.encode(text)) == text
    with pytest.raises(UsageError, match="without spaces"):
        train_tokenizer(Byte(tags=("a b",)), [])


def test_old_papers_form_and_back():
    surface = Surface(lowercase=True, pretokenise="moses")
    tokenizer = train_tokenizer(Word(min_count=1, surface=surface, tags=("<2DE>",)), ["Hello, World!"])
    decoded = tokenizer.decode(tokenizer.encode("<2DE> Hello, World!"))
    assert decoded == "<2DE> hello , world !"
    assert tokenizer.detokenise("hello , world !") == "hello, world!"


def write_pairs(folder):
    lines = corpus_lines()
    (folder / "a").write_text("\n".join(lines) + "\n")
    (folder / "b").write_text("\n".join(line.upper() for line in lines) + "\n")
    return Lines("a", "b", tag="<up>")


def test_joint_and_separate_vocabularies(tmp_path):
    corpus = write_pairs(tmp_path)
    source, target = train_tokenizers(Character(), [corpus], root=tmp_path)
    assert source.fingerprint == target.fingerprint and source.tags == ("<up>",)
    source, target = train_tokenizers(Character(joint=False), [corpus], root=tmp_path)
    assert UNK not in source.encode("bado") and source.piece(source.encode("b")[0]) == "b" and target.piece(target.encode("B")[0]) == "B"
    assert len(target.encode("b")) == 1 and target.piece(target.encode("b")[0]) == "<0x62>"


def test_sampled_pairs_are_bounded_fair_and_deterministic(tmp_path):
    (tmp_path / "t").write_text("".join(f"{number}\tx\n" for number in range(1009)))
    corpus = [Tsv("t")]
    sample = sample_pairs(corpus, 101, root=tmp_path, seed=5)
    assert len(sample) == 101 and sample == sample_pairs(corpus, 101, root=tmp_path, seed=5)
    assert sample != sample_pairs(corpus, 101, root=tmp_path, seed=6)
    assert 350 < sum(int(source) for source, _ in sample) / 101 < 660  # the mean of a fair sample is 504 +- 29
    assert len(sample_pairs(corpus, 5000, root=tmp_path)) == 1009


def test_what_cannot_be_trained_says_why():
    with pytest.raises(DataError, match="a vocabulary of 100 cannot hold the 2"):
        train_tokenizer(Bpe(size=100), corpus_lines())
    for config in (Bpe(), Word(), Character()):
        with pytest.raises(DataError, match="no text to train a tokenizer on"):
            train_tokenizer(config, ["", " "])


def test_a_damaged_file_is_a_model_error(tmp_path):
    train_tokenizer(Bpe(size=331), corpus_lines()).save(tmp_path, "target")
    (tmp_path / "tokenizer.target.model").write_bytes(b"rubbish")
    with pytest.raises(ModelError, match="cannot be read"):
        load_tokenizer(tmp_path, "target")
    with pytest.raises(ModelError, match="cannot be read"):
        load_tokenizer(tmp_path, "nobody")


@pytest.mark.parametrize(
    "config", [Unigram(size=9, sampling=0.2, tags=("<a>",)), Bpe(surface=Surface(lowercase=True)), Word(), Byte(joint=False)]
)
def test_configs_survive_toml(config):
    assert structure(TokenizerConfig, unstructure(config)) == config
    assert "kind" in dumps(config)


def test_strange_words_of_one_source_have_ids_beyond_all_others():
    plain = train_tokenizer(Word(tags=("<2de>",), min_count=2), ["a a b b", "a b"])
    source, target = lending(plain, plain, "<2de> a Xaver b Ylva Xaver")
    assert plain.strange("<2de> a Xaver b Ylva Xaver") == ["Xaver", "Ylva"]
    first = plain.size
    assert source.encode("<2de> a Xaver b Ylva Xaver")[2::1] == [first, plain.encode("b")[0], first + 1, first]
    assert source.encode("<2de>")[0] == plain.encode("<2de>")[0] < first
    assert target.encode("Ylva Zoe b") == [first + 1, UNK, *plain.encode("b")]
    assert target.decode([first + 1, *plain.encode("<2de> b"), first]) == "Ylva <2de> b Xaver" and target.piece(first) == "Xaver"
    assert source.size == plain.size and lending(plain, plain, "a b") == (plain, plain)


def test_who_spells_has_no_strange_words():
    assert train_tokenizer(Byte(), []).strange("Xaver") == []

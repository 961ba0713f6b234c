from regard.data.bytepairs import END, learn_merges, merge


def test_the_first_ten_merges_of_the_classic_corpus():
    merges = learn_merges({"low": 5, "lower": 2, "newest": 6, "widest": 3}, 10)
    joined = [("".join(pair).replace(END, "|"), count) for pair, count in merges]
    assert joined == [
        ("es", 9), ("est", 9), ("est|", 9), ("lo", 7), ("low", 7), ("ne", 6), ("new", 6), ("newest|", 6), ("low|", 5), ("wi", 3),
    ]  # fmt: skip


def test_a_word_fully_merged_ends_the_learning():
    assert learn_merges({"ab": 1}, 9) == [(("a", "b"), 1), (("ab", END), 1)]


def test_overlapping_pairs_merge_from_the_left():
    assert merge(("a", "a", "a"), ("a", "a")) == ("aa", "a")

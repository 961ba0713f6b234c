"""The ids that are the same in every vocabulary, and never come out of plain text (but UNK, for what a vocabulary cannot spell)."""

PAD, BOS, EOS, UNK = 0, 1, 2, 3
FIRST = 4  # the first id that a vocabulary gives away
MARKS = ("<pad>", "<s>", "</s>", "<unk>")

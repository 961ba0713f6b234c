"""Tensors only: attention and what is built of it. Knows no files, tokenizers or optimisers.

Shape letters, here and everywhere:
`B` batch, `T` query time, `S` key time, `H` attention heads, `G` key-value heads, `D` model width, `E` width per head,
`F` feed-forward width, `V` vocabulary, `R` rows = batch x beam, `P` patches, `N` documents of a packed row, `L` length of the longest one.
"""

"""Attention in five small axes and a kernel: normalise(score(q, k) + bias(i, j), where pattern(i, j)) v."""

from regard.nn.attention.attend import attend, attention_weights
from regard.nn.attention.biases import ALiBi, Bias, BuiltBias, ByDistance, NoBias, Relative, T5Buckets
from regard.nn.attention.dispatch import Choice, Kernel, Need, choose
from regard.nn.attention.normalise import Epanechnikov, Hard, Normaliser, Sigmoid, Softmax, Sparsemax
from regard.nn.attention.patterns import And, Causal, Document, Full, Not, Or, Padding, Pattern, Prefix, Window
from regard.nn.attention.predicate import Facts, Predicate
from regard.nn.attention.scores import Additive, Bilinear, Cosine, Dot, Gaussian, NegativeDistance, Pairwise, Product, ScaledDot, Score
from regard.nn.attention.sparse import BigBird, BlockEnds, BlockLocal, Dilated, Global, RandomBlocks, Strided

__all__ = [
    "ALiBi",
    "Additive",
    "And",
    "Bias",
    "BigBird",
    "Bilinear",
    "BlockEnds",
    "BlockLocal",
    "BuiltBias",
    "ByDistance",
    "Causal",
    "Choice",
    "Cosine",
    "Dilated",
    "Document",
    "Dot",
    "Epanechnikov",
    "Facts",
    "Full",
    "Gaussian",
    "Global",
    "Hard",
    "Kernel",
    "Need",
    "NegativeDistance",
    "NoBias",
    "Normaliser",
    "Not",
    "Or",
    "Padding",
    "Pairwise",
    "Pattern",
    "Predicate",
    "Prefix",
    "Product",
    "RandomBlocks",
    "Relative",
    "ScaledDot",
    "Score",
    "Sigmoid",
    "Softmax",
    "Sparsemax",
    "Strided",
    "T5Buckets",
    "Window",
    "attend",
    "attention_weights",
    "choose",
]

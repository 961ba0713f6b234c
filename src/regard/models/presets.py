"""Models of known sizes, by name: what lies beneath a recipe's own keys."""

from __future__ import annotations

from typing import Any

Table = dict[str, Any]


def _translator(
    *, layers: int, d_model: int, d_ff: int, heads: int, dropout: float, placement: str, biases: bool, vocabulary: int
) -> Table:
    slot = {"biases": biases}
    trunk = {
        "kind": "transformer",
        "layers": layers,
        "heads": heads,
        "own": slot,
        "cross": slot,
        "feed_forward": {"d_ff": d_ff},
        "dropout": dropout,
        "placement": placement,
    }
    return {
        "kind": "translator",
        "d_model": d_model,
        "encoder": trunk,
        "decoder": trunk,
        "embedding": {"dropout": dropout},
        "source_vocabulary": vocabulary,
        "target_vocabulary": vocabulary,
    }


def _gpt3(*, layers: int, heads: int, d_model: int) -> Table:
    """A row of table 2.1 of Brown et al. 2020, at the widths that its table D.1 counts: d_model = heads x d_head, d_ff = 4 d_model."""
    trunk = {
        "kind": "transformer",
        "layers": layers,
        "heads": heads,
        "feed_forward": {"d_ff": 4 * d_model, "activation": "gelu-tanh"},
        "dropout": 0.0,
        "placement": "pre",
    }
    return {
        "kind": "language-model",
        "d_model": d_model,
        "trunk": trunk,
        "embedding": {"positions": {"kind": "learned", "length": 2048}, "scale": False, "dropout": 0.0},
        "init": {"kind": "normal", "std": 0.02},
        "vocabulary": 50_257,
    }


def _decoder_alone(*, experts: int = 0, compressed: bool = False) -> Table:
    """T-D and T-DMCA of Liu et al. 2018: one decoder over source, separator and target, at the widths of tensor2tensor's base model.

    Compressed: blocks of 256 tokens and memory-compressed layers in turn, L M L M L; with experts the third layer is routed.
    """
    plain = {"kind": "plain", "d_ff": 2048}
    trunk: Table = {"kind": "transformer", "layers": 5 if compressed else 6, "heads": 8, "feed_forward": plain, "dropout": 0.1}
    if compressed:
        local = {"kind": "attention", "pattern": [{"kind": "block-local", "size": 256}]}
        trunk["cycle"] = [local, {"kind": "compressed", "size": 3}]
    if experts:
        routed = {"kind": "experts", "count": experts, "router": {"kind": "noisy-top-k"}, "expert": plain}
        trunk["feed_forward_cycle"] = [plain, plain, routed, plain, plain]
    return {"kind": "language-model", "d_model": 512, "trunk": trunk, "vocabulary": 32_000}


def _recurrent_summariser() -> Table:
    """The baseline of Liu et al. 2018: LSTMs of two layers, 128 wide, and attention."""
    lstm = {"kind": "recurrent", "cell": "lstm", "layers": 2, "width": 128}
    return {
        "kind": "translator",
        "d_model": 128,
        "encoder": lstm,
        "decoder": {**lstm, "output": 128, "attention": {"kind": "bahdanau", "score": {"kind": "additive", "width": 128}}},
        "embedding": {"positions": "none", "scale": False},
        "source_vocabulary": 32_000,
        "target_vocabulary": 32_000,
    }


PRESETS: dict[str, Table] = {
    "tiny": _translator(layers=4, d_model=128, d_ff=256, heads=4, dropout=0.3, placement="pre", biases=True, vocabulary=0),
    "small": _translator(layers=3, d_model=256, d_ff=1024, heads=4, dropout=0.1, placement="pre", biases=True, vocabulary=0),
    # Vaswani et al. 2017, table 3: one shared vocabulary of 37,000, no biases in attention
    "base": _translator(layers=6, d_model=512, d_ff=2048, heads=8, dropout=0.1, placement="post", biases=False, vocabulary=37_000),
    "big": _translator(layers=6, d_model=1024, d_ff=4096, heads=16, dropout=0.3, placement="post", biases=False, vocabulary=37_000),
    "gpt3-small": _gpt3(layers=12, heads=12, d_model=768),
    "gpt3-medium": _gpt3(layers=24, heads=16, d_model=1024),
    "gpt3-large": _gpt3(layers=24, heads=16, d_model=1536),
    "gpt3-xl": _gpt3(layers=24, heads=16, d_model=2048),  # the table prints 24 heads of 128, which are not 2048
    "gpt3-2.7b": _gpt3(layers=32, heads=32, d_model=2560),
    "gpt3-6.7b": _gpt3(layers=32, heads=32, d_model=4096),
    "gpt3-13b": _gpt3(layers=40, heads=40, d_model=5120),  # the table prints 5140, which 40 heads of 128 are not
    "gpt3-175b": _gpt3(layers=96, heads=96, d_model=12288),
    # The six systems of WikiSum (Liu et al. 2018, table 4), with a vocabulary of 32,000
    "seq2seq-attention": _recurrent_summariser(),
    "t-ed": _translator(layers=6, d_model=512, d_ff=2048, heads=8, dropout=0.1, placement="post", biases=True, vocabulary=32_000),
    "t-d": _decoder_alone(),
    "t-dmca": _decoder_alone(compressed=True),
    "t-dmca-moe-128": _decoder_alone(compressed=True, experts=128),
    "t-dmca-moe-256": _decoder_alone(compressed=True, experts=256),
}


def merge(below: Table, above: Table) -> Table:
    """Tables laid over one another; where both have a key, the upper one speaks, and a change of `kind` clears what lay below."""
    merged = dict(below)
    for key, value in above.items():
        under = below.get(key)
        if isinstance(value, dict) and isinstance(under, dict) and value.get("kind", under.get("kind")) == under.get("kind"):
            merged[key] = merge(under, value)
        else:
            merged[key] = value
    return merged

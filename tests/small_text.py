"""A small text in which every line follows a rule, and a tiny run that learns to go on with it."""

from __future__ import annotations

from pathlib import Path

LINES = [f"{a} and {b} make {a + b}" for a in range(12) for b in range(12)]

RECIPE = """
[data]
train = [{ kind = "text", path = "sums.txt", stop = 0.8 }]
valid = [{ kind = "text", path = "sums.txt", start = 0.8, stop = 0.9 }]
test = [{ kind = "text", path = "sums.txt", start = 0.9 }]

[tokenizer]
kind = "character"
byte_fallback = false

[model]
kind = "language-model"
d_model = 32
trunk = { layers = 1, heads = 2, placement = "pre", dropout = 0.0, feed_forward = { d_ff = 64 } }
embedding = { dropout = 0.0 }

[batching]
tokens = 256
max_length = 32

[train]
steps = 80
device = "cpu"
precision = "fp32"
loss = { smoothing = 0.0 }
optimiser = { kind = "adamw", rate = 1e-2 }
schedule = { kind = "constant" }
log_every = 10
evaluate_every = 20
sample_every = 40
save_every = 30
"""


def corpus(folder: Path) -> Path:
    """The folder with sums.txt and text.toml; its path."""
    import random

    lines = list(LINES)
    random.Random(1).shuffle(lines)
    (folder / "sums.txt").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    recipe = folder / "text.toml"
    recipe.write_text(RECIPE, encoding="utf-8")
    return recipe

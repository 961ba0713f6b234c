"""Train, run and look inside Transformers.

model = regard.load("runs/demo/best")
model.translate(["Guten Morgen!"])
out = regard.attend(query, key, value, pattern=Causal())
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.config.extend import extend as extend
    from regard.loaded import Loaded as Loaded
    from regard.loaded import load as load
    from regard.nn.attention import attend as attend

HOMES = {"load": "regard.loaded", "extend": "regard.config.extend", "Loaded": "regard.loaded", "attend": "regard.nn.attention"}


def __getattr__(name: str):
    """Torch is imported when something that needs it is asked for, and not before."""
    if name not in HOMES:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(HOMES[name]), name)

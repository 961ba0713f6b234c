"""What a number of a configuration cannot be, by its name: what holds wherever the name stands. Classes refuse more themselves."""

from __future__ import annotations

COUNTED = {"layers", "heads", "last_heads", "d_model", "d_ff"}  # without one of these there is no model
UNSIGNED = {"width", "d_head", "d_value", "key_value_heads", "kernel", "hidden", "vocabulary", "tokens", "max_length", "min_count"}
SHARE = "dropout"  # as the end of a name


def refused(name: str, value: object) -> str:
    """What to do about this value; empty where nothing is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    if name.endswith(SHARE):
        return "" if 0 <= value < 1 else "it is a share: take 0 or more, and less than 1"
    if name in COUNTED:
        return "" if value >= 1 else "take 1 or more"
    return "take 0 or more" if name in UNSIGNED and value < 0 else ""

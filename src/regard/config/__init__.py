"""Frozen dataclasses on one side, TOML and flags on the other; the machinery only, it knows no component."""

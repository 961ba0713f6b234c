"""The ways to compute attention. `reference` is the definition; the others give the same numbers, faster, where they can serve."""

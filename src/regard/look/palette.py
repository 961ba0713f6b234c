"""The colours of heads, in the page and in figures: told apart by most eyes, on light and on dark; heads carry their number besides."""

LIGHT = ("#2f66d0", "#d4601a", "#128a63", "#b63d8b", "#9a7008", "#1b8fb0", "#7350c4", "#67707c")
DARK = ("#7fa8ff", "#ff9f5c", "#45cfa0", "#f27fc6", "#e2b344", "#57c9e8", "#b59dff", "#aab3c0")


def colour(head: int) -> str:
    """On light ground."""
    return LIGHT[head % len(LIGHT)]


def stylesheet() -> str:
    """The same as variables of the page, `--head-0` to `--head-7`."""
    light, dark = ("".join(f"--head-{place}:{value};" for place, value in enumerate(colours)) for colours in (LIGHT, DARK))
    return f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"

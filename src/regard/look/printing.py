"""Drawings on paper: SVG by ourselves, PDF and PNG by matplotlib, an extra. The format is the ending of the file's name."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, assert_never
from xml.sax.saxutils import escape, quoteattr

from regard.errors import UsageError
from regard.look.drawing import GROUND, SIZE, Box, Curve, Drawing, Line, Mark, Words
from regard.models.folder import replace_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".svg", ".pdf", ".png")
FONTS = "system-ui, 'Segoe UI', 'Noto Sans', sans-serif"
SHARPNESS = 2  # pixels of a PNG for each of the drawing's
INCH = 72  # pixels of the drawing
FAMILIES = ("DejaVu Sans", "Noto Sans", "Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans CJK SC", "Noto Sans CJK JP")
SIDES = {"start": "left", "middle": "center", "end": "right"}


def write_figure(path: str | Path, drawing: Drawing) -> None:
    """Write the drawing as SVG, PDF or PNG."""
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise UsageError(f"a figure is written as {', '.join(FORMATS)}, not {ending or 'without an ending'}", where=str(path))
    if ending == ".svg":
        replace_text(Path(path), svg(drawing))
    else:
        _by_matplotlib(Path(path), drawing)


def svg(drawing: Drawing) -> str:
    """The text of an SVG file: words stay words, and what they say can never become markup."""
    size = f'viewBox="0 0 {drawing.width:.0f} {drawing.height:.0f}" width="{drawing.width:.0f}" height="{drawing.height:.0f}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(drawing.name)} '
        f'font-family="{FONTS}" font-size="{SIZE}" stroke-linecap="round">',
        f'<rect width="100%" height="100%" fill="{GROUND}"/>',
        *map(_tag, drawing.marks),
    ]
    return "\n".join([*lines, "</svg>", ""])


def _tag(mark: Mark) -> str:
    match mark:
        case Box(x, y, width, height, fill, corner, opacity):
            seen = "" if opacity == 1 else f' fill-opacity="{opacity:.2f}"'
            return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.0f}" height="{height:.0f}" rx="{corner:.0f}" fill="{fill}"{seen}/>'
        case Words(text, x, y, anchor, fill, size, bold):
            style = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" font-size="{size}" font-weight="{600 if bold else 400}"'
            return f'<text {style} unicode-bidi="isolate">{escape(text)}</text>'
        case Curve(x1, y1, x2, y2, stroke, opacity, width):
            path = f"M{x1:.1f} {y1:.1f}C{x1 + mark.bend:.1f} {y1:.1f} {x2 - mark.bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
            return f'<path d="{path}" fill="none" stroke="{stroke}" stroke-opacity="{opacity:.3f}" stroke-width="{width:.2f}"/>'
        case Line(points, stroke, width):
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            return f'<polyline points="{path}" fill="none" stroke="{stroke}" stroke-width="{width:.2f}"/>'
        case _:
            assert_never(mark)


def _by_matplotlib(path: Path, drawing: Drawing) -> None:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(f"{path.suffix} needs matplotlib", where=str(path), do="pip install 'regard[figures]', or write .svg") from None
    paper = Figure(figsize=(drawing.width / INCH, drawing.height / INCH), facecolor=GROUND)
    FigureCanvasAgg(paper)
    axes = paper.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, drawing.width)
    axes.set_ylim(drawing.height, 0)
    axes.axis("off")
    for mark in drawing.marks:
        _draw(axes, mark)
    paper.savefig(path, dpi=INCH * SHARPNESS, metadata={"Title": drawing.name})


@cache
def _families() -> list[str]:
    """Those that are installed; a letter is taken from the first that has it."""
    from matplotlib.font_manager import fontManager

    there = set(fontManager.get_font_names())
    return [family for family in FAMILIES if family in there]


def _draw(axes: Axes, mark: Mark) -> None:
    from matplotlib.patches import FancyBboxPatch, PathPatch
    from matplotlib.path import Path as Outline

    match mark:
        case Box(x, y, width, height, fill, corner, opacity):
            style = f"round,pad=0,rounding_size={corner}"
            axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=style, facecolor=fill, linewidth=0, alpha=opacity))
        case Words(text, x, y, anchor, fill, size, bold):
            style = {"color": fill, "size": size, "weight": "bold" if bold else "normal", "family": _families()}
            axes.text(x, y, text, ha=SIDES[anchor], va="baseline", parse_math=False, **style)
        case Curve(x1, y1, x2, y2, stroke, opacity, width):
            points = [(x1, y1), (x1 + mark.bend, y1), (x2 - mark.bend, y2), (x2, y2)]
            outline = Outline(points, [Outline.MOVETO, Outline.CURVE4, Outline.CURVE4, Outline.CURVE4])
            axes.add_patch(PathPatch(outline, facecolor="none", edgecolor=stroke, alpha=opacity, linewidth=width, capstyle="round"))
        case Line(points, stroke, width):
            axes.plot(*zip(*points), color=stroke, linewidth=width, solid_capstyle="round")
        case _:
            assert_never(mark)

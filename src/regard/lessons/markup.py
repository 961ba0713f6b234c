"""The little Markdown that lessons are written in, as HTML: every character is escaped first, so that none becomes markup by itself."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator


def markup(text: str) -> str:
    """Paragraphs, headings, lists, quotations, tables and blocks of code."""
    return "\n".join(_blocks(text))


def inline(text: str) -> str:
    """Code, bold, italics, links to other lessons."""
    parts = re.split(r"`([^`]+)`", text)
    return "".join(f"<code>{html.escape(part)}</code>" if place % 2 else _marked(part) for place, part in enumerate(parts))


def _marked(text: str) -> str:
    text = html.escape(text)
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text)
    text = re.sub(r"\*(.+?)\*", r"<em>\1</em>", text)
    return re.sub(r"\[([^\]]+)\]\(([\w-]+)\.md\)", r'<a href="\2.html">\1</a>', text)


def _blocks(text: str) -> Iterator[str]:
    for block in re.findall(r"^```\w*\n[\s\S]*?^```$|(?:^(?!```).*\S.*\n?)+", text, flags=re.MULTILINE):
        yield from _block(block.rstrip("\n"))


def _block(block: str) -> Iterator[str]:
    lines = block.split("\n")
    if block.startswith("```"):
        yield f"<pre><code>{html.escape(chr(10).join(lines[1:-1]))}</code></pre>"
    elif heading := re.match(r"(#+) (.*)", block):
        level = len(heading[1])
        yield f"<h{level}>{inline(heading[2])}</h{level}>"
    elif block.startswith("|"):
        rows = [[inline(cell.strip()) for cell in line.strip("| ").split(" | ")] for line in lines if not line.startswith("|-")]
        head, *body = [
            "".join(f"<{'td' if place else 'th'}>{cell}</{'td' if place else 'th'}>" for cell in row) for place, row in enumerate(rows)
        ]
        yield f"<div class=wide><table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in body)}</table></div>"
    elif re.match(r"- |\d+\. ", block):
        kind = "ul" if block.startswith("- ") else "ol"
        items = re.split(r"^(?:- |\d+\. )", block, flags=re.MULTILINE)[1:]
        yield f"<{kind}>{''.join(f'<li>{inline(item.strip())}</li>' for item in items)}</{kind}>"
    elif block.startswith(">"):
        yield f"<blockquote>{markup(chr(10).join(line.removeprefix('>').removeprefix(' ') for line in lines))}</blockquote>"
    else:
        yield f"<p>{inline(block)}</p>"

"""What can be wrong with one line or with a file as bytes: named, with the line, and with what is to be done about it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from regard.data.text import BROKEN, LONGEST_LINE, open_bytes
from regard.errors import DataError

Cure = Literal["drop", "mend", "note", "stop"]  # the pair goes; the line is written without it; it stays; nothing can be done with the file

CURES: dict[str, Cure] = {
    "missing file": "stop",
    "unreadable file": "stop",
    "damaged archive": "stop",
    "archive without its ending": "stop",
    "UTF-16": "stop",
    "mismatched counts": "stop",
    "empty file": "stop",
    "all lines identical": "stop",
    "invalid UTF-8": "drop",
    "lone surrogate": "drop",
    "NUL": "drop",
    "longer than 1 MB": "drop",
    "empty line": "drop",
    "only whitespace": "drop",
    "replacement character": "drop",
    "no character": "drop",
    "missing column": "drop",
    "missing text": "drop",
    "not JSON": "drop",
    "byte order mark": "mend",
    "CRLF": "mend",
    "carriage return": "mend",
    "U+2028": "mend",
    "U+2029": "mend",
    "U+0085": "mend",
    "vertical tab": "mend",
    "form feed": "mend",
    "control character": "mend",
    "zero-width character": "mend",
    "direction mark": "mend",
    "soft hyphen": "mend",
    "tab": "mend",
    "space at an end": "mend",
    "doubled space": "mend",
    "not NFC": "mend",
    "double-encoded UTF-8": "note",
    "private use": "note",
    "HTML": "note",
    "over 250 words": "note",
    "one word over and over": "note",
    "no letter": "note",
    "no newline at the end": "note",
}

MARKS = {  # kinds that a search for characters finds
    "NUL": "\0",
    "U+2028": "\u2028",
    "U+2029": "\u2029",
    "U+0085": "\u0085",
    "vertical tab": "\v",
    "form feed": "\f",
    "carriage return": "\r",
    "tab": "\t",
    "byte order mark": "\ufeff",
    "soft hyphen": "\u00ad",
    "replacement character": "\ufffd",
    "zero-width character": "[\u200b\u2060]",
    "direction mark": "[\u200e\u200f\u202a-\u202e\u2066-\u2069]",
    "control character": "[\x01-\x08\x0e-\x1f\x7f\x80-\x84\x86-\x9f]",
    "no character": "[\ufdd0-\ufdef\ufffe\uffff]",
    "private use": "[\ue000-\uf8ff\U000f0000-\U0010ffff]",
    "doubled space": r"\S {2,}\S",
    "HTML": r"&(?:amp|lt|gt|quot|nbsp|apos|#\d{1,6}|#x[0-9a-fA-F]{1,5});|</?(?:a|b|br|div|em|i|p|span|strong)\b[^<>]*>",
    "double-encoded UTF-8": "[ÃÂ][\u0080-\u00bf]|â[\u0080-\u009f€‚„†‡ˆ‰™š›œ]",
    "one word over and over": r"\b(\w+)(?:\W+\1\b){5}",
}
PATTERNS = {kind: re.compile(pattern) for kind, pattern in MARKS.items()}
ANY = re.compile("|".join(f"(?:{pattern})" for kind, pattern in MARKS.items() if kind != "one word over and over"))
PLAIN = re.compile(r"[!-%'-;=?-~](?: ?[!-%'-;=?-~])*")  # nothing above can be wrong with such a line but its words
SEPARATORS = re.compile("[\t\v\f\r\x1c-\x1f\u0085\u2028\u2029 ]+")  # of one or many: one space; a no-break space is no separator
BLANK = re.compile(r"[\s\ufeff\u00ad\u200b\u2060\u200e\u200f\u202a-\u202e\u2066-\u2069\x01-\x1f\x7f-\x9f]+")
NOTHING = re.compile("[\ufeff\u00ad\u200b\u2060\u200e\u200f\u202a-\u202e\u2066-\u2069\x01-\x08\x0e-\x1b\x7f\x80-\x84\x86-\x9f]")


class Finding(NamedTuple):
    """One thing wrong in one place; line 0 is the file as a whole."""

    path: str
    line: int
    kind: str
    says: str = ""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.kind}{f' ({self.says})' if self.says else ''}"


def inspect(path: str | Path, *, tabs: bool = False) -> Iterator[Finding]:
    """Every defect of a file, in order. `tabs` part the columns of this file and so are no defect."""
    name, lines, first, alike, ended = str(path), 0, None, True, True
    try:
        with open_bytes(path) as stream:
            while raw := stream.readline(LONGEST_LINE + 2):
                lines, ended = lines + 1, raw.endswith(b"\n")
                if lines == 1:
                    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
                        yield Finding(name, 1, "UTF-16", "convert it: iconv -f UTF-16 -t UTF-8")
                        return
                    if raw.startswith((b"\x1f\x8b", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd")):
                        yield Finding(name, 1, "archive without its ending", "name it .gz, .xz or .zst")
                        return
                    first = raw.rstrip(b"\r\n")
                alike = alike and raw.rstrip(b"\r\n") == first
                if len(raw.rstrip(b"\r\n")) > LONGEST_LINE:
                    yield Finding(name, lines, "longer than 1 MB")
                    while raw and not raw.endswith(b"\n"):
                        raw = stream.readline(LONGEST_LINE)
                    ended = not raw or raw.endswith(b"\n")
                    continue
                for kind, says in defects_of(raw.removesuffix(b"\n"), tabs=tabs):
                    yield Finding(name, lines, kind, says)
    except BROKEN as error:
        yield Finding(name, lines + 1, "damaged archive", f"it ends early or is damaged: {type(error).__name__}; fetch it again")
        return
    except DataError as error:
        yield Finding(name, 0, "missing file" if not Path(path).exists() else "unreadable file", error.what)
        return
    except OSError as error:
        yield Finding(name, 0, "unreadable file", error.strerror or str(error))
        return
    if not lines:
        yield Finding(name, 0, "empty file")
    elif alike and lines > 1:
        yield Finding(name, 1, "all lines identical", f"{lines:,} times")
    if not ended:
        yield Finding(name, lines, "no newline at the end")


def defects_of(raw: bytes, *, tabs: bool = False) -> Iterator[tuple[str, str]]:
    """Kind and detail of everything wrong with one line of bytes, without its newline."""
    if raw.endswith(b"\r"):
        yield "CRLF", ""
        raw = raw.removesuffix(b"\r")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        try:
            raw.decode("utf-8", "surrogatepass")
            yield "lone surrogate", f"byte {error.start + 1}"
        except UnicodeDecodeError:
            yield "invalid UTF-8", f"byte {error.start + 1}"
        return
    if not text:
        yield "empty line", ""
    elif not BLANK.sub("", text):
        yield "only whitespace", ""
    elif not PLAIN.fullmatch(text):
        yield from _odd(text, tabs=tabs)
    if text.count(" ") > 250:
        yield "over 250 words", f"{len(text.split()):,}"
    if len(text) > 20 and (repeated := PATTERNS["one word over and over"].search(text[:10_000])):
        yield "one word over and over", repeated[1]
    if text.strip() and not any(map(str.isalpha, text[:1000])):
        yield "no letter", ""


def _odd(text: str, *, tabs: bool) -> Iterator[tuple[str, str]]:
    for kind, pattern in PATTERNS.items() if ANY.search(text) else ():
        if kind == "one word over and over" or (kind == "tab" and tabs):
            continue
        if found := pattern.search(text):
            yield kind, f"column {found.start() + 1}"
    if text[0] in " \u00a0" or text[-1] in " \u00a0":
        yield "space at an end", ""
    if not unicodedata.is_normalized("NFC", text):
        yield "not NFC", ""


def mend(text: str) -> str:
    """The text without what can be mended: characters that part lines or columns become spaces, those without a width go."""
    return SEPARATORS.sub(" ", unicodedata.normalize("NFC", NOTHING.sub("", text))).strip(" \u00a0")


def unusable(text: str) -> str:
    """Why a decoded text cannot stand in a corpus ("" when it can)."""
    for kind in ("NUL", "replacement character", "no character"):
        if PATTERNS[kind].search(text):
            return kind
    if any("\ud800" <= character <= "\udfff" for character in text):
        return "lone surrogate"
    return "" if BLANK.sub("", text) else "only whitespace" if text else "empty line"

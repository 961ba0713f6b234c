"""Whatever is wrong with some lines, no pair is ever shifted, and each defect is reported at its own line."""

import gzip
import random
from collections import Counter

import pytest

from regard.data.parallel import Lines, read_pairs
from regard.data.text import LONGEST_LINE

DROPPED = {
    "lone continuation byte": (b"\x80", "invalid UTF-8"),
    "cut character": (b"\xe2\x82", "invalid UTF-8"),
    "overlong slash": (b"\xc0\xaf", "invalid UTF-8"),
    "surrogate": (b"\xed\xa0\x80", "invalid UTF-8"),
    "beyond Unicode": (b"\xf5\x80\x80\x80", "invalid UTF-8"),
    "Latin-1": ("größe".encode("latin-1"), "invalid UTF-8"),
    "UTF-16 within": ("ß".encode("utf-16-le"), "invalid UTF-8"),
    "0xFF": (b"\xff", "invalid UTF-8"),
    "NUL": (b"\0", "NUL character"),
    "1 MB": (b"x" * LONGEST_LINE, "longer than 1 MB"),
}
BLANK = {
    "empty": b"",
    "spaces": b"   ",
    "tab": b"\t",
    "only CR": b"\r",
    "no-break space": "\xa0".encode(),
    "wide space": "\u3000".encode(),
    "only U+2028": "\u2028".encode(),
    "only U+0085": "\x85".encode(),
    "only VT and FF": b"\x0b\x0c",
}
KEPT = [
    "\u2028",
    "\u2029",
    "\x85",
    "\x0b",
    "\x0c",
    "\x1c",
    "\r",
    "\t",
    "\ufeff",
    "\u200b",
    "\u202e",
    "e\u0301",
    "👩‍👩‍👧",
    "\ufffd",
    "\U0010ffff",
    "▁",
]


def dirty_files(folder, seed: int):
    """Two files of lines that carry their number, and what should become of each pair."""
    noise = random.Random(seed)
    raw, texts, expected = ([], []), ([], []), []
    for number in range(1, 42):
        reasons = ["", ""]
        for side in (0, 1):
            kind, text = noise.random(), f"{number} text"
            if kind < 0.15:
                data, reasons[side] = DROPPED[noise.choice(list(DROPPED))]
                raw[side].append(f"{number} ".encode() + data + b" t")
            elif kind < 0.3:
                reasons[side] = f"empty {('source', 'target')[side]}"
                raw[side].append(BLANK[noise.choice(list(BLANK))])
            else:
                text = f"{number} {noise.choice(KEPT)} t" if kind < 0.7 else text
                raw[side].append(text.encode() + b"\r" * (noise.random() < 0.1))
            texts[side].append(text)
        bad = [reason for reason in reasons if reason and not reason.startswith("empty")]
        expected.append((bad or [reason for reason in reasons if reason] or [""])[0])
    for side, name in enumerate(("a.gz", "b")):
        data = (b"\xef\xbb\xbf" * (noise.random() < 0.5)) + b"\n".join(raw[side]) + b"\n" * (noise.random() < 0.5)
        # without a last line feed an empty last line is no line at all
        data += b"\n" if not raw[side][-1] and not data.endswith(b"\n\n") else b""
        (folder / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    return list(zip(*texts)), expected, raw


@pytest.mark.parametrize("seed", range(40))
def test_pairs_stay_together_and_defects_have_the_right_line(tmp_path, seed):
    pairs, expected, raw = dirty_files(tmp_path, seed)
    counts, defects = Counter(), []
    kept = list(read_pairs(Lines("a.gz", "b"), counts, root=tmp_path, on_defect=defects.append))
    assert kept == [pair for pair, reason in zip(pairs, expected) if not reason]
    assert all(source.split()[0] == target.split()[0] for source, target in kept)
    assert counts == Counter(read=41, kept=len(kept)) + Counter(reason for reason in expected if reason)
    for defect in defects:
        side = 0 if defect.path.endswith(".gz") else 1
        assert raw[side][defect.number - 1].startswith(f"{defect.number} ".encode())
    told = {defect.number for defect in defects}
    assert told == {place for place, reason in enumerate(expected, 1) if reason in {reason for _, reason in DROPPED.values()}}

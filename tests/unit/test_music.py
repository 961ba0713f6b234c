"""Music on a grid: MIDI files read and written, chorales in JSON, rows that begin with a step, other keys, and the floor of copying."""

from __future__ import annotations

import json
import lzma
import math
import struct

import numpy as np
import pytest
import torch

from regard.data.batch import IGNORED
from regard.data.batching import Batching
from regard.data.marks import BOS, EOS
from regard.data.midi import Midi, Note, midi_bytes, read_midi
from regard.data.music import Music, cells_of, cells_of_midi, copying_floor, midi_of, piece_of_midi, read_music, text_of
from regard.data.music_batches import LOWEST, MusicBatches, music_cache
from regard.data.words import PitchVocabulary
from regard.errors import DataError, UsageError

DUET = np.array([[72, 48], [72, 50], [-1, 50], [74, 50], [74, -1]])
GRID = PitchVocabulary(voices=2, steps=4)


def piece(length, seed):
    return np.random.default_rng(seed).integers(40, 80, (length, 2))


PIECES = [piece(3, 0), piece(20, 1), piece(1, 2), piece(11, 3)]


def test_a_file_by_hand():
    """Running status, an end by loudness 0, a meta event and a chunk of somebody's own in between."""
    events = bytes([0, 0x90, 60, 64, 0x60, 62, 64, 0, 60, 0, 0, 0xFF, 1, 2, 65, 66, 0x81, 0x40, 0x80, 62, 0, 0, 0xC0, 5, 0, 0xFF, 0x2F, 0])
    data = (
        b"MThd"
        + struct.pack(">IHHH", 6, 0, 1, 96)
        + b"JUNK"
        + struct.pack(">I", 2)
        + b"xx"
        + b"MTrk"
        + struct.pack(">I", len(events))
        + events
    )
    assert read_midi(data, where="x") == Midi(96, (Note(0, 96, 60), Note(96, 96 + 192, 62)))


@pytest.mark.parametrize("voices", [1, 2, 4, 5])
def test_there_and_back(voices):
    """A voice that is silent all along has no track: its pitches come back to the first voices."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        cells = np.sort(np.repeat(random.integers(30, 100, (9, voices)), random.integers(1, 4, 9), axis=0), axis=1)[:, ::-1]
        data = midi_of(cells, steps=4)
        again = piece_of_midi(data, voices=voices, steps=4, where="x")
        if all(a > b for a, b in zip(cells.mean(0), cells.mean(0)[1:], strict=False)):
            assert again.tolist() == cells.tolist()
        notes = read_midi(data, where="x").notes
        assert midi_bytes(Midi(480, notes)) == data
        assert sum(note.end - note.start for note in notes) == 120 * cells.size


def test_held_notes_are_one_and_rests_are_none():
    midi = read_midi(midi_of(DUET, steps=2), where="x")
    spans = [(n.start // 240, n.end // 240, n.pitch, n.part[1]) for n in midi.notes]
    assert sorted(spans) == [(0, 1, 48, 1), (0, 2, 72, 0), (1, 4, 50, 1), (3, 5, 74, 0)]
    assert cells_of_midi(midi, voices=2, steps=2).tolist() == DUET.tolist()
    near = Midi(480, (Note(7, 470, 60), Note(955, 960, 62)))
    assert cells_of_midi(near, voices=1, steps=1).tolist() == [[60], [-1], [62]]


def test_one_part_is_handed_out_from_above():
    notes = [Note(0, 480, 60), Note(0, 480, 67), Note(0, 240, 72), Note(0, 480, 48), Note(240, 480, 40)]
    found = cells_of_midi(Midi(480, tuple(sorted(notes))), voices=3, steps=2)
    assert found.tolist() == [[72, 67, 48], [67, 60, 40]]


@pytest.mark.parametrize("cut", [0, 3, 10, 15, 25, 40, -1, -3])
def test_a_file_that_is_cut_short_is_named(cut):
    data = midi_of(DUET, steps=4)
    with pytest.raises(DataError) as error:
        read_midi(data[:cut], where="songs/a.mid")
    assert "songs/a.mid" in str(error.value) and ("cut short" in str(error.value) or "no MIDI" in str(error.value))


def test_no_bytes_make_it_fail_otherwise():
    whole = midi_of(DUET, steps=4)
    random = np.random.default_rng(0)
    for _ in range(300):
        data = bytearray(whole)
        for place in random.integers(0, len(data), 3):
            data[place] = random.integers(256)
        try:
            read_midi(bytes(data), where="x")
        except DataError as error:
            assert "x" in str(error)


def test_text_and_back():
    assert text_of(DUET) == "72 48 72 50 - 50 74 50 74 -"
    assert cells_of(text_of(DUET), voices=2).tolist() == DUET.tolist()
    assert cells_of("72 48 72", voices=2).tolist() == [[72, 48]] and not len(cells_of("", voices=2))


def test_chorales_from_json(tmp_path):
    path = tmp_path / "songs.json.xz"
    path.write_bytes(lzma.compress(json.dumps({"train": [DUET.tolist()], "test": [[[60, 50]], [[61, -1]]]}).encode()))
    read = lambda part, voices=2: read_music([Music("songs.json.xz", part)], voices=voices, steps=4, root=tmp_path)
    assert [one.tolist() for one in read("test")] == [[[60, 50]], [[61, -1]]]
    for part, voices, says in (("valid", 2, "it has train, test"), ("", 2, "name the part"), ("train", 4, "4 pitches")):
        with pytest.raises(DataError, match=says):
            read(part, voices)
    for wrong in ([[[60, 128]]], [[[60.5, 3]]], [[["a", 3]]], [[[60], [1, 2]]], [[]], [[[60, -2]]]):
        (tmp_path / "wrong.json").write_text(json.dumps(wrong))
        with pytest.raises(DataError, match=r"wrong.json, piece 1"):
            read_music([Music("wrong.json")], voices=2, steps=4, root=tmp_path)
    (tmp_path / "wrong.json").write_text("[")
    with pytest.raises(DataError, match="no JSON"):
        read_music([Music("wrong.json")], voices=2, steps=4, root=tmp_path)


def test_a_folder_of_midi_files(tmp_path):
    (tmp_path / "songs" / "more").mkdir(parents=True)
    (tmp_path / "songs" / "more" / "b.mid").write_bytes(midi_of(DUET, steps=4))
    (tmp_path / "songs" / "a.MID").write_bytes(midi_of(DUET[:1], steps=4))
    (tmp_path / "songs" / "read.me").write_text("no music")
    found = read_music([Music("songs"), Music("songs/a.MID")], voices=2, steps=4, root=tmp_path)
    assert [one.tolist() for one in found] == [DUET[:1].tolist(), DUET.tolist(), DUET[:1].tolist()]
    (tmp_path / "songs" / "a.MID").write_bytes(midi_bytes(Midi(480, ())))
    with pytest.raises(DataError, match=r"a\.MID.*no note"):
        read_music([Music("songs")], voices=2, steps=4, root=tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no MIDI file"):
        read_music([Music("empty")], voices=2, steps=4, root=tmp_path)


def batches(*, length=8, tokens=40, **axes):
    layout = {key: axes.pop(key) for key in ("layout", "static") if key in axes}
    cache = music_cache(PIECES, GRID)
    return MusicBatches(cache, Batching(tokens=tokens, max_length=length, ahead=0, **layout), voices=2, **axes)


def asked(batch):
    real = batch.text.tokens.real
    return list(zip(batch.text.ids[real].tolist(), batch.labels[real].tolist(), strict=True))


@pytest.mark.parametrize("axes", [{}, {"layout": "padded"}, {"layout": "padded", "static": True}], ids=str)
@pytest.mark.parametrize("length", [2, 5, 8, 100])
def test_every_note_once_an_epoch_and_rows_begin_with_a_step(axes, length):
    made = batches(length=length, tokens=101, **axes)
    ids = [[BOS, *GRID.encode(text_of(one))] for one in PIECES]
    expected = sorted(pair for one in ids for pair in zip(one, [*one[1:], EOS], strict=True))
    for epoch in range(4):
        found = [made.drawn(starts, epoch=epoch) for starts in made.plan(epoch)]
        assert sorted(pair for batch in found for pair in asked(batch)) == expected
        for batch in found:
            tokens = batch.text.tokens
            odd = (tokens.positions % 2 == 1) & tokens.real
            upper = {one[place] for one in ids for place in range(1, len(one), 2)}
            assert set(batch.text.ids[odd].tolist()) <= upper
            assert batch.text.ids.numel() <= 101 or len(batch.pairs) == 1
        assert len({tuple(batch.text.ids.shape) for batch in found}) == 1 or not axes.get("static")
    assert made.in_epoch == sum(1 for _ in made.plan(0))
    asked_once = [pair for batch in made.once() for pair in asked(batch) if pair[1] != IGNORED]
    assert len(asked_once) == sum(one.size for one in PIECES) == sum(batch.target_tokens for batch in made.once())
    assert not any(label == EOS for _, label in asked_once)
    assert made.largest().text.ids.numel() >= max(batch.text.ids.numel() for batch in found) - 101 // 2


@pytest.mark.parametrize("layout", ["packed", "padded"])
def test_each_piece_moves_as_a_whole_and_stays_in_an_epoch(layout):
    plain, moved = batches(length=8, layout=layout), batches(length=8, layout=layout, transpose=3)
    for epoch in range(3):
        by_piece = {}
        for starts in plain.plan(epoch):
            before, after = plain.drawn(starts, epoch=epoch), moved.drawn(starts, epoch=epoch)
            same = before.text.ids < LOWEST
            assert torch.equal(before.text.ids[same], after.text.ids[same])
            change = after.text.ids - before.text.ids
            labels = torch.where(before.labels >= LOWEST, after.labels - before.labels, IGNORED)
            for row, start in enumerate(before.pairs):
                mine = before.text.tokens.documents[0] == row if layout == "packed" else row
                some = before.text.ids[0, mine] >= LOWEST if layout == "packed" else before.text.ids[mine] >= LOWEST
                moves = set((change[0, mine] if layout == "packed" else change[mine])[some].tolist())
                moves |= set((labels[0, mine] if layout == "packed" else labels[mine]).tolist()) - {IGNORED}
                by_piece.setdefault(int(plain._pieces(np.array([start]))[0]), set()).update(moves)
        assert all(len(moves) == 1 and abs(*moves) <= 3 for moves in by_piece.values())
    assert len({str(by_piece)}) == 1 and not all(moves == {0} for moves in by_piece.values())


def test_a_pitch_that_midi_has_not_stays():
    cache = music_cache([np.array([[127, 0], [-1, 64]])], GRID)
    made = MusicBatches(cache, Batching(tokens=20, max_length=20, ahead=0), voices=2, transpose=9)
    for epoch in range(9):
        ids = made.drawn(next(made.plan(epoch)), epoch=epoch).text.ids
        assert ids.max() < GRID.size and ids[0, 3] == LOWEST - 1


def test_constant_shapes_are_padded_ones():
    with pytest.raises(UsageError, match="padded"):
        batches(static=True)


def test_the_floor_of_copying_by_hand():
    """Of 4 moves 3 stay; 3 pitches. The one asked: two first notes by lot, then a stay and a move."""
    learned = [np.array([[1], [1], [1], [1], [2]]), np.array([[3]])]
    asked_of = [np.array([[1], [1], [2]]), np.array([[2]])]
    expected = -(2 * math.log(1 / 3) + math.log(3 / 4) + math.log(1 / 4 / 2)) / 4
    assert copying_floor(learned, asked_of) == pytest.approx(expected)
    with pytest.raises(DataError, match="never"):
        copying_floor([np.array([[1], [1]])], asked_of)

"""MIDI files, read and written by the standard library: of all that they may hold, the notes."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from regard.errors import DataError

DIVISION = 480  # ticks of a quarter note in what is written
BEATS = 90  # quarter notes a minute in what is written
LOUDNESS = 80
OFF, ON, META = 0x80, 0x90, 0xFF
SHORT = (0xC0, 0xD0)  # messages with one byte of data; other messages of a channel have two


@dataclass(frozen=True, order=True)
class Note:
    """One note, in ticks."""

    start: int
    end: int
    pitch: int
    part: tuple[int, int] = (0, 0)
    """Track and channel."""


@dataclass(frozen=True)
class Midi:
    """The notes of a file, by start, and how many ticks a quarter note has."""

    division: int
    notes: tuple[Note, ...]


def read_midi(data: bytes, *, where: str) -> Midi:
    """What the file says; one that is cut short or no MIDI file is an error that names it."""
    stream = _Stream(data, where)
    if data[:4] != b"MThd":
        raise stream.error("it is no MIDI file")
    stream.place = 4
    length, _form, tracks, division = struct.unpack(">IHHH", stream.take(10))
    stream.take(length - 6 if length > 6 else 0)
    if not division or division >= 1 << 15:
        raise stream.error("its time is counted in frames of film, not in quarter notes")
    notes: list[Note] = []
    track = 0
    while track < tracks:
        name, size = struct.unpack(">4sI", stream.take(8))
        content = stream.take(size)
        if name == b"MTrk":  # other chunks are passed over, as the standard asks
            notes += _notes(_Stream(content, f"{where}, track {track + 1}"), track)
            track += 1
    return Midi(division, tuple(sorted(notes)))


def midi_bytes(midi: Midi) -> bytes:
    """A file with these notes, a track for each part, at a steady beat."""
    parts = sorted({note.part for note in midi.notes})
    tempo = b"\x00\xff\x51\x03" + (60_000_000 // BEATS).to_bytes(3, "big")
    tracks = [tempo, *(_track([note for note in midi.notes if note.part == part]) for part in parts)]
    chunks = (b"MTrk" + struct.pack(">I", len(events) + 4) + events + b"\x00\xff\x2f\x00" for events in tracks)
    return b"MThd" + struct.pack(">IHHH", 6, 1, len(tracks), midi.division) + b"".join(chunks)


def _track(notes: Iterable[Note]) -> bytes:
    """The events of one part; where one note ends as another begins, the end comes first."""
    events = sorted(
        [(note.start, 1, note.pitch, note.part[1]) for note in notes] + [(note.end, 0, note.pitch, note.part[1]) for note in notes]
    )
    found, now = bytearray(), 0
    for time, begins, pitch, channel in events:
        found += _counted(time - now) + bytes([(ON if begins else OFF) | channel % 16, pitch, LOUDNESS if begins else 0])
        now = time
    return bytes(found)


def _counted(number: int) -> bytes:
    """A number in groups of seven bits, all but the last of them marked."""
    groups = [number & 0x7F]
    while number := number >> 7:
        groups.append(number & 0x7F | 0x80)
    return bytes(reversed(groups))


def _notes(stream: _Stream, track: int) -> list[Note]:
    time, status = 0, 0
    sounding: dict[tuple[int, int], list[int]] = {}
    notes: list[Note] = []

    def end(channel: int, pitch: int) -> None:
        if starts := sounding.get((channel, pitch)):
            notes.append(Note(starts.pop(0), time, pitch, (track, channel)))

    while not stream.over:
        time += stream.number()
        first = stream.byte()
        if first >= 0x80:
            status = first
        elif status < 0x80:
            raise stream.error("an event has no status")
        else:
            stream.place -= 1  # the last status still holds
        kind, channel = status & 0xF0, status & 0x0F
        if status == META:
            ended = stream.byte() == 0x2F
            stream.take(stream.number())
            status = 0
            if ended:
                break
        elif kind == 0xF0:
            stream.take(stream.number())
            status = 0
        else:
            pitch = stream.byte() & 0x7F
            loudness = 0 if kind in SHORT else stream.byte()
            if kind == ON and loudness:
                sounding.setdefault((channel, pitch), []).append(time)
            elif kind in (ON, OFF):
                end(channel, pitch)
    for (channel, pitch), starts in sounding.items():  # what nobody ended sounds to the end
        for _ in list(starts):
            end(channel, pitch)
    return notes


class _Stream:
    def __init__(self, data: bytes, where: str):
        self.data, self.where, self.place = data, where, 0

    @property
    def over(self) -> bool:
        return self.place >= len(self.data)

    def take(self, count: int) -> bytes:
        found = self.data[self.place : self.place + count]
        if len(found) < count:
            raise self.error(f"it is cut short: {count} bytes were to come, and {len(found)} did")
        self.place += count
        return found

    def byte(self) -> int:
        return self.take(1)[0]

    def number(self) -> int:
        found = 0
        for _ in range(4):
            byte = self.byte()
            found = found << 7 | byte & 0x7F
            if byte < 0x80:
                return found
        raise self.error("a number in it has no end")

    def error(self, what: str) -> DataError:
        return DataError(what, where=self.where, do="fetch or export the file again")

"""Speech: bands by hand, recordings read and refused, frames made fewer, letters from paths, and models that padding does not change."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.data.audio import Recordings, framed, labels_of, read_sound, read_speech
from regard.data.frame_batch import FrameBatch
from regard.decode.ctc import collapse, greedy, prefix_beam
from regard.errors import DataError, UsageError
from regard.evaluate.edits import edits, error_rate
from regard.models.speech import Listener, Speech, SpeechTransformer
from regard.nn.augment_frames import FrameMasks, mask_frames
from regard.nn.embed_frames import FrameEmbedding, Frames, after
from regard.nn.feedforward import FeedForward
from regard.nn.spectrum import FLOOR, LogMel, filters, frequency_of, log_mel, mel
from regard.nn.stages_speech import FrameStages
from regard.nn.trunk_transformer import Transformer
from regard.train.ctc_loss import CtcObjective
from regard.train.loss import CrossEntropy
from small_sound import RATE, archive, digits, tone, wav

FEATURES = LogMel(rate=RATE, mels=13)


def test_mel_by_hand():
    assert mel(0) == 0
    assert mel(700) == pytest.approx(2595 * math.log10(2))  # 781.17
    assert mel(1000) == pytest.approx(999.99, abs=0.01)
    assert frequency_of(mel(3141.0)) == pytest.approx(3141.0)


def test_filters_by_hand():
    # bins at 0, 1000, 2000, 3000, 4000 Hz; two bands whose corners are at 0, 621, 1791, 4000 Hz (715.4 mel apart)
    config = LogMel(rate=8000, window=0.001, hop=0.001, mels=2, lowest=0)
    corners = [frequency_of(place * mel(4000) / 3) for place in range(4)]
    assert corners == pytest.approx([0, 620.6, 1791.3, 4000], abs=0.1)
    assert config.points == 8
    first = [0, (corners[2] - 1000) / (corners[2] - corners[1]), 0, 0, 0]
    second = [0, (1000 - corners[1]) / (corners[2] - corners[1]), (4000 - 2000) / (4000 - corners[2]), 1000 / (4000 - corners[2]), 0]
    torch.testing.assert_close(filters(config).T, torch.tensor([first, second]), atol=1e-6, rtol=1e-5)


def test_bands_that_no_bin_falls_into_are_refused():
    with pytest.raises(UsageError, match=r"band 3 of 130 lies between two bins .* of 256 points; take fewer mels, or more points"):
        filters(LogMel(rate=8000, mels=130))
    assert filters(LogMel(rate=8000, mels=130, transform=1024)).shape == (513, 130)
    for wrong in ({"window": 0.0}, {"transform": 64}, {"lowest": 5000.0}, {"highest": 9000.0}):
        with pytest.raises(UsageError):
            LogMel(rate=8000, **wrong)


def test_power_of_a_tone_lies_in_its_band():
    config = LogMel(rate=8000, mels=23, normalise="none")
    pitch = 1000.0  # 32 bins of 31.25 Hz: on a bin
    frames = log_mel(torch.sin(2 * math.pi * pitch * torch.arange(1000) / 8000), config)
    assert frames.shape == (config.frames(1000), 23) == (11, 23)
    # Hann's window of 200 samples has the sum 100: a sine of amplitude 1 has the power (100 / 2)^2 at its own bin
    power_at_bin = torch.fft.rfft(torch.sin(2 * math.pi * pitch * torch.arange(200) / 8000) * torch.hann_window(200), n=256).abs()[32]
    assert float(power_at_bin) == pytest.approx(50, abs=0.01)
    peak = int(filters(config)[32].argmax())
    assert (frames.argmax(1) == peak).all()
    assert log_mel(torch.zeros(200), config).eq(math.log(FLOOR)).all()


def test_frames_count_only_whole_windows():
    assert [FEATURES.frames(n) for n in (0, 199, 200, 279, 280, 1000)] == [0, 0, 1, 1, 2, 11]
    assert log_mel(torch.zeros(199), FEATURES).shape == (0, 13)
    frames = log_mel(torch.from_numpy(tone(440)).float(), FEATURES)
    torch.testing.assert_close(frames.mean(0), torch.zeros(13), atol=1e-4, rtol=0)
    torch.testing.assert_close(frames.std(0, correction=0), torch.ones(13))
    torch.testing.assert_close(log_mel(3 * torch.from_numpy(tone(440)).float(), FEATURES), frames, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize(("width", "channels"), [(1, 1), (2, 1), (2, 2), (3, 1), (4, 2)])
def test_wav_of_all_widths(width: int, channels: int):
    samples = np.array([0.0, 0.5, -0.5, 0.25, -1.0, 0.125, -0.0625])
    read = read_sound(wav(samples, width=width, channels=channels), rate=RATE, where="x")
    torch.testing.assert_close(read, torch.from_numpy(samples).float())


def test_other_formats_by_soundfile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    soundfile = pytest.importorskip("soundfile", reason="soundfile is an extra")
    samples = tone(300, 0.05)
    soundfile.write(tmp_path / "x.flac", samples, RATE)
    torch.testing.assert_close(read_sound(tmp_path / "x.flac", rate=RATE, where="x"), torch.from_numpy(samples).float(), atol=1e-4, rtol=0)
    soundfile.write(tmp_path / "x.wav", samples, RATE, subtype="FLOAT")
    torch.testing.assert_close(read_sound(tmp_path / "x.wav", rate=RATE, where="x"), torch.from_numpy(samples).float())
    with pytest.raises(DataError, match=r"x\.flac: it is no recording that can be read"):
        read_sound((tmp_path / "x.flac").read_bytes()[:30], rate=RATE, where="x.flac")


def test_soundfile_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "soundfile", None)
    with pytest.raises(UsageError, match=r'x\.flac: .* soundfile is needed; install it with pip install "regard\[audio\]"'):
        read_sound(b"fLaC", rate=RATE, where="x.flac")


def test_recordings_that_cannot_be_used_are_named():
    whole = wav(tone(300))
    for content, said in (
        (b"", "the file is empty"),
        (wav(np.zeros(0)), "the recording is empty"),
        (wav(tone(300)[:199]), r"too short \(0.025 s, less than one window of 0.025 s\)"),
        (wav(np.zeros(2400)), "silent"),
        (wav(np.full(2400, 0.25)), "silent"),
        (whole[:-100], "cut short: it says 2400 samples, but holds 2350"),
        (whole[:30], "damaged or cut short"),
        (wav(tone(300), rate=16_000), "has 16000 samples a second, and the model reads 8000; resample it"),
    ):
        with pytest.raises(DataError, match=rf"7_anna_3\.wav: .*{said}"):
            framed(content, FEATURES, where="7_anna_3.wav")
    with pytest.raises(DataError, match=r"absent\.wav: no such file"):
        read_sound(Path("absent.wav"), rate=RATE, where="absent.wav")


def test_recordings_in_an_archive_a_folder_and_a_list(tmp_path: Path):
    files = digits(3, names="92")
    archive(tmp_path / "all.tar.xz", files)
    speech = read_speech([Recordings("all.tar.xz", label="^([0-9])_", only="_[01]$", spelled=("2=two",))], FEATURES, root=tmp_path)
    assert speech.said == ("two", "two", "9", "9")
    assert labels_of(speech) == ("9", "two")
    assert [Path(name).name for name in speech.files] == ["2_anna_0.wav", "2_anna_1.wav", "9_anna_0.wav", "9_anna_1.wav"]
    for name, content in files.items():
        (tmp_path / "folder" / name[0]).mkdir(parents=True, exist_ok=True)
        (tmp_path / "folder" / name[0] / name).write_bytes(content)
    (tmp_path / "folder" / "list.tsv").write_text("9/9_anna_1.wav\tneun\n2/2_anna_0.wav\tzwei\n")
    assert read_speech([Recordings("folder")], FEATURES, root=tmp_path).said == ("2", "2", "2", "9", "9", "9")
    listed = read_speech([Recordings("folder", manifest="list.tsv")], FEATURES, root=tmp_path)
    assert listed.said == ("zwei", "neun")
    torch.testing.assert_close(listed.frames[1], speech.frames[3])


def test_corpora_that_are_wrong(tmp_path: Path):
    path = archive(tmp_path / "all.tar.xz", digits(2, names="92"))
    read = lambda corpus: read_speech([corpus], FEATURES, root=tmp_path)
    with pytest.raises(DataError, match="no such folder or archive"):
        read(Recordings("absent"))
    with pytest.raises(DataError, match=r"no recording in it whose name matches _7\$"):
        read(Recordings("all.tar.xz", only="_7$"))
    with pytest.raises(DataError, match=r"2_anna_0\.wav: no label is found in its name by"):
        read(Recordings("all.tar.xz", label="^([a-z])_"))
    with pytest.raises(DataError, match=r"list\.tsv: there is no such list"):
        read(Recordings("all.tar.xz", manifest="list.tsv"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.wav").write_bytes(wav(tone(300)))
    for rows, said in (("a.wav\n", ":1: a row is a path"), ("a.wav\tx\nb.wav\ty\n", r":2: there is no recording b\.wav")):
        (tmp_path / "folder" / "list.tsv").write_text(rows)
        with pytest.raises(DataError, match=said):
            read(Recordings("folder", manifest="list.tsv"))
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DataError, match=r"all\.tar\.xz: the archive is damaged or ends early"):
        read(Recordings("all.tar.xz"))
    for wrong, said in (
        ({"label": "("}, "regular"),
        ({"only": "["}, "regular"),
        ({"label": "^a"}, "no group"),
        ({"spelled": ("a",)}, "write"),
    ):
        with pytest.raises(UsageError, match=said):
            Recordings("x", **wrong)


def test_lengths_follow_the_stride():
    for stride, kernel in product((1, 2, 3), (3, 5, 7)):
        layer = Frames(FrameEmbedding(convolutions=2, stride=stride, kernel=kernel, dropout=0.0), 6, mels=5, name="frames").eval()
        for length in range(1, 24):
            x, tokens = layer(torch.randn(1, length, 5), torch.ones(1, length, dtype=torch.bool))
            assert x.shape[1] == tokens.real.sum() == layer.lengths(torch.tensor([length]))[0]
    assert after(torch.tensor([1, 2, 3, 4, 5, 11]), 2).tolist() == [1, 1, 2, 2, 3, 6]
    with pytest.raises(UsageError, match="convolutions of 4 frames"):
        FrameEmbedding(kernel=4)


BODIES = {
    "transformer": SpeechTransformer(
        encoder=Transformer(layers=2, heads=2, placement="pre", dropout=0.0, feed_forward=FeedForward(d_ff=22))
    ),
    "post-norm": SpeechTransformer(
        embedding=FrameEmbedding(convolutions=1, kernel=3, stride=3, dropout=0.0),
        encoder=Transformer(layers=1, heads=2, dropout=0.0, feed_forward=FeedForward(d_ff=22)),
    ),
    "convolution": FrameStages(stages=3, kernel=3, dropout=0.0),
}
RECORDINGS = (17, 5, 29, 1, 11)  # frames


def listener(body: str, output: str = "label") -> Listener:
    torch.manual_seed(5)
    model = Listener(Speech(d_model=12, features=FEATURES, body=BODIES[body], output=output, labels=("a", "b", "c")))  # type: ignore[arg-type]
    torch.nn.init.normal_(model.output.outer.weight)
    return model.double().eval()


def recordings() -> FrameBatch:
    torch.manual_seed(6)
    frames = [torch.randn(length, 13).double() for length in RECORDINGS]
    return FrameBatch.of(frames, [[1], [2, 2], [], [3], [1, 3, 2]], range(len(frames)))


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("output", ["label", "ctc"])
def test_padding_and_the_rest_of_the_batch_change_nothing(body: str, output: str):
    model, batch = listener(body, output), recordings()
    whole = model.output(model(batch))
    lengths = model.lengths(batch.lengths)
    longer = FrameBatch.of([*batch.frames, torch.full((37, 13), 9.0).double()], [[]] * 6, range(6))
    among = model.output(model(FrameBatch(longer.frames, torch.cat([batch.lengths, longer.lengths[-1:]]), *vars_of(longer))))
    for row, length in enumerate(lengths.tolist()):
        alone = model.output(model(batch.part(range(row, row + 1))))[0]
        kept = slice(None) if output == "label" else slice(length)
        torch.testing.assert_close(whole[row][kept], alone, atol=1e-9, rtol=0)
        torch.testing.assert_close(among[row][kept], alone, atol=1e-9, rtol=0)
    assert torch.pdist(whole[:, 0] if output == "ctc" else whole).min() > 1e-3


def vars_of(batch: FrameBatch) -> tuple:
    return batch.labels, batch.spelled, batch.pairs, batch.source_tokens, batch.target_tokens


def test_padding_gets_no_gradient():
    model, batch = listener("transformer"), recordings()
    frames = batch.frames.clone().requires_grad_()
    x, tokens = model.body(frames, batch.real)
    x[tokens.real].square().sum().backward()
    assert frames.grad is not None and (frames.grad[batch.real].abs().sum(1) > 0).all()
    assert not frames.grad[~batch.real].any()


def test_a_batch_and_its_parts():
    batch = recordings()
    assert (batch.source_tokens, batch.target_tokens) == (63, 7)
    part = batch.part(range(1, 3))
    assert (part.frames.shape, part.labels.tolist(), part.pairs, part.source_tokens) == ((2, 29, 13), [[2, 2], [0, 0]], (1, 2), 34)


def test_masks_hide_what_they_say():
    torch.manual_seed(2)
    ones, lengths = torch.ones(400, 20, 11), torch.tensor([20, 10] * 200)
    hidden = mask_frames(ones, lengths, FrameMasks(bands=4, share=0.3)) == 0
    bands, times = hidden.all(1).sum(1), (hidden.all(2)).sum(1)
    assert (
        set(bands.tolist()) == {0, 1, 2, 3, 4} and set(times[::2].tolist()) == set(range(7)) and set(times[1::2].tolist()) == set(range(4))
    )
    assert not hidden[1::2, 10:].all(2).any(), "only what is real is hidden"
    assert torch.equal(mask_frames(ones, lengths, FrameMasks()), ones)


def test_paths_by_hand():
    assert collapse([0, 1, 1, 0, 1, 2, 2, 0]) == (1, 1, 2)
    assert collapse([0, 0]) == ()
    # two places, blank .6/.6 and one letter .4/.4: the best path is two blanks (.36), the best text the letter (.16 + .24 + .24)
    log_probs = torch.tensor([[0.6, 0.4], [0.6, 0.4]]).log()
    (best,) = greedy(log_probs[None], torch.tensor([2]))
    assert best.letters == () and math.exp(best.log_prob) == pytest.approx(0.36)
    texts = {one.letters: math.exp(one.log_prob) for one in prefix_beam(log_probs)}
    assert texts == pytest.approx({(1,): 0.64, (): 0.36})
    assert [one.letters for one in prefix_beam(log_probs, beam=1)] == [()]  # too narrow for the letter, which is behind at first
    (short,) = greedy(log_probs[None], torch.tensor([1]))  # the second place is padding
    assert math.exp(short.log_prob) == pytest.approx(0.6)


def test_a_wide_beam_sums_over_all_paths_and_agrees_with_the_loss():
    torch.manual_seed(7)
    log_probs = torch.randn(5, 3).double().log_softmax(1)
    every: dict[tuple[int, ...], float] = {}
    for path in product(range(3), repeat=5):
        text = collapse(path)
        every[text] = every.get(text, 0.0) + math.exp(sum(float(log_probs[place, letter]) for place, letter in enumerate(path)))
    found = prefix_beam(log_probs, beam=1000)
    assert {one.letters: math.exp(one.log_prob) for one in found} == pytest.approx(every)
    assert [one.log_prob for one in found] == sorted((one.log_prob for one in found), reverse=True)
    for text in ((1,), (1, 1), (2, 1, 2)):  # 1 1 needs a blank between
        args = (log_probs[:, None], torch.tensor([text]), torch.tensor([5]), torch.tensor([len(text)]))
        loss = torch.nn.functional.ctc_loss(*args, reduction="sum")
        assert math.exp(-loss) == pytest.approx(every[text])


def test_edits_by_hand():
    assert edits("kitten", "sitting") == 3
    assert edits("", "abc") == edits("abc", "") == 3
    assert error_rate(["seven", "to"], ["seven", "two"]) == pytest.approx(100 / 8)
    assert error_rate([["a", "b"]], [["b"]]) == 100


def test_the_loss_of_letters_takes_what_comes_besides_and_refuses_what_it_cannot_do():
    batch, l2 = recordings(), 0.3
    plain, pulled = (CtcObjective(listener("transformer", "ctc"), CrossEntropy(smoothing=0.0, l2=strength)) for strength in (0.0, l2))
    torch.testing.assert_close(pulled(batch), plain(batch))  # the models are at rest
    squares = sum(parameter.square().sum() for parameter in pulled.model.parameters() if parameter.ndim > 1)
    pulled.model.training = True  # its dropout still rests
    torch.testing.assert_close(pulled(batch) - plain(batch), l2 / 2 * batch.target_tokens * squares)
    for loss, said in ((CrossEntropy(), "smoothing = 0.1"), (CrossEntropy(smoothing=0.0, r_drop=2.0), "r_drop = 2.0")):
        with pytest.raises(UsageError, match=f"{said} is not defined over all paths"):
            CtcObjective(listener("transformer", "ctc"), loss)

"""What people bring: wavs of every kind, tables with mistakes, file names of published corpora."""

import numpy as np
import pytest
from conftest import RATE, voice, write_wav

from undertone_training import corpora, labels, pack
from undertone_training.corpora import CorpusError, load, read_corpus
from undertone_training.wav import read_wav


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 44100, 48000])
@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_a_sine_of_any_rate_and_depth_comes_out_as_itself(tmp_path, rate, width):
    t = np.arange(rate) / rate
    write_wav(tmp_path / "a.wav", 0.5 * np.sin(2 * np.pi * 440 * t), rate, width)
    got = read_wav(tmp_path / "a.wav").astype(float) / 32767
    want = 0.5 * np.sin(2 * np.pi * 440 * np.arange(len(got)) / RATE)
    assert abs(len(got) - RATE) <= 1
    noise = got[800:-800] - want[800:-800]
    assert 20 * np.log10(0.35 / noise.std()) > (30 if width == 1 else 55)


def test_two_channels_are_mixed_down(tmp_path):
    pair = np.stack([np.full(RATE, 0.5), np.full(RATE, -0.5)], 1).ravel()
    write_wav(tmp_path / "a.wav", pair, channels=2)
    assert np.abs(read_wav(tmp_path / "a.wav")).max() <= 1


def test_a_file_that_is_no_wav_is_named(tmp_path):
    (tmp_path / "x.wav").write_bytes(b"this is no sound")
    (tmp_path / "clips.csv").write_text("path,speaker,emotion\nx.wav,a,happy\n")
    clips = read_corpus("mine", "csv", tmp_path)
    with pytest.raises(CorpusError, match="x.wav: not a readable wav"):
        pack.write(clips, tmp_path / "pack", 1)


def test_a_missing_file_is_named_with_its_line(tmp_path):
    (tmp_path / "clips.csv").write_text("path,speaker,emotion\ngone.wav,a,happy\n")
    with pytest.raises(CorpusError, match=r"clips.csv:2: no such file: .*gone.wav"):
        read_corpus("mine", "csv", tmp_path)


def test_an_unknown_label_is_named_with_its_line_and_the_known_ones(tmp_path):
    write_wav(tmp_path / "a.wav", voice(120))
    (tmp_path / "clips.csv").write_text("path,speaker,emotion\na.wav,a,hungry\n")
    with pytest.raises(labels.UnknownEmotionError, match=r"clips.csv:2: unknown emotion 'hungry' \(known: .*neutral"):
        read_corpus("mine", "csv", tmp_path)


def test_a_missing_column_or_speaker_is_named(tmp_path):
    (tmp_path / "clips.csv").write_text("path,emotion\na.wav,happy\n")
    with pytest.raises(CorpusError, match="missing column speaker"):
        read_corpus("mine", "csv", tmp_path)
    write_wav(tmp_path / "a.wav", voice(120))
    (tmp_path / "clips.csv").write_text("path,speaker,emotion\na.wav,,happy\n")
    with pytest.raises(CorpusError, match="no speaker given"):
        read_corpus("mine", "csv", tmp_path)


def test_an_unknown_kind_and_a_missing_folder_are_named(tmp_path):
    with pytest.raises(CorpusError, match="unknown kind 'tape'"):
        read_corpus("mine", "tape", tmp_path)
    with pytest.raises(CorpusError, match="no such folder"):
        read_corpus("mine", "csv", tmp_path / "nowhere")


def test_ravdess_and_cremad_folders_are_read_by_their_file_names(tmp_path):
    write_wav(tmp_path / "r/Actor_12/03-01-06-01-02-01-12.wav", voice(200))
    write_wav(tmp_path / "c/AudioWAV/1001_DFA_ANG_XX.wav", voice(110))
    (r,) = read_corpus("ravdess", "ravdess", tmp_path / "r")
    (c,) = read_corpus("cremad", "cremad", tmp_path / "c")
    assert (r.speaker, labels.EMOTIONS[r.emotion]) == ("rav12", "nervous")
    assert (c.speaker, labels.EMOTIONS[c.emotion]) == ("cre1001", "angry")
    assert len(load(r)) == len(voice(200))
    write_wav(tmp_path / "c/AudioWAV/holiday.wav", voice(110))
    with pytest.raises(CorpusError, match="holiday.wav: not a CREMA-D file name"):
        read_corpus("cremad", "cremad", tmp_path / "c")


def test_listeners_votes_become_shares_and_wrong_ones_are_named():
    shares = corpora._votes("6/2/0/0/1/1", "x.csv:2")
    assert shares is not None
    assert shares[labels.EMOTIONS.index("angry")] == 0.6
    assert abs(sum(shares) - 1) < 1e-9
    with pytest.raises(CorpusError, match="x.csv:2: votes must be 6 numbers"):
        corpora._votes("6/2", "x.csv:2")


def test_packed_clips_come_back_sample_for_sample(tmp_path, corpus):
    clips = read_corpus("mine", "csv", corpus)
    packed = pack.write(clips, tmp_path, 2)
    again = pack.read(tmp_path)
    for i in (0, 7, len(clips) - 1):
        assert np.array_equal(again.audio(i), load(clips[i]))
        assert again.clips[i].speaker == clips[i].speaker
    assert packed.start.tolist() == again.start.tolist()


def test_voice_is_marked_where_the_sound_is():
    quiet = np.zeros(RATE)
    samples = np.concatenate([quiet, voice(120, 1.0), quiet])
    flags = pack.voiced((samples * 32767).astype(np.int16))
    assert flags[:95].mean() < 0.02
    assert flags[105:195].mean() > 0.95
    assert flags[205:].mean() < 0.02

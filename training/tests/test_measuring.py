"""Splits, windows, metrics and calibration: the parts that decide whether a figure is honest. numpy alone."""

import numpy as np
import pytest

from undertone_training import calibration, conditions, metrics, ood, splits
from undertone_training.corpora import Clip
from undertone_training.pack import Pack
from undertone_training.windows import by_length, laid_end_to_end, single_clips


def clip(speaker, emotion=0, corpus="c"):
    return Clip(corpus, speaker, emotion, "x", ())


def packed(lengths, speakers=None, emotions=None):
    starts, samples, at = [], [], 0
    for n in lengths:
        starts.append(at)
        size = -(-n // 160) * 160
        samples.append(np.pad(np.full(n, 1000, np.int16), (0, size - n)))
        at += size
    flat = np.concatenate(samples)
    clips = [
        clip((speakers or ["a"] * len(lengths))[i], (emotions or [0] * len(lengths))[i]) for i in range(len(lengths))
    ]
    return Pack(flat, np.ones(at // 160, np.uint8), clips, np.array(starts), np.array(lengths))


def test_no_speaker_stands_on_two_sides():
    clips = [clip(f"s{i % 20}", i % 4) for i in range(200)]
    sides = splits.assign(clips, {"c": {"share": 0.3}})
    by_speaker: dict[str, set[str]] = {}
    for c, side in zip(clips, sides):
        by_speaker.setdefault(c.speaker, set()).add(side)
    assert all(len(s) == 1 for s in by_speaker.values())
    assert {"train", "validation"} == {side for s in by_speaker.values() for side in s}
    assert sides == splits.assign(clips, {"c": {"share": 0.3}})


def test_a_speaker_on_both_sides_is_named():
    # The same name in two corpora counts as the same speaker.
    clips = [clip("anna", corpus="c"), clip("anna", corpus="d")]
    with pytest.raises(splits.SplitError, match="speaker 'anna' .* is in both"):
        splits.assign(clips, {"c": ["anna"], "d": []})


def test_a_speaker_that_does_not_exist_is_named():
    with pytest.raises(splits.SplitError, match="no such speaker: bob"):
        splits.assign([clip("anna")], {"c": ["bob"]})


def test_excluded_speakers_are_neither_trained_on_nor_measured():
    assert splits.assign([clip("a"), clip("b"), clip("c")], {"c": ["b"]}, {"c": ["c"]}) == [
        "train",
        "validation",
        "excluded",
    ]


def test_windows_are_full_and_belong_to_one_speaker_and_emotion():
    p = packed([40000, 50000, 30000, 20000], ["a", "a", "a", "b"], [0, 0, 1, 0])
    windows = laid_end_to_end(p, np.ones(4, bool))
    assert {len(s) for s in windows.samples} == {80000}
    # 40,000 + 50,000 and two gaps hold one window and too little for another; the other groups are repeated.
    assert [(c.speaker, c.emotion) for c in windows.clips] == [("a", 0), ("a", 1), ("b", 0)]


def test_single_clips_keep_their_own_length_within_1_to_10_seconds():
    p = packed([8000, 30001, 400000])
    assert [len(s) for s in single_clips(p, np.ones(3, bool)).samples] == [16000, 28000, 160000]


def test_batches_hold_every_window_once_and_only_one_length():
    p = packed([16000 + 4000 * (i % 3) for i in range(20)])
    windows = single_clips(p, np.ones(20, bool))
    batches = list(by_length(windows, 4))
    assert sorted(i for b in batches for i in b) == list(range(20))
    assert all(len({len(windows.samples[i]) for i in b}) == 1 for b in batches)


def test_uar_counts_every_class_the_same():
    truth = np.array([0] * 90 + [1] * 10)
    p = np.zeros((100, 2))
    p[:, 0] = 1  # always the large class
    s = metrics.summary(truth, p)
    assert s["accuracy"] == 0.9
    assert s["uar"] == 0.5
    assert s["recalls"] == [1.0, 0.0]


def test_a_class_that_does_not_occur_does_not_count():
    s = metrics.summary(np.array([0, 1]), np.array([[0.9, 0.05, 0.05], [0.2, 0.7, 0.1]]))
    assert s["uar"] == 1.0
    assert s["recalls"][2] is None


def overconfident(seed=3, count=4000, classes=4):
    """Logits whose softmax is three times too steep for how often it is right."""
    g = np.random.default_rng(seed)
    logits = g.standard_normal((count, classes)) * 1.5
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    truth = np.array([g.choice(classes, p=row) for row in p])
    return truth, logits * 3, np.ones(count), np.ones(count)


def test_calibration_finds_the_temperature_that_was_hidden():
    truth, logits, speech, score = overconfident()
    t = calibration.fit_temperature([(truth, logits, speech, score)])
    assert 2.7 < t < 3.3
    before = metrics.calibration_error(truth, calibration.probabilities(logits, speech, score, 1.0))
    after = metrics.calibration_error(truth, calibration.probabilities(logits, speech, score, t))
    assert after < 0.03 < before


def test_the_chosen_temperature_is_modest_but_not_at_the_cost_of_home():
    truth, logits, *rest = overconfident()
    home = [(truth, logits / 3, *rest)]
    away = [(truth, logits, *rest)]
    t = calibration.choose_temperature(home, away, limit=0.05)
    assert 1.02 < t < 3
    assert calibration.pooled_error(home, t) <= 0.05


def test_the_temperature_is_no_higher_than_corpora_left_out_ask_for():
    truth, logits, *rest = overconfident()
    home, away = [(truth, logits, *rest)], [(truth, logits / 1.2, *rest)]
    at_home = calibration.fit_temperature(home)
    assert calibration.choose_temperature(home, limit=0.2) > 1.2 * at_home
    assert calibration.choose_temperature(home, away, limit=0.2) <= at_home


def test_without_speech_the_answer_is_flat_and_with_half_of_it_between():
    logits = np.array([[5.0, 0, 0, 0]] * 3)
    p = calibration.probabilities(logits, np.array([0.0, 0.3, 0.9]), np.ones(3), 1.0)
    assert np.allclose(p[0], 0.25)
    assert 0.25 < p[1].max() < p[2].max()
    assert np.allclose(p.sum(1), 1)


def test_the_higher_the_out_of_distribution_score_the_lower_the_confidence():
    p = calibration.probabilities(np.array([[3.0, 0, 0, 0]] * 4), np.ones(4), np.array([0.1, 0.5, 1.0, 3.0]), 1.0)
    assert p[0].max() == p[1].max() > p[2].max() > p[3].max() > 0.25


def cloud(count, shift=0.0, seed=0):
    """Features that vary much in one direction and little in the others; a shift is in the direction of little."""
    g = np.random.default_rng(seed)
    return g.standard_normal((count, 8)) * np.array([10, 1, 1, 1, 1, 1, 1, 1]) + shift * np.eye(8)[3]


def test_a_typical_unheard_voice_has_score_one_and_an_unfamiliar_one_more():
    mean, root = ood.fit([cloud(500, seed=1), cloud(300, seed=2)], [cloud(400, seed=3)])
    assert abs(np.median(ood.score(cloud(400, seed=3), mean, root)) - 1) < 1e-6
    assert abs(np.median(ood.score(cloud(400, seed=4), mean, root)) - 1) < 0.2
    assert np.median(ood.score(cloud(400, 6.0, seed=5), mean, root)) > 2


def test_what_varies_among_known_voices_does_not_count_as_unfamiliar():
    mean, root = ood.fit([cloud(2000)], [cloud(2000, seed=1)])
    common, rare = np.zeros((2, 1, 8))
    common[0, 0], rare[0, 3] = 10, 10
    assert ood.score(rare, mean, root) > 3 * ood.score(common, mean, root)


def test_a_telephone_lets_only_its_band_through():
    t = np.arange(32000) / 16000
    for hz, passes in ((100, False), (1000, True), (3000, True), (5000, False)):
        out = conditions.telephone(0.3 * np.sin(2 * np.pi * hz * t).astype(np.float32))
        assert (np.std(out) > 0.15) == passes, hz


def test_babble_has_the_asked_signal_to_noise_ratio():
    g = np.random.default_rng(0)
    voices = [g.standard_normal(16000) for _ in range(8)]
    samples = g.standard_normal(16000).astype(np.float32)
    noisy = conditions.babble(voices, 10)(samples, g)
    assert abs(10 * np.log10((samples**2).mean() / ((noisy - samples) ** 2).mean()) - 10) < 0.1

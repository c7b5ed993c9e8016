"""Mergeable statistics, against the rows themselves and against scipy, and their files."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ladder_data import STEPS, draw, make_bank
from map_data import draw_logits
from scipy.optimize import brentq
from scipy.special import log_softmax, softmax

from shiftcal import SAC, metrics
from shiftcal.errors import FileError, FitWarning, InputError
from shiftcal.files import checksum_of
from shiftcal.maps import Temperature
from shiftcal.scores import Scores
from shiftcal.scoring import statistics as module
from shiftcal.scoring.statistics import (
    EXACT_BITS,
    Part,
    ScoreStatistics,
    cell_of,
    exact_sum,
    fixed_square_sum,
    fixed_sum,
    n_cells,
    read_statistics,
)


@pytest.fixture(scope="module")
def rows():
    """3,000 over-confident rows of 7 classes."""
    return draw_logits(3000, 7, temperature=2.3, seed=4)


@pytest.fixture(scope="module")
def statistics(rows):
    return ScoreStatistics.of_rows(*rows)


def scipy_temperature(z, y):
    """Where the slope by the inverse temperature is zero, by a bracketing search."""
    at = np.arange(len(z)), y

    def slope(beta):
        return ((softmax(beta * z, axis=1) * z).sum(axis=1) - z[at]).mean()

    return 1 / brentq(slope, 0.01, 100, xtol=1e-14, rtol=1e-14)


def test_every_number_is_that_of_the_rows(rows, statistics):
    z, y = rows
    p = softmax(z, axis=1)
    confidence, correct = p.max(axis=1), p.argmax(axis=1) == y
    assert (statistics.n, statistics.k, statistics.labelled) == (3000, 7, True)
    assert statistics.accuracy() == correct.mean()
    # every row is rounded to 2**-41
    assert statistics.mean_confidence == pytest.approx(confidence.mean(), abs=1e-12)
    assert statistics.sd_confidence == pytest.approx(confidence.std(), abs=1e-11)
    losses = -log_softmax(z, axis=1)[np.arange(len(z)), y]
    assert statistics.nll() == pytest.approx(losses.mean(), rel=1e-12)
    assert statistics.brier() == pytest.approx(metrics.brier(p, y), abs=1e-12)
    # confidences are rounded to 2**-31 there
    width = metrics.ece(confidence, correct, binning="width")
    assert statistics.ece(binning="width") == pytest.approx(width, abs=1e-9)
    low, high = statistics.ece_range()
    assert low <= metrics.ece(confidence, correct) <= high
    # over-confident in every bin, where the cells lose nothing
    assert statistics.ece() == pytest.approx(metrics.ece(confidence, correct), abs=1e-8)
    fine = ScoreStatistics.of_rows(z, y, precision=11)
    for name in ("ece", "debiased_ece", "ks_error", "smooth_ece", "aurc", "top1_brier", "mce"):
        exact = getattr(metrics, name)(confidence, correct)
        assert getattr(fine, name)() == pytest.approx(exact, abs=2e-6), name
    exact_table = metrics.bin_table(confidence, correct)
    np.testing.assert_allclose(fine.bin_table().confidence, exact_table.confidence, atol=1e-4)


def test_the_temperature_is_that_of_the_exact_fit_and_of_scipy(rows, statistics):
    z, y = rows
    fit = statistics.temperature_fit()
    exact = Temperature().fit(z, y).temperature_
    assert fit.status.converged
    assert fit.temperature == pytest.approx(exact, rel=1e-8)
    assert fit.temperature == pytest.approx(scipy_temperature(z, y), rel=1e-8)
    losses = -log_softmax(z / exact, axis=1)[np.arange(len(z)), y]
    assert fit.loss == statistics.nll(fit.temperature) == pytest.approx(losses.mean(), abs=1e-9)
    assert statistics.temperature == fit.temperature


@pytest.mark.parametrize(("k", "factor"), [(2, 25.0), (30, 0.4), (1000, 0.02)])
def test_the_temperature_holds_from_sharp_to_flat(k, factor):
    z, y = draw_logits(400, k, temperature=1.5, seed=k)
    found = ScoreStatistics.of_rows(factor * z, y).temperature
    # the tolerance we state
    assert found == pytest.approx(scipy_temperature(factor * z, y), rel=1e-6)


def test_an_end_of_the_range_says_why():
    z, y = draw(300, 1.0, seed=3)
    for logits, labels, end, why in (
        (z, z.argmax(axis=1), (0.01, "at-lower-bound"), "error-free"),
        (z, z.argmin(axis=1), (100.0, "at-upper-bound"), "no better than chance"),
        (np.zeros((5, 3)), [0, 1, 2, 0, 1], (100.0, "at-upper-bound"), "is constant"),
    ):
        fit = ScoreStatistics.of_rows(logits, labels).temperature_fit()
        assert (fit.temperature, fit.status.code) == end
        assert why in fit.status.message
    for t_range, why in (((5.0, 9.0), "lower yet"), ((0.1, 0.2), "higher yet")):
        fit = ScoreStatistics.of_rows(z, y).temperature_fit(t_range=t_range)
        with pytest.warns(FitWarning, match=why):
            exact = Temperature(t_range=t_range).fit(z, y)
        assert why in fit.status.message == exact.status_.message
        assert fit.temperature == exact.temperature_


def test_mapped_half_precision_is_read_in_blocks(tmp_path, monkeypatch, rows):
    z, y = rows
    half = z.astype(np.float16)
    np.save(tmp_path / "logits.npy", half)
    mapped = np.load(tmp_path / "logits.npy", mmap_mode="r")
    whole = ScoreStatistics.of_rows(half.astype(np.float64), y)
    monkeypatch.setattr(module, "_BLOCK", 7 * 100)
    assert ScoreStatistics.of_rows(mapped, y) == whole


def test_parts_add_up_and_stay_as_they_are(rows, statistics):
    z, y = rows
    parts = [ScoreStatistics.of_rows(z[i::5], y[i::5]) for i in range(5)]
    assert sum(parts) == ScoreStatistics.merged(iter(parts[::-1])) == statistics
    assert parts[0] + parts[1] != statistics
    assert parts[0] == ScoreStatistics.of_rows(z[::5], y[::5])
    assert "3,000 rows, 7 classes, with labels" in repr(statistics)
    assert statistics != "statistics"


def test_what_cannot_be_added_or_asked_raises(rows, statistics):
    z, y = rows
    named = [
        ScoreStatistics.of(Scores(z, labels=y, classes=tuple(names)))
        for names in ("abcdefg", "abcdegf")
    ]
    for ask, words in (
        (lambda: ScoreStatistics.merged([]), "no statistics to merge"),
        (
            lambda: statistics + ScoreStatistics.of_rows(z[:, :6]),
            "same classes in the same order.* 7 classes.* 6 classes",
        ),
        (lambda: statistics + ScoreStatistics.of_rows(z), "labels for all rows or for none"),
        (lambda: sum(named), "same classes in the same order"),
        (lambda: statistics.temperature_fit(t_range=(0.001, 5)), "asked for was 0.001 to 5"),
        (lambda: statistics.nll(500), "from 0.0085 to 128; asked for was 500"),
    ):
        with pytest.raises(InputError, match=words):
            ask()
    assert (statistics + named[0]).classes == tuple("abcdefg")
    with pytest.raises(TypeError):
        statistics + 1


def test_without_labels_only_the_confidence_is_known(rows, statistics):
    unlabelled = ScoreStatistics.of_rows(rows[0])
    assert not unlabelled.labelled
    assert unlabelled.mean_confidence == statistics.mean_confidence
    assert unlabelled.sd_confidence == statistics.sd_confidence
    for ask in ("accuracy", "ece", "ece_range", "nll", "brier", "temperature_fit"):
        with pytest.raises(InputError, match=r"needs labels, and these 3,000 rows"):
            getattr(unlabelled, ask)()


@pytest.mark.parametrize("strength", [*STEPS, 0.6, 1.25])
def test_sac_chooses_from_statistics_as_from_rows(strength):
    sac = SAC().fit(make_bank(400))
    z, _ = draw(500, strength, seed=9)
    wanted = sac.adapt(z)
    got = sac.adapt_statistics(sum(ScoreStatistics.of_rows(z[i::4]) for i in range(4)))
    assert got is sac.selection_
    for name in ("index", "temperature", "n_target"):
        assert getattr(got, name) == getattr(wanted, name)
    assert [flag.code for flag in got.flags] == [flag.code for flag in wanted.flags]
    assert got.distances == pytest.approx(wanted.distances, abs=1e-12)


# Cells of confidence, and sums without rounding.


@pytest.mark.parametrize("precision", [1, 7])
def test_cells_are_closed_above_and_follow_without_gaps(precision):
    ends = np.array([0.0, 5e-324, 1e-9, 1 - 2**-53, 1.0])
    last = n_cells(precision) - 1
    assert cell_of(ends, precision).tolist() == [0, 1, 1, last - 1, last]
    # Every cell edge in the middle, and those of the octaves at both ends.
    step = 2.0 ** -(precision + 6)
    edges = np.arange(round(1 / 64 / step), round(63 / 64 / step) + 1) * step
    octave = np.arange(2**precision, 2 ** (precision + 1)) * 2.0**-precision
    near = np.concatenate([octave * 2.0**-j for j in range(25, 6, -1)])
    edges = np.concatenate([near, edges, np.sort(1 - near)])
    cell = cell_of(edges, precision)
    assert np.unique(np.diff(cell[np.diff(edges, append=2) > 0])).tolist() == [1]
    np.testing.assert_array_equal(cell_of(np.nextafter(edges, 1), precision), cell + 1)
    inner = edges > 2.0**-25
    np.testing.assert_array_equal(cell_of(np.nextafter(edges, 0), precision)[inner], cell[inner])
    assert cell.max() + 1 == n_cells(precision) - 2


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=30))
def test_an_exact_sum_is_that_of_fractions(values):
    whole = exact_sum(np.array(values, dtype=np.float64))
    assert Fraction(whole, 2**EXACT_BITS) == sum(map(Fraction, values), Fraction(0))


@given(st.lists(st.floats(0, 1), max_size=30))
def test_fixed_sums_are_those_of_rounded_values(values):
    rounded = [round(Fraction(value) * 2**40) for value in values]
    x = np.array(values, dtype=np.float64)
    assert fixed_sum(x, 40) == sum(rounded)
    assert fixed_square_sum(x, 40) == sum(q * q for q in rounded)
    large = np.full(5000, 2.0**52 + 1)  # more than 64 bits
    assert fixed_square_sum(large, 0) == 5000 * (2**52 + 1) ** 2


# Statistics in a file.

PART = Part(shard=2, of=3, first=200, stop=400, n_images=600, key="abc")


@pytest.fixture(scope="module")
def stored():
    z, y = draw(200, 1.0, seed=6)
    return ScoreStatistics.of(Scores(z, labels=y, classes=tuple("abcdef")))


@pytest.fixture
def file(stored, tmp_path):
    path = tmp_path / "part-2.json"
    stored.write(path, part=PART)
    return path


def altered(file, change, *, sign=True):
    document = json.loads(file.read_text())
    change(document)
    if sign:
        document["checksum"] = checksum_of(document)
    file.write_text(json.dumps(document))


def test_what_is_written_is_read(stored, file, tmp_path):
    assert ScoreStatistics.read(file) == stored
    assert read_statistics(file) == (stored, PART)
    ScoreStatistics.read(file).write(tmp_path / "again.json", part=PART)
    assert (tmp_path / "again.json").read_bytes() == file.read_bytes()
    unlabelled = ScoreStatistics.of_rows(draw(30, 1.0, seed=1)[0])
    unlabelled.write(tmp_path / "target.json")
    assert read_statistics(tmp_path / "target.json") == (unlabelled, None)


def test_a_file_stays_small_whatever_it_counts(tmp_path):
    rng = np.random.default_rng(3)
    one = ScoreStatistics.of_rows(rng.standard_normal((20_000, 2)) * 4, rng.integers(0, 2, 20_000))
    total = one
    for _ in range(18):
        total = total + total
    assert total.n == 20_000 << 18
    assert total.accuracy() == one.accuracy()
    assert total.temperature == one.temperature
    assert total.ece() == pytest.approx(one.ece(), abs=1e-12)
    total.write(tmp_path / "much.json")
    assert (tmp_path / "much.json").stat().st_size < 500_000


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(version=9), r"format version 9, written by shiftcal .* Upgrade"),
        (lambda d: d.update(format="shiftcal-estimator"), "has no format 'shiftcal-statistics'"),
        (lambda d: d["tables"].pop("ends"), "it is damaged.*KeyError"),
        (lambda d: d["tables"].update(ends=["<f8", 2, 3, "AAAA"]), "it is damaged"),
        (lambda d: d.update(part=[1]), "is damaged"),
    ],
)
def test_another_file_raises(file, change, words):
    altered(file, change)
    with pytest.raises(FileError, match=words):
        read_statistics(file)


def test_a_flipped_digit_is_noticed(file):
    altered(file, lambda d: d["sums"].update(correct=d["sums"]["correct"] - 1), sign=False)
    with pytest.raises(FileError, match="its checksum does not match"):
        ScoreStatistics.read(file)

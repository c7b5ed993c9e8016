"""Mergeable statistics, against the rows themselves and against scipy, and their files."""

from __future__ import annotations

import base64
import json
import zlib

import numpy as np
import pytest
from ladder_data import STEPS, draw, make_bank
from map_data import draw_logits
from scipy.optimize import brentq
from scipy.special import log_softmax, softmax

from shiftcal import SAC, SurrogateBank, metrics
from shiftcal.errors import FileError, FitWarning, InputError
from shiftcal.files import checksum_of
from shiftcal.maps import Temperature
from shiftcal.scores import Scores
from shiftcal.scoring import statistics as statistics_rows
from shiftcal.scoring.statistics import Part, ScoreStatistics, read_statistics


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
    fine = ScoreStatistics.of_rows(z, y, precision=11, classwise=True)
    for name in ("ece", "debiased_ece", "ks_error", "smooth_ece", "aurc", "top1_brier", "mce"):
        exact = getattr(metrics, name)(confidence, correct)
        assert getattr(fine, name)() == pytest.approx(exact, abs=2e-6), name
    assert fine.classwise_ece() == pytest.approx(metrics.classwise_ece(p, y), abs=2e-3)
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


@pytest.mark.parametrize("k", [2, 30, 1000])
@pytest.mark.parametrize("factor", [0.02, 0.4, 25.0])
def test_the_temperature_holds_from_sharp_to_flat(k, factor):
    z, y = draw_logits(400, k, temperature=1.5, seed=k)
    z = factor * z
    found = ScoreStatistics.of_rows(z, y).temperature
    assert found == pytest.approx(scipy_temperature(z, y), rel=1e-6)  # the tolerance we state


def test_an_end_of_the_range_says_why():
    z, y = draw(300, 1.0, seed=3)
    right = ScoreStatistics.of_rows(z, z.argmax(axis=1)).temperature_fit()
    assert (right.temperature, right.status.code) == (0.01, "at-lower-bound")
    assert "error-free" in right.status.message
    wrong = ScoreStatistics.of_rows(z, z.argmin(axis=1)).temperature_fit()
    assert (wrong.temperature, wrong.status.code) == (100.0, "at-upper-bound")
    assert "no better than chance" in wrong.status.message
    flat = ScoreStatistics.of_rows(np.zeros((5, 3)), [0, 1, 2, 0, 1]).temperature_fit()
    assert "every row of logits is constant" in flat.status.message
    for t_range, why in (((5.0, 9.0), "lower yet"), ((0.1, 0.2), "higher yet")):
        statistics = ScoreStatistics.of_rows(z, y)
        end = statistics.temperature_fit(t_range=t_range)
        with pytest.warns(FitWarning, match=why):
            exact = Temperature(t_range=t_range).fit(z, y)
        assert why in end.status.message == exact.status_.message
        assert end.temperature == exact.temperature_


def test_temperatures_beyond_the_ladder_raise(statistics):
    with pytest.raises(InputError, match=r"from 0.0085 to 128; asked for was 0.001 to 5"):
        statistics.temperature_fit(t_range=(0.001, 5))
    with pytest.raises(InputError, match="asked for was 500"):
        statistics.nll(500)
    with pytest.raises(InputError, match="asked for was 0"):
        statistics.nll(0)


def test_probabilities_are_taken_as_such(rows):
    z, y = rows
    given = ScoreStatistics.of(Scores(softmax(z, axis=1), "probabilities", labels=y))
    whole = ScoreStatistics.of_rows(z, y)
    assert given.temperature == pytest.approx(whole.temperature, rel=1e-7)
    assert given.nll() == pytest.approx(whole.nll(), rel=1e-9)


def test_mapped_half_precision_is_read_in_blocks(tmp_path, monkeypatch, rows):
    z, y = rows
    half = z.astype(np.float16)
    np.save(tmp_path / "logits.npy", half)
    mapped = np.load(tmp_path / "logits.npy", mmap_mode="r")
    whole = ScoreStatistics.of_rows(half.astype(np.float64), y)
    monkeypatch.setattr(statistics_rows, "_BLOCK", 7 * 100)
    assert ScoreStatistics.of_rows(mapped, y) == whole


def test_parts_add_up_and_stay_as_they_are(rows, statistics):
    z, y = rows
    parts = [ScoreStatistics.of_rows(z[i::5], y[i::5]) for i in range(5)]
    before = [part.cells.count.copy() for part in parts]
    assert sum(parts) == ScoreStatistics.merged(iter(parts[::-1])) == statistics
    assert parts[0] + parts[1] != statistics
    for part, count in zip(parts, before, strict=True):
        assert np.array_equal(part.cells.count, count)
    assert "3,000 rows, 7 classes, with labels" in repr(statistics)
    assert statistics != "statistics"


def test_what_does_not_belong_together_raises(rows, statistics):
    z, y = rows
    with pytest.raises(InputError, match="no statistics to merge"):
        ScoreStatistics.merged([])
    with pytest.raises(InputError, match="number of classes; these have 7 and 6"):
        statistics + ScoreStatistics.of_rows(z[:, :6])
    with pytest.raises(InputError, match="labels for all rows or for none"):
        statistics + ScoreStatistics.of_rows(z)
    named = [
        ScoreStatistics.of(Scores(z, labels=y, classes=tuple(names)))
        for names in ("abcdefg", "abcdegf")
    ]
    with pytest.raises(InputError, match="column 5 is 'f' in one and 'g' in another"):
        sum(named)
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
    parts = [ScoreStatistics.of_rows(z[i::4]) for i in range(4)]
    sac.selection_ = None
    got = sac.adapt_statistics(sum(parts))
    assert got is sac.selection_
    assert (got.index, got.temperature, got.n_target) == (
        wanted.index,
        wanted.temperature,
        wanted.n_target,
    )
    assert [flag.code for flag in got.flags] == [flag.code for flag in wanted.flags]
    assert got.distances == pytest.approx(wanted.distances, abs=1e-12)
    assert got.mean_confidence == pytest.approx(wanted.mean_confidence, abs=1e-12)


def test_sac_rejects_statistics_it_cannot_use():
    bank = make_bank(200)
    z, _ = draw(50, 1.0, seed=2)
    with pytest.raises(InputError, match='fitted with distance="ks"'):
        SAC(distance="ks").fit(bank).adapt_statistics(ScoreStatistics.of_rows(z))
    with pytest.raises(InputError, match="the 6 classes it was fitted with; these have 5"):
        SAC().fit(bank).adapt_statistics(ScoreStatistics.of_rows(z[:, :5]))


def test_a_ladder_of_statistics_has_the_temperatures_of_sac_and_sts():
    bank: SurrogateBank = make_bank(300)
    each = [ScoreStatistics.of_rows(s.logits, s.labels) for s in bank]
    fitted = SAC().fit(bank)
    temperatures = [m.temperature_ for m in fitted.maps_]
    assert [s.temperature for s in each] == pytest.approx(temperatures, rel=1e-7)
    assert sum(each).temperature == pytest.approx(
        Temperature().fit(*bank.union()).temperature_, rel=1e-7
    )


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
        document.pop("checksum", None)
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
    rows = [rng.standard_normal((20_000, 2)) * 4, rng.integers(0, 2, 20_000)]
    one = ScoreStatistics.of_rows(*rows)
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
    ("content", "words"),
    [
        (b"{", "odd.json is not statistics of scores, or it is damaged: not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"\xed\xb3\xbf", "not JSON"),
        (b'{"format": "shiftcal-estimator"}', "has no format 'shiftcal-statistics'"),
    ],
)
def test_another_file_raises(tmp_path, content, words):
    (tmp_path / "odd.json").write_bytes(content)
    with pytest.raises(FileError, match=words):
        ScoreStatistics.read(tmp_path / "odd.json")
    with pytest.raises(FileError, match=r"nowhere.json could not be read"):
        ScoreStatistics.read(tmp_path / "nowhere.json")


def test_a_flipped_digit_is_noticed(file):
    altered(file, lambda d: d["sums"].update(correct=d["sums"]["correct"] - 1), sign=False)
    with pytest.raises(FileError, match="its checksum does not match"):
        ScoreStatistics.read(file)


def bomb(document):
    packed = base64.b64encode(zlib.compress(bytes(50_000_000), 9)).decode()
    document["cells"]["count"] = packed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (bomb, "is damaged"),
        (lambda d: d.update(version=9), r"format version 9, written by shiftcal .* Upgrade"),
        (lambda d: d["cells"].update(count="AAAA"), "is damaged"),
        (lambda d: d["cells"].pop("most"), "it is damaged.*KeyError"),
        (lambda d: d.pop("ladder"), "it is damaged.*KeyError"),
        (lambda d: d.update(ladder=d["ladder"][:-1]), "the sums are not those of"),
        (lambda d: d["sums"].update(regret=0.5), "the sums are not those of"),
        (lambda d: d["sums"].update(rows=0), "contradict one another"),
        (lambda d: d["sums"].update(correct=0), "contradict one another"),
        (lambda d: d["sums"].update(regret=-1), "contradict one another"),
        (lambda d: d["sums"].update(confidence=-1), "contradict one another"),
        (lambda d: d["sums"].update(brier=-(10**30)), "contradict one another"),
        (lambda d: d.update(n_classes=1), "n_classes must be a whole number of at least 2"),
        (lambda d: d.update(classes=["a"]), "classes must name the 6 columns"),
        (lambda d: d.update(sums=None), "is damaged"),
        (lambda d: d["part"].update(shard="2"), "does not describe a part"),
        (lambda d: d["part"].update(shard=4), "does not describe a part"),
        (lambda d: d.update(part=[1]), "does not describe a part"),
    ],
)
def test_a_hostile_file_raises(file, change, words):
    altered(file, change)
    with pytest.raises(FileError, match=words):
        read_statistics(file)

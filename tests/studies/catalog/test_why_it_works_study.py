from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from drawn_logits import draw_logits
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from study_records import plan

from shiftcal.datasets import calibration_split
from shiftcal.errors import InputError
from shiftcal.report.figures import write_figure
from shiftcal.scores import Scores, write_scores
from shiftcal.scoring.run import Reporting
from shiftcal.studies.archive import Archive, Entry
from shiftcal.studies.catalog.why_it_works import (
    WhyItWorks,
)
from shiftcal.studies.evaluation import cells_of, evaluate, works_of
from shiftcal.studies.plan import (
    CalibrationPlan,
    MethodPlan,
    NaturalSet,
    ShiftPlan,
    plan_text,
    read_plan,
)
from shiftcal.studies.records import Results

N, K, BINS, IMAGES = 600, 4, 10, 300
# How much larger logits are than they should be.
SETS = {
    "clean": 1.5,
    "pixelate-1": 2.0,
    "pixelate-2": 3.0,
    "fog-1": 1.8,
    "fog-2": 2.9,
    "sketch": 2.2,
}


def settings(**changes):
    return {
        "study": "why-it-works",
        "methods": tuple(
            MethodPlan(n, n.upper()) for n in ("vanilla", "ts", "sts", "sac", "oracle")
        ),
        "calibration": CalibrationPlan(severities=(1, 2), images=IMAGES),
        "shifts": ShiftPlan(corruptions=("fog",), severities=(0, 1, 2)),
        "seeds": (3, 4),
        "bins": BINS,
        "options": {"target": "fog-2"},
        **changes,
    }


@pytest.fixture(scope="module")
def arrays():
    """Logits and labels by set; all corrupted versions have the labels of the clean set."""
    made = {}
    _, labels = draw_logits(N, K, temperature=1.0, seed=9)
    for seed, (name, temperature) in enumerate(SETS.items()):
        rng = np.random.default_rng(seed)
        signal = rng.standard_normal((N, K)) + 1.5 * np.eye(K)[labels] * rng.random((N, 1))
        made[name] = (temperature * signal * (4 - temperature), labels)
    return made


@pytest.fixture(scope="module")
def archive(arrays, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    (folder / "scores").mkdir()
    entries = {}
    for name, (logits, labels) in arrays.items():
        file = f"scores/{name}.npz"
        write_scores(folder / file, Scores(logits, "logits", labels=labels))
        entries[name] = Entry(file, name, own=name == "sketch")
    return Archive(folder, entries)


def run(archive, **changes):
    made = plan(**settings(**changes))
    study = WhyItWorks()
    study.check(made)
    cells = list(cells_of(made, study.variants(made), archive))
    works = lambda left: works_of(left, made, archive, 1)  # noqa: E731
    records, _ = evaluate(cells, works, archive.folder, workers=1, reporting=Reporting(shown=False))
    return Results(made, tuple(records), archive)


@pytest.fixture(scope="module")
def found(archive):
    return WhyItWorks().findings(run(archive))


def temperature_of(logits, labels):
    def loss(log_t):
        z = log_softmax(logits / np.exp(log_t), axis=1)
        return -z[np.arange(len(labels)), labels].mean()

    return float(np.exp(minimize_scalar(loss, bounds=(-3, 3), options={"xatol": 1e-10}).x))


def ece_of(confidence, correct):
    """Bins of equal size by hand; N and BINS divide evenly."""
    order = np.argsort(confidence, kind="stable")
    parts = np.array_split(order, BINS)
    gaps = [abs(confidence[p].mean() - correct[p].mean()) * len(p) for p in parts]
    return sum(gaps) / len(confidence)


def by_hand(arrays, target, seed):
    """Means, temperatures and the target's ECE under each, with scipy's own optimiser."""
    clean_labels = arrays["clean"][1]
    calibration, test = calibration_split(clean_labels, n=IMAGES, seed=seed)
    rows = slice(None) if target == "sketch" else test
    logits, labels = (each[rows] for each in arrays[target])
    correct = logits.argmax(axis=1) == labels
    found = []
    for name in ("clean", "pixelate-1", "pixelate-2"):
        z, y = (each[calibration] for each in arrays[name])
        t = temperature_of(z, y)
        confidence = softmax(logits / t, axis=1).max(axis=1)
        mean = softmax(z, axis=1).max(axis=1).mean()
        found.append((mean, t, confidence.mean(), ece_of(confidence, correct)))
    return softmax(logits, axis=1).max(axis=1).mean(), correct.mean(), found


def test_sac_is_evaluated_on_all_targets_and_the_others_on_the_one_shown():
    variants = {each.key: each for each in WhyItWorks().variants(plan(**settings()))}
    assert [target.name for target in variants["ts"].targets] == ["fog-2"]
    assert [target.name for target in variants["sac"].targets] == ["clean", "fog-1", "fog-2"]


def test_surrogates_are_those_of_the_first_split(arrays, found):
    mean, accuracy, rungs = by_hand(arrays, "fog-2", 3)
    table = found.tables["surrogates"]
    assert [row.label for row in table.rows] == ["clean", "pixelate 1", "pixelate 2"]
    nearest = int(np.argmin([abs(mean - rung[0]) for rung in rungs]))
    best = int(np.argmin([rung[3] for rung in rungs]))
    for j, (row, (own, t, confidence, ece)) in enumerate(zip(table.rows, rungs, strict=True)):
        values = [cell.value for cell in row.cells]
        # 1e-5: scipy's search stops there, ours at the minimum itself
        assert values[:3] == pytest.approx([own, abs(mean - own), t], rel=1e-5)
        assert values[3:6] == pytest.approx([100 * accuracy, 100 * confidence, 100 * ece], rel=1e-4)
        assert values[6] == ("yes" if j == nearest else "no")
        assert row.cells[5].mark == (j == best)
    assert f"{mean:.4f}" in table.note


def test_densities_are_those_of_raw_p_max_and_the_bars_those_of_the_target(arrays, found):
    mean, accuracy, rungs = by_hand(arrays, "fog-2", 3)
    figure = found.figures["densities"]
    assert figure.target_mean == pytest.approx(mean)
    assert np.trapezoid(figure.target, figure.grid) == pytest.approx(1, abs=1e-2)
    for surrogate, (own, _, confidence, ece) in zip(figure.surrogates, rungs, strict=True):
        assert surrogate.mean == pytest.approx(own)
        assert surrogate.accuracy == pytest.approx(100 * accuracy)
        assert surrogate.confidence == pytest.approx(100 * confidence, rel=1e-4)
        assert surrogate.ece == pytest.approx(100 * ece, rel=1e-4)
        assert np.trapezoid(surrogate.density, figure.grid) == pytest.approx(1, abs=1e-2)
    assert sum(surrogate.chosen for surrogate in figure.surrogates) == 1


def test_another_split_can_be_shown(arrays, archive):
    found = WhyItWorks().findings(run(archive, options={"target": "fog-1", "split": 4}))
    mean, _, rungs = by_hand(arrays, "fog-1", 4)
    assert found.figures["densities"].target_mean == pytest.approx(mean)
    assert "seed 4" in found.figures["densities"].note
    assert found.figures["densities"].surrogates[0].ece == pytest.approx(
        100 * rungs[0][3], rel=1e-4
    )


def test_calibration_plots_have_the_bins_behind_the_records(arrays, archive, found):
    made = run(archive)
    _, test = calibration_split(arrays["clean"][1], n=IMAGES, seed=3)
    logits, labels = (each[test] for each in arrays["fog-2"])
    correct = logits.argmax(axis=1) == labels
    panels = {panel.key: panel for panel in found.figures["calibration"].panels}
    assert list(panels) == ["vanilla", "ts", "sts", "sac", "oracle"]
    for key, panel in panels.items():
        of = next(r for r in made.records if (r.variant, r.target, r.split) == (key, "fog-2", 3))
        assert panel.temperature == of.temperature
        assert panel.ece == pytest.approx(100 * of.ece)
        confidence = softmax(logits / of.temperature, axis=1).max(axis=1)
        for at, part in enumerate(np.array_split(np.argsort(confidence), BINS)):
            assert panel.count[at] == len(part)
            assert panel.accuracy[at] == pytest.approx(100 * correct[part].mean())
            assert panel.confidence[at] == pytest.approx(100 * confidence[part].mean())
            assert panel.edges[at] <= confidence[part].min()
            assert confidence[part].max() <= panel.edges[at + 1]


def test_a_method_without_a_temperature_is_applied_again(arrays, archive):
    methods = (MethodPlan("sac", "SAC isotonic", {"map": "isotonic"}),)
    made = run(archive, methods=methods)
    panel = WhyItWorks().findings(made).figures["calibration"].panels[0]
    of = next(r for r in made.records if (r.target, r.split) == ("fog-2", 3))
    assert of.temperature is None
    assert panel.label == "SAC isotonic"
    assert panel.temperature is None
    assert panel.ece == pytest.approx(100 * of.ece)


@pytest.mark.parametrize("value", [1.0, 0.25])
def test_bins_without_a_width_are_drawn_as_one(arrays, tmp_path, value):
    (tmp_path / "scores").mkdir()
    entries = {}
    for name, (logits, labels) in arrays.items():
        sure = (
            1000.0 * (logits == logits.max(axis=1, keepdims=True)) if value == 1.0 else 0 * logits
        )
        own = sure if name == "fog-2" else logits
        write_scores(tmp_path / f"scores/{name}.npz", Scores(own, "logits", labels=labels))
        entries[name] = Entry(f"scores/{name}.npz", name)
    methods = (MethodPlan("vanilla", "Vanilla"),)
    made = run(Archive(tmp_path, entries), methods=methods)
    panel = WhyItWorks().findings(made).figures["calibration"].panels[0]
    assert panel.count == (N - IMAGES,)
    assert panel.edges[0] < panel.edges[1]
    assert panel.edges[0] <= value <= panel.edges[1]
    assert panel.ece == pytest.approx(100 * made.records[0].ece)


def test_the_claim_is_judged_on_every_target_and_split(arrays, found):
    table = found.tables["claim"]
    rows = {row.label: [cell.value for cell in row.cells] for row in table.rows}
    assert list(rows) == ["severity 0", "severity 1", "severity 2", "severities 1 to 2"]
    cases = {}
    for (target, _), numbers in hits_of(arrays, ("clean", "fog-1", "fog-2")).items():
        cases.setdefault(target, []).append(numbers)
    for label, targets in (
        ("severity 0", ["clean"]),
        ("severity 2", ["fog-2"]),
        ("severities 1 to 2", ["fog-1", "fog-2"]),
    ):
        own = np.array([case for target in targets for case in cases[target]], float)
        assert rows[label][0] == len(own)
        np.testing.assert_allclose(rows[label][1:], 100 * own.mean(axis=0), rtol=1e-4)
    lines = found.figures["closest-mean"].panels[0]
    assert lines.x == (0.0, 1.0, 2.0)
    by_key = {series.key: series.y for series in lines.series}
    assert by_key["sac"][2] == pytest.approx(rows["severity 2"][3])
    assert by_key["best-set"][1] == pytest.approx(rows["severity 1"][4])
    assert by_key["ts"][0] == pytest.approx(rows["severity 0"][5])
    for series in lines.series:
        assert all(low >= 0 for low in series.low)


def test_sac_has_the_ece_of_the_closest_mean(archive, found):
    made = run(archive)
    own = [r.ece for r in made.records if r.variant == "sac" and r.severity == 1]
    row = next(row for row in found.tables["claim"].rows if row.label == "severity 1")
    assert row.cells[3].value == pytest.approx(100 * np.mean(own))


def hits_of(arrays, targets, seeds=(3, 4)):
    """For each target and split: hit, hit or one beside, ECE of closest, best and clean."""
    found = {}
    for target in targets:
        for seed in seeds:
            mean, _, rungs = by_hand(arrays, target, seed)
            nearest = int(np.argmin([abs(mean - rung[0]) for rung in rungs]))
            eces = [rung[3] for rung in rungs]
            best = int(np.argmin(eces))
            found[target, seed] = (
                nearest == best, abs(nearest - best) <= 1, eces[nearest], eces[best], eces[0]
            )  # fmt: skip
    return found


def interval(cases, pick):
    """Percent: the mean of the two splits' means, and half of Student's interval."""
    of = [np.mean([pick(c) for (_, s), c in cases.items() if s == seed]) for seed in (3, 4)]
    half = 12.7062047 * np.std(of, ddof=1) / 2**0.5
    return f"{100 * np.mean(of):+.2f} ± {100 * half:.2f} points"


def test_every_case_is_in_the_data_and_gives_the_tables(arrays, found):
    rows = list(csv.DictReader(io.StringIO(found.data["surrogates.csv"])))
    assert len(rows) == 3 * 2 * 3
    numbers = {(row["target"], int(row["split"]), row["surrogate"]): row for row in rows}
    for (target, seed, name), row in numbers.items():
        mean, accuracy, rungs = by_hand(arrays, target, seed)
        j = ("clean", "pixelate-1", "pixelate-2").index(name)
        own, t, confidence, ece = rungs[j]
        names = ("target_mean_p_max", "accuracy", "mean_p_max", "distance", "temperature")
        names += ("confidence", "ece")
        expected = (mean, accuracy, own, abs(mean - own), t, confidence, ece)
        assert [float(row[each]) for each in names] == pytest.approx(expected, rel=1e-4)
        assert int(row["chosen"]) == (j == np.argmin([abs(mean - r[0]) for r in rungs]))
        assert int(row["best"]) == (j == np.argmin([r[3] for r in rungs]))
    chosen = [float(row["ece"]) for row in rows if row["chosen"] == "1" and row["severity"] == "2"]
    claim = {row.label: row.cells for row in found.tables["claim"].rows}
    assert claim["severity 2"][3].value == pytest.approx(100 * np.mean(chosen), rel=1e-12)
    assert "data/surrogates.csv" in found.tables["claim"].note


def test_a_natural_target_is_tested_on_all_of_its_images(arrays, archive):
    shifts = ShiftPlan(severities=(), sets=(NaturalSet("sketch", "A sketch", ("nowhere",)),))
    found = WhyItWorks().findings(run(archive, shifts=shifts, options={"target": "sketch"}))
    mean, _, rungs = by_hand(arrays, "sketch", 3)
    figure = found.figures["densities"]
    assert figure.target_mean == pytest.approx(mean)
    assert figure.target_label == "A sketch"
    assert f"{N} test images" in figure.note
    assert figure.surrogates[2].ece == pytest.approx(100 * rungs[2][3], rel=1e-4)
    assert [row.label for row in found.tables["claim"].rows] == ["A sketch"]
    assert "closest-mean" not in found.figures


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "fog-3"}, "got 'fog-3'. Did you mean"),
        ({"target": "pixelate-1"}, "one of the plan's targets"),
        ({"target": "fog-2", "split": 7}, r"seeds \[3, 4\]; got 7"),
    ],
)
def test_a_target_or_split_that_the_plan_does_not_have_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        WhyItWorks().check(plan(**settings(options=options)))


def test_the_built_in_plan_is_runnable():
    own = read_plan(plan_text("why-it-works")[0], data="DATA")
    WhyItWorks().check(own)
    variants = WhyItWorks().variants(own)
    assert [each.method for each in variants] == [
        "vanilla", "ts", "cpcs", "transcal", "transcal", "sts", "sac", "oracle",
    ]  # fmt: skip
    assert [len(each.targets) for each in variants] == [1, 1, 1, 1, 1, 1, 61, 1]
    assert variants[0].targets[0].name == "elastic_transform-2"


@pytest.mark.parametrize("name", ["densities", "calibration", "closest-mean"])
def test_figures_are_drawn(found, tmp_path: Path, name):
    pytest.importorskip("matplotlib")
    assert all(path.stat().st_size for path in write_figure(found.figures[name], tmp_path, name))

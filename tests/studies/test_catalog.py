"""What each study evaluates, and the numbers it shows.

Tables of records are also compared with the committed results; what is here is computed by hand.
"""

from __future__ import annotations

import csv
import io
import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from study_records import LABELS, plan, record

from shiftcal.datasets import calibration_split
from shiftcal.errors import InputError
from shiftcal.files import sha256_of
from shiftcal.progress import Reporting
from shiftcal.registry import STUDIES
from shiftcal.report.gallery import PAPER
from shiftcal.scores import Scores, write_scores
from shiftcal.studies.ablation import spread
from shiftcal.studies.evaluation import evaluate
from shiftcal.studies.images import ImagesPipeline
from shiftcal.studies.plan import (
    CalibrationPlan,
    LadderPlan,
    NamedPlan,
    NaturalSet,
    ShiftPlan,
)
from shiftcal.studies.shifts import by_chance
from shiftcal.studies.sources import Archive, Entry

SHIFTS = ShiftPlan(("fog", "frost", "pixelate"), (0, 1, 3))
FINE = LadderPlan("fine", "pixelate", ((0.97,), (0.94,), (0.9,)))
NATURAL = ShiftPlan((), (0,), sets=(NaturalSet("sketch", "Sketch", ("x",)),))


def of(study, **changes):
    return plan(**{"study": study, "shifts": SHIFTS, **changes})


def variants(study, **changes):
    made = of(study, **changes)
    return STUDIES.get(study)(made).variants()


def findings(study, records, **changes):
    return STUDIES.get(study)(of(study, **changes)).findings(records, None)


def rows_of(table):
    """Cells by label of the row and key of the column."""
    keys = [column.key for column in table.columns]
    return {row.label: dict(zip(keys, row.cells, strict=True)) for row in table.rows}


@pytest.mark.parametrize(
    ("study", "changes", "words"),
    [
        ("ablation", {"options": {"maps": ["isotonics"]}}, "isotonic"),
        ("ablation", {"options": {"sets": [0, 1]}}, r"\[options\] \[sets\] 1.*equal to 1; got 0"),
        ("ablation", {"options": {"images": [9, 9]}}, r"\[images\]: must have a different value"),
        ("ablation", {"options": {"mapz": []}}, "no such entry. Did you mean 'maps'"),
        ("corruption-choice", {"options": {"choices": []}}, "choices.*at least 1"),
        ("corruption-choice", {"options": {"choices": ["foq"]}}, "Did you mean 'fog'"),
        ("corruption-choice", {"methods": (NamedPlan("sac", "SAC"),)}, 'must name "ts"'),
        ("peek", {"options": {"draws": 0}}, "draws.*equal to 1"),
        ("peek", {"methods": (NamedPlan("ts", "TS"),)}, "is about SAC"),
        ("why-it-works", {"options": {"target": "fog-2"}}, "got 'fog-2'. Did you mean 'fog-"),
        ("syntetic", {}, "Did you mean 'synthetic'"),
    ],
)
def test_a_plan_that_a_study_cannot_run_is_rejected(study, changes, words):
    with pytest.raises(InputError, match=words):
        ImagesPipeline(of(study, **changes))


# --- what is evaluated ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_sets", "severities"),
    [(1, ()), (2, (5,)), (3, (3, 5)), (4, (2, 3, 5)), (5, (1, 3, 4, 5)), (6, (1, 2, 3, 4, 5))],
)
def test_sets_are_spread_evenly_between_the_clean_one_and_the_strongest(n_sets, severities):
    assert spread((1, 2, 3, 4, 5), n_sets) == severities


def test_every_panel_of_the_ablation_varies_what_it_says_and_nothing_else():
    found = variants("ablation", ladders=(FINE,))
    panels = {}
    for v in found:
        panels.setdefault(v.panel, {}).setdefault(v.setting, {})[v.method] = v
    assert list(panels["what the parts give"][""]) == list(LABELS)
    sets = {s: own["sac"].ladder.severities for s, own in panels["number of sets"].items()}
    assert (sets["1"], sets["3"]) == ((), (3, 5))
    assert list(panels["spacing"]) == ["1-2-3", "2-3-4", "3-4-5", "1-3-5"]
    assert panels["calibration images"]["100"]["ts"].ladder.images == 100
    assert panels["calibration images"]["5000"]["sac"].ladder.images is None  # all of the split
    assert panels["map"]["spline"]["sts"].settings == {"map": "spline"}
    fine = panels["fine ladder"]["fine"]["sac"].ladder
    assert fine.sets == ("clean", "fine-1", "fine-2", "fine-3")
    assert len({(v.panel, v.setting, v.key) for v in found}) == len(found)


def test_what_a_plan_has_no_room_for_is_left_out_of_the_ablation():
    small = CalibrationPlan("fog", (1, 3), 500)
    found = variants("ablation", calibration=small, ladders=(FINE,))
    settings = {p: {v.setting for v in found if v.panel == p} for p in {v.panel for v in found}}
    assert settings["calibration images"] == {"100", "200", "500"}
    assert settings["number of sets"] == {"1", "2", "3"}
    assert "spacing" not in settings
    # What another ladder is made of is no target where ladders are compared.
    targets = {t.corruption for v in found if v.panel == "fine ladder" for t in v.targets}
    assert targets == {"none", "frost"}


def test_each_choice_is_left_out_of_its_own_targets_and_others_are_evaluated_once():
    mild = LadderPlan("mild", "frost", ((1.0, 0.2, 0.2),) * 5)
    options = {"choices": ["fog", "mild"]}
    found = variants("corruption-choice", options=options, ladders=(mild,))
    own = {(v.key, v.setting): v for v in found}
    assert {setting for key, setting in own if key == "sac"} == {"fog", "mild"}
    assert {setting for key, setting in own if key == "ts"} == {""}
    assert own["sac", "fog"].ladder.sets == ("clean", *(f"fog-{s}" for s in (1, 2, 3, 4, 5)))
    shifted = {key: {t.corruption for t in v.targets} for key, v in own.items()}
    assert shifted["sac", "fog"] == {"none", "frost", "pixelate"}
    assert shifted["sac", "mild"] == {"none", "fog", "pixelate"}  # not the one it is made of
    assert shifted["ts", ""] == {"none", "fog", "frost", "pixelate"}
    default = variants("corruption-choice")
    assert tuple(v.setting for v in default if v.key == "sac") == PAPER


def test_sac_looks_at_all_rows_and_at_each_number_of_rows_in_several_draws():
    methods = (NamedPlan("ts", "TS"), NamedPlan("sac", "SAC"))
    found = variants("peek", methods=methods, options={"sizes": [100, 10], "draws": 2})
    assert [(v.key, v.draws) for v in found] == [
        ("ts", 1), ("sac-peek-10", 2), ("sac-peek-100", 2), ("sac", 1)
    ]  # fmt: skip
    assert found[1].settings == {"peek": 10}


# --- numbers that are shown -------------------------------------------------------------------


def test_a_natural_set_has_its_size_and_what_that_does_to_an_ece():
    made = [
        record(
            variant=variant,
            split=split,
            corruption="sketch",
            severity=None,
            n=10_000,
            accuracy=0.24,
            ece=0.3 if variant == "vanilla" else 0.1 + 0.01 * split,
            chosen=f"pixelate-{1 + (split == 2)}" if variant == "sac" else "",
        )
        for variant in ("vanilla", "sac")
        for split in (0, 1, 2)
    ]
    found = findings("natural", made, shifts=NATURAL)
    sketch = rows_of(found.tables["sets"])["Sketch"]
    assert (sketch["accuracy"].value, sketch["accuracy"].low) == (pytest.approx(24), None)
    root = math.sqrt(0.24 * 0.76)
    chance = 100 * math.sqrt(2 / math.pi) * root * math.sqrt(15 / 10_000)
    assert sketch["ECE by chance"].value == pytest.approx(chance)
    assert sketch["ECE standard error"].value == pytest.approx(root)
    rows = rows_of(found.tables["natural"])
    assert rows["Vanilla"]["Sketch"].low is None  # one value that every split repeats
    assert (rows["SAC"]["Sketch"].low, rows["SAC"]["Sketch"].high) == pytest.approx((10, 12))
    assert rows["SAC"]["Sketch"].by_ends  # another set in one of the splits
    assert by_chance(0.5, 4, 15) == pytest.approx(by_chance(0.5, 4, 4))


# --- why it works: from stored scores -----------------------------------------------------------

N, K, BINS, IMAGES = 600, 4, 10, 300
LADDER = ("clean", "pixelate-1", "pixelate-2")
SETS = (*LADDER, "fog-1", "fog-2", "sketch")


@pytest.fixture(scope="module")
def arrays():
    """Logits by set, more and more overconfident; all have the labels of the clean set."""
    labels = np.arange(N) % K
    made = {}
    for seed, (name, size) in enumerate(zip(SETS, (1.5, 2.0, 3.0, 1.8, 2.9, 2.2), strict=True)):
        rng = np.random.default_rng(seed)
        signal = rng.standard_normal((N, K)) + 1.5 * np.eye(K)[labels] * rng.random((N, 1))
        made[name] = size * signal * (4 - size)
    return made, labels


def why(folder, arrays, **changes):
    """Results and findings of a study on scores written to a folder."""
    logits, labels = arrays
    (folder / "scores").mkdir(exist_ok=True)
    entries = {}
    for name, own in logits.items():
        file = f"scores/{name}.npz"
        write_scores(folder / file, Scores(own, "logits", labels=labels))
        entries[name] = Entry(file, sha256_of(folder / file))
    archive = Archive(folder, entries, images=IMAGES)
    made = of(
        "why-it-works",
        **{
            "methods": tuple(NamedPlan(n, n.upper()) for n in ("vanilla", "ts", "sac", "oracle")),
            "calibration": CalibrationPlan(severities=(1, 2), images=IMAGES),
            "shifts": ShiftPlan(("fog",), (0, 1, 2)),
            "seeds": (3, 4),
            "bins": BINS,
            "options": {"target": "fog-2"},
            **changes,
        },
    )
    pipeline = ImagesPipeline(made)
    pipeline.archive = archive
    how = {"bins": BINS, "workers": 1, "reporting": Reporting(shown=False)}
    records, *_ = evaluate(pipeline.cells(), pipeline.data_of, folder, **how)
    return records, pipeline.findings(records)


@pytest.fixture(scope="module")
def explained(arrays, tmp_path_factory):
    return why(tmp_path_factory.mktemp("why"), arrays)


def ece_of(confidence, correct):
    parts = np.array_split(np.argsort(confidence, kind="stable"), BINS)
    gaps = [abs(confidence[p].mean() - correct[p].mean()) * len(p) for p in parts]
    return sum(gaps) / len(confidence)


def by_hand(arrays, target, seed):
    """Mean p_max of the target; mean p_max, T, and ECE of the target under T, for each set."""
    logits, labels = arrays
    calibration, test = calibration_split(labels, n=IMAGES, seed=seed)
    rows = slice(None) if target == "sketch" else test
    own, correct = logits[target][rows], logits[target][rows].argmax(axis=1) == labels[rows]

    def loss(log_t, z):
        z = log_softmax(z / np.exp(log_t), axis=1)
        return -z[np.arange(len(z)), labels[calibration]].mean()

    found = []
    for name in LADDER:
        z = logits[name][calibration]
        fitted = minimize_scalar(loss, bounds=(-3, 3), args=(z,), options={"xatol": 1e-10})
        t = float(np.exp(fitted.x))
        ece = ece_of(softmax(own / t, axis=1).max(axis=1), correct)
        found.append((softmax(z, axis=1).max(axis=1).mean(), t, ece))
    return softmax(own, axis=1).max(axis=1).mean(), found


def test_the_target_is_shown_next_to_every_surrogate_set(arrays, explained):
    mean, rungs = by_hand(arrays, "fog-2", 3)
    figure = explained[1].figures["densities"]
    nearest = int(np.argmin([abs(mean - own) for own, _, _ in rungs]))
    for j, (drawn, (own, _, ece)) in enumerate(zip(figure.surrogates, rungs, strict=True)):
        assert (drawn.mean, drawn.ece) == pytest.approx((own, 100 * ece), rel=1e-4)
        assert drawn.chosen == (j == nearest)
        assert np.trapezoid(drawn.density, figure.grid) == pytest.approx(1, abs=1e-2)
    assert figure.target_mean == pytest.approx(mean)


def test_the_claim_is_judged_on_every_target_and_split(arrays, explained):
    _, found = explained
    rows = list(csv.DictReader(io.StringIO(found.data["surrogates.csv"])))
    assert len(rows) == 3 * 2 * 3
    cases = {}
    for target, seed in itertools.product(("clean", "fog-1", "fog-2"), (3, 4)):
        mean, rungs = by_hand(arrays, target, seed)
        nearest = int(np.argmin([abs(mean - own) for own, _, _ in rungs]))
        eces = [ece for _, _, ece in rungs]
        best = int(np.argmin(eces))
        hits = (nearest == best, abs(nearest - best) <= 1)
        cases.setdefault(target, []).append((*hits, eces[nearest], eces[best], eces[0]))
        own = [row for row in rows if (row["target"], int(row["split"])) == (target, seed)]
        assert [float(row["ece"]) for row in own] == pytest.approx(eces, rel=1e-4)
        assert [int(row["chosen"]) for row in own] == [j == nearest for j in range(3)]
    table = rows_of(found.tables["claim"])
    for label, targets in (("severity 0", ["clean"]), ("severities 1 to 2", ["fog-1", "fog-2"])):
        numbers = np.array([case for target in targets for case in cases[target]], float)
        values = [cell.value for cell in table[label].values()]
        assert values[0] == len(numbers)
        np.testing.assert_allclose(values[1:], 100 * numbers.mean(axis=0), rtol=1e-4)


def test_calibration_plots_have_the_bins_behind_the_records(arrays, explained):
    logits, labels = arrays
    records, found = explained
    _, test = calibration_split(labels, n=IMAGES, seed=3)
    own, correct = logits["fog-2"][test], logits["fog-2"][test].argmax(axis=1) == labels[test]
    panels = {panel.key: panel for panel in found.figures["calibration"].panels}
    assert list(panels) == ["vanilla", "ts", "sac", "oracle"]
    for key, panel in panels.items():
        of = next(r for r in records if (r.variant, r.target, r.split) == (key, "fog-2", 3))
        assert panel.ece == pytest.approx(100 * of.ece)
        confidence = softmax(own / of.temperature, axis=1).max(axis=1)
        for at, part in enumerate(np.array_split(np.argsort(confidence), BINS)):
            assert panel.accuracy[at] == pytest.approx(100 * correct[part].mean())
            assert panel.confidence[at] == pytest.approx(100 * confidence[part].mean())


def test_a_natural_target_and_a_method_without_temperature_are_shown(arrays, tmp_path):
    _, found = why(
        tmp_path,
        arrays,
        shifts=NATURAL,
        methods=(NamedPlan("sac", "Isotonic", {"map": "isotonic"}),),
        options={"target": "sketch"},
    )
    assert "calibration" not in found.figures  # of methods with a temperature
    mean, rungs = by_hand(arrays, "sketch", 3)
    figure = found.figures["densities"]
    assert (figure.target_label, figure.target_mean) == ("Sketch", pytest.approx(mean))
    assert "600 test images" in figure.note
    assert figure.surrogates[2].ece == pytest.approx(100 * rungs[2][2], rel=1e-4)
    assert list(rows_of(found.tables["claim"])) == ["severity 0", "Sketch"]

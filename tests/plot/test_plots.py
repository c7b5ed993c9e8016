"""The plots show the numbers of the metrics, of the methods and of the data."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np
import pytest
from digits_bank import CLASSES, digits_bank, digits_target
from map_data import draw_logits
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from scipy import special, stats
from scipy.integrate import trapezoid

import shiftcal as sc
from shiftcal import plot
from shiftcal.charts import METHODS

RNG = np.random.default_rng(5)
CONFIDENCE = RNG.beta(5, 1.5, 900)
CORRECT = RNG.random(900) < CONFIDENCE**1.5
NUMBERS = {"ts": {0: 0.02, 1: [0.05, 0.08, 0.06], 2: [0.3, 0.2]}, "mine": {1: [0.01], 2: [0.04]}}


def on_axes(draw_on):
    def drawn(*given, **options):
        axes = Figure().add_subplot()
        assert draw_on(*given, ax=axes, **options) is axes
        return axes

    return drawn


density, selected, by_severity = map(
    on_axes, (plot.confidence_density, plot.selection, plot.ece_by_severity)
)


def reliability(*given, **options):
    return on_axes(plot.reliability)(*given, **{"n_resamples": 0, **options})


def words(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def curve(axes, index=0):
    """Places of the markers, and the ends of the bars."""
    points, _, (bars,) = axes.containers[index].lines
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    return points.get_xdata(), points.get_ydata(), ends


@pytest.mark.parametrize("binning", ["size", "width"])
@pytest.mark.parametrize("n_bins", [1, 7, 60])
def test_markers_are_the_filled_bins_and_bars_are_the_exact_intervals(binning, n_bins):
    table = sc.bin_table(CONFIDENCE, CORRECT, n_bins=n_bins, binning=binning)
    x, y, ends = curve(reliability(CONFIDENCE, CORRECT, n_bins=n_bins, binning=binning, level=0.9))
    held = table.count > 0
    assert x.tolist() == table.confidence[held].tolist()
    assert y.tolist() == table.accuracy[held].tolist()
    for accuracy, n, (low, high) in zip(y, table.count[held], ends, strict=True):
        test = stats.binomtest(round(accuracy * n), int(n))
        theirs = test.proportion_ci(0.9, method="exact")
        assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_the_legend_tells_ece_with_the_bootstraps_interval_and_the_rows():
    made = sc.bootstrap(
        sc.ece, CONFIDENCE, CORRECT, n_resamples=60, level=0.8, seed=3, n_bins=10, binning="width"
    )
    options = {"n_resamples": 60, "level": 0.8, "seed": 3, "n_bins": 10, "binning": "width"}
    axes = reliability(CONFIDENCE, CORRECT, label="raw", **options)
    assert words(axes) == [f"raw, n = 900\nECE {made}"]


def test_a_second_call_adds_a_curve_of_another_colour_and_no_second_diagonal():
    axes = reliability(CONFIDENCE, CORRECT, label="before")
    plot.reliability(CONFIDENCE**1.4, CORRECT, ax=axes, label="after", n_resamples=0)
    assert len(axes.containers) == 2
    assert [text.partition(",")[0] for text in words(axes)] == ["before", "after"]
    assert sum(line.get_gid() == "diagonal" for line in axes.get_lines()) == 1
    first, second = (to_hex(axes.containers[j].lines[0].get_color()) for j in (0, 1))
    assert first != second
    markers = {axes.containers[j].lines[0].get_marker() for j in (0, 1)}
    assert len(markers) == 2


def test_a_method_has_its_colour_and_any_colour_can_be_asked_for():
    point = reliability(CONFIDENCE, CORRECT, label="SAC").containers[0].lines[0]
    assert to_hex(point.get_color()) == METHODS["sac"].colour.lower()
    point = reliability(CONFIDENCE, CORRECT, color="C3").containers[0].lines[0]
    assert to_rgba(point.get_color()) == to_rgba("C3")


@pytest.mark.parametrize("label", ["$x", "a_b^c$d$"])
def test_a_label_is_shown_as_it_is(label):
    axes = reliability(CONFIDENCE, CORRECT, label=label)
    axes.figure.canvas.draw()
    (text,) = axes.get_legend().get_texts()
    assert text.get_text().strip().startswith(label)
    assert not text.get_parse_math()


def test_scores_rows_and_confidences_are_one_picture():
    target = digits_target()
    z, y = target.logits(), target.labels
    probs = special.softmax(z, axis=1)
    given = [
        (target,),
        (sc.Scores(z, classes=CLASSES), np.array(CLASSES)[y]),
        (z, y),
        (probs, y, "probabilities"),
        (probs.max(axis=1), z.argmax(axis=1) == y),
    ]
    first = curve(reliability(target))
    for values, *rest in given:
        truth = rest[0] if rest else None
        kind = rest[1] if len(rest) > 1 else "logits"
        other = curve(reliability(values, truth, input=kind))
        for ours, theirs in zip(first, other, strict=True):
            # p_max and the softmax of scipy differ in the last digits
            assert ours == pytest.approx(theirs, abs=1e-9)


def test_a_table_is_drawn_as_it_is():
    table = sc.bin_table(CONFIDENCE, CORRECT)
    axes = reliability(table, label="seen")
    x, y, _ = curve(axes)
    assert x.tolist() == table.confidence.tolist()
    assert y.tolist() == table.accuracy.tolist()
    assert words(axes) == [f"seen, n = 900\nECE {table.ece:.4f}"]
    assert not axes.patches


def curves(axes):
    """Label to line, for lines that have points."""
    return {line.get_label(): line for line in axes.get_lines() if len(line.get_xdata())}


def area(line):
    return trapezoid(line.get_ydata(), line.get_xdata())


def test_target_and_sets_are_there_with_their_means():
    bank, target = digits_bank(), digits_target()
    axes = density(target, bank)
    means = [float(s.confidence().mean()) for s in bank]
    listed = [f"{s.name}: mean {mean:.3f}" for s, mean in zip(bank, means, strict=True)]
    ours = sc.Vanilla().fit(bank).confidence(target).mean()
    assert words(axes) == [f"target: mean {ours:.3f}", *listed]
    lines = curves(axes)
    for line in lines.values():
        assert line.get_xdata()[0] == pytest.approx(1 / 10)
        assert line.get_xdata()[-1] == 1
        # The trapezoidal rule on 400 parts, a kernel over two of them or more
        assert area(line) == pytest.approx(1, abs=2e-3)
    # fill_between comes first, then the dotted line of each mean
    places = [collection.get_segments()[0][0, 0] for collection in axes.collections[1:]]
    assert places == pytest.approx([ours, *means], abs=1e-12)
    assert axes.get_xlim() == pytest.approx((0.1, 1))
    assert axes.get_ylim()[0] == 0


def test_the_number_of_classes_is_taken_from_whoever_has_it():
    logits, _ = draw_logits(50, 4, temperature=1.0, seed=1)
    assert density([0.4, 0.6], {"rows": logits}).get_xlim()[0] == 0.25
    assert density(logits, {"numbers": [0.4, 0.6]}).get_xlim()[0] == 0.25


def test_the_chosen_set_is_bold_and_said_to_be(adapted):
    chosen = adapted["sac"].selection_
    for one in (chosen, chosen.set_name):
        lines = curves(density(digits_target(), digits_bank(), chosen=one))
        bold = max(lines, key=lambda label: lines[label].get_linewidth())
        assert bold.startswith(f"{chosen.set_name}: mean")
        assert bold.endswith(", chosen")


def test_of_many_sets_only_the_chosen_one_is_named():
    sets = {f"set {j}": [0.5 + 0.01 * j, 0.9] for j in range(12)}
    axes = density([0.5, 0.6], sets, chosen="set 3")
    assert words(axes) == ["target: mean 0.550", "11 other sets", "set 3: mean 0.715, chosen"]
    assert words(density([0.5, 0.6], sets)) == ["target: mean 0.550", "12 sets"]
    assert len([line for line in axes.get_lines() if len(line.get_xdata())]) == 13


def test_stretched_equal_distances_are_equal_factors_of_what_is_missing_to_one():
    confidence = np.concatenate([1 - 10 ** -np.linspace(0.5, 4, 3000), np.full(1000, 1.0)])
    binary = np.log(np.column_stack([confidence, np.maximum(1 - confidence, 1e-300)]))
    axes = density(binary, stretched=True)
    (line,) = curves(axes).values()
    assert line.get_xdata()[0] == pytest.approx(-np.log10(0.5))
    assert line.get_xdata()[-1] == 6
    assert area(line) == pytest.approx(0.75, abs=0.02)  # what is 1 lies further right
    assert words(axes) == [f"target: mean {confidence.mean():.3f}, 25% beyond"]
    listed = {
        text.get_text(): x
        for text, x in zip(axes.get_xticklabels(), axes.get_xticks(), strict=True)
    }
    assert listed["0.9"] == pytest.approx(1)
    assert listed["0.999"] == pytest.approx(3)
    assert axes.get_ylabel() == "density per factor of 10"


def distances(axes):
    return [float(line.get_xdata()[0]) for line in axes.get_lines()]


def names(axes):
    return [text.get_text() for text in axes.get_yticklabels()]


def test_distances_names_the_choice_and_the_margin_are_those_of_the_selection(adapted):
    sac = adapted["sac"]
    chosen = sac.selection_
    axes = selected(sac)
    assert distances(axes) == list(chosen.distances)
    assert names(axes) == [s.name for s in digits_bank()]
    bold = [text.get_text() for text in axes.get_yticklabels() if text.get_weight() == "bold"]
    assert bold == [chosen.set_name]
    assert axes.get_title(loc="left") == (f"{chosen.set_name}, by a margin of {chosen.margin:.2g}")
    (span,) = axes.patches
    near, following = sorted(chosen.distances)[:2]
    drawn_at = span.get_extents().transformed(axes.transData.inverted())
    assert (drawn_at.x0, drawn_at.width) == pytest.approx((near, chosen.margin))
    assert near + chosen.margin == pytest.approx(following)
    assert axes.yaxis_inverted()  # the first set on top
    assert axes.get_xlabel() == "mean distance to the target"


def test_of_many_sets_the_nearest_are_drawn_in_the_order_of_the_bank():
    clean, *_, last = digits_bank()
    sets = [sc.SurrogateSet(clean.logits / (1 + j), clean.labels, f"set {j}") for j in range(40)]
    sac = sc.SAC().fit(sc.SurrogateBank(sets))
    chosen = sac.adapt(last.logits)
    axes = selected(sac)
    nearest = sorted(range(40), key=chosen.distances.__getitem__)[:30]
    assert names(axes) == [f"set {j}" for j in sorted(nearest)]
    assert axes.get_xlabel().endswith("30 nearest of 40 sets")


def test_temperatures_stand_over_the_mean_confidence_of_their_sets(adapted):
    method = adapted["rehearsal"]
    axes = selected(method)
    for label, steps in (("noise", (0, 1, 2, 3)), ("fading", (0, 4, 5))):
        (line,) = (one for one in axes.get_lines() if one.get_label() == label)
        assert line.get_xdata().tolist() == [method.ladder_[j].mean_confidence for j in steps]
        assert line.get_ydata().tolist() == [method.temperatures_[j] for j in steps]
    assert axes.get_yscale() == "log"


def test_the_target_stands_at_its_confidence_with_its_temperature_and_interval(adapted):
    chosen = adapted["rehearsal"].selection_
    axes = selected(adapted["rehearsal"])
    (target,) = axes.containers
    point, _, (bars,) = target.lines
    assert point.get_xdata().tolist() == [chosen.mean_confidence]
    assert point.get_ydata().tolist() == [chosen.temperature]
    around = chosen.temperature_interval
    assert bars.get_segments()[0][:, 1] == pytest.approx([around.low, around.high])
    assert words(axes)[-1] == (
        f"target: T = {chosen.temperature:.3g} ({around.low:.3g} to {around.high:.3g})"
    )
    upright = [line for line in axes.get_lines() if len(set(line.get_xdata())) == 1]
    assert chosen.mean_confidence in {line.get_xdata()[0] for line in upright}


def line(axes, label):
    """What the line of a label goes through, and the ends of its bars."""
    labels = [one.get_label() for one in axes.get_lines()]
    bars = axes.collections[labels.index(label)]
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    return axes.get_lines()[labels.index(label)], ends


def test_by_default_lines_are_means_and_bars_students_intervals():
    axes = by_severity(NUMBERS, level=0.5)
    points, ends = line(axes, "ts")
    values = [np.atleast_1d(v) for v in NUMBERS["ts"].values()]
    assert points.get_ydata() == pytest.approx([v.mean() for v in values])
    assert ends[0] == pytest.approx([0.02, 0.02])  # one number tells no spread
    for own, v in zip(ends[1:], values[1:], strict=True):
        theirs = stats.t.interval(0.5, len(v) - 1, v.mean(), stats.sem(v))
        assert own == pytest.approx(theirs)


def test_bars_can_be_the_range():
    points, ends = line(by_severity(NUMBERS, spread="range"), "ts")
    assert points.get_ydata()[1] == pytest.approx(np.mean(NUMBERS["ts"][1]))
    assert ends.tolist() == [[0.02, 0.02], [0.05, 0.08], [0.2, 0.3]]


def test_errors_are_the_metrics_with_every_set_as_a_target_of_its_own():
    bank = digits_bank()
    methods = {"none": sc.Vanilla().fit(bank), "SAC": sc.SAC().fit(bank)}
    found = plot.errors_by_severity(methods, bank, n_bins=10)
    assert {label: list(numbers) for label, numbers in found.items()} == {
        "none": [0, 1, 2, 3],
        "SAC": [0, 1, 2, 3],
    }
    for label, method in methods.items():
        for severity, numbers in found[label].items():
            expected = []
            for one in bank:
                if one.severity == severity:
                    method.adapt(one.logits)
                    right = one.logits.argmax(axis=1) == one.labels
                    expected.append(sc.ece(method.confidence(one.logits), right, n_bins=10))
            assert numbers == pytest.approx(expected)
    by_severity(found).figure.canvas.draw()


def test_methods_in_a_list_are_called_by_their_names_and_stay_as_they_were(adapted):
    sac = copy.copy(adapted["sac"])
    before = sac.selection_
    found = plot.errors_by_severity([sac, sc.TS().fit(digits_bank())], digits_bank())
    assert list(found) == ["sac", "ts"]
    assert sac.selection_ is before


def test_the_run_of_a_study_is_drawn_as_its_errors_are():
    errors = {"TS": {0: (0.02,), 1: (0.05, 0.07)}, "SAC": {1: (0.03,)}}
    rows = [
        (label, at, ece) for label in errors for at in errors[label] for ece in errors[label][at]
    ]
    rows.append(("TS", None, 0.3))  # a natural shift has no severity
    records = [SimpleNamespace(label=label, severity=at, ece=ece) for label, at, ece in rows]
    drawn = [
        [line.get_xydata().tolist() for line in plot.ece_by_severity(given).lines]
        for given in (SimpleNamespace(records=records), records, errors)
    ]
    assert drawn[0] == drawn[1] == drawn[2] != []


def test_the_risk_of_scores_is_that_of_their_confidences():
    probs = np.column_stack([1 - CONFIDENCE, CONFIDENCE])
    scores = sc.Scores(probs, "probabilities", labels=CORRECT.astype(int))
    top = probs.max(axis=1), (probs.argmax(axis=1) == CORRECT)
    of_scores, of_arrays = plot.risk_coverage(scores), plot.risk_coverage(*top)
    for found, wanted in zip(of_scores.get_lines(), of_arrays.get_lines(), strict=True):
        np.testing.assert_allclose(found.get_xydata(), wanted.get_xydata(), atol=1e-12)


def test_the_risk_is_that_of_the_rows_kept_at_every_share():
    confidence = CONFIDENCE.round(2)  # with ties
    options = {"accuracy": (0.6, 0.9), "target_accuracy": 0.9, "label": "mine"}
    axes = on_axes(plot.risk_coverage)(confidence, CORRECT, **options)
    expected, measured, mark = axes.get_lines()
    thresholds = np.unique(confidence)[::-1]
    kept = [confidence >= t for t in thresholds]
    for line, risk in (
        (expected, [1 - confidence[rows].mean() for rows in kept]),
        (measured, [1 - CORRECT[rows].mean() for rows in kept]),
    ):
        np.testing.assert_allclose(line.get_xdata(), [rows.mean() for rows in kept])
        np.testing.assert_allclose(line.get_ydata(), risk, atol=1e-12)
    found = sc.selective(confidence, 0.9)
    assert mark.get_xdata() == [found.coverage]
    assert words(axes) == [
        "mine, expected",
        "mine, measured",
        f"mine, {100 * found.coverage:.0f} % kept at 90 % accuracy",
    ]

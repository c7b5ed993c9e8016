"""What was chosen, as it was chosen: distances and margin, or temperatures and interval."""

from __future__ import annotations

import pytest
from digits_bank import digits_bank
from ladder_data import draw
from matplotlib.figure import Figure

import shiftcal as sc
from shiftcal import plot
from shiftcal.methods.method import Selection


def drawn(*given, **options):
    axes = Figure().add_subplot()
    plot.selection(*given, ax=axes, **options)
    return axes


def distances(axes):
    return [float(line.get_xdata()[0]) for line in axes.get_lines()]


def names(axes):
    return [text.get_text() for text in axes.get_yticklabels()]


def words(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def many_sets(n):
    return Selection(
        "sac",
        index=n - 1,
        n_sets=n,
        set_name="the last",
        distance="mean",
        distances=tuple((n - j) / n for j in range(n)),
        margin=1 / n,
    )


def test_distances_names_the_choice_and_the_margin_are_those_of_the_selection(adapted):
    sac = adapted["sac"]
    chosen = sac.selection_
    axes = drawn(sac)
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
    assert axes.get_xlabel() == "difference of mean confidence"


def test_a_selection_alone_has_names_from_the_bank_or_given_ones(adapted):
    chosen = adapted["sac"].selection_
    assert names(drawn(chosen, digits_bank())) == [s.name for s in digits_bank()]
    assert names(drawn(chosen, list("abcdef"))) == list("abcdef")
    assert names(drawn(chosen)) == [
        chosen.set_name if j == chosen.index else f"set {j + 1}" for j in range(6)
    ]


def test_of_many_sets_the_nearest_are_drawn_in_the_order_of_the_bank():
    axes = drawn(many_sets(200))
    assert len(distances(axes)) == 30
    assert names(axes) == [*(f"set {j}" for j in range(171, 200)), "the last"]
    assert axes.get_xlabel().endswith("30 nearest of 200 sets")


def test_temperatures_stand_over_the_mean_confidence_of_their_sets(adapted):
    method = adapted["rehearsal"]
    axes = drawn(method)
    for label, steps in (("noise", (0, 1, 2, 3)), ("fading", (0, 4, 5))):
        (line,) = (one for one in axes.get_lines() if one.get_label() == label)
        assert line.get_xdata().tolist() == [method.ladder_[j].mean_confidence for j in steps]
        assert line.get_ydata().tolist() == [method.temperatures_[j] for j in steps]
    assert axes.get_yscale() == "log"


def test_the_target_stands_at_its_confidence_with_its_temperature_and_interval(adapted):
    chosen = adapted["rehearsal"].selection_
    axes = drawn(adapted["rehearsal"])
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


def test_a_bank_of_one_set_and_one_of_many_corruptions_are_drawn():
    logits, labels = draw(300, 1.0, seed=1)
    one = sc.Rehearsal().fit(logits, labels)
    one.adapt(logits)
    assert words(drawn(one))[0] == "clean set"
    sets = [sc.SurrogateSet(logits, labels, "clean", severity=0)]
    sets += [
        sc.SurrogateSet(logits / (1 + j / 20), labels, f"{j}", corruption=f"c{j}", severity=1)
        for j in range(8)
    ]
    sac = sc.SAC().fit(sc.SurrogateBank(sets))
    sac.adapt(logits)
    assert words(drawn(sac, show="temperatures"))[0] == "8 corruptions"

"""Figures of studies: round trips, the same bytes, what is drawn is the data."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_hex
from PIL import Image
from sample_figures import boxes, calibration, densities, lines, one_of_each
from scipy import stats

from shiftcal.errors import FileError, InputError
from shiftcal.plot.style import BLUE, CHOSEN, METHODS, ORANGE
from shiftcal.report.figures import (
    Boxes,
    BoxSeries,
    CalibrationPlots,
    FigureData,
    Lines,
    Panel,
    Series,
    density,
    read_figure,
    stretched_grid,
    write_figure,
)

EACH = one_of_each()
VANILLA, TS = calibration().panels


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The three files of every kind, not to be changed."""
    folder = tmp_path_factory.mktemp("figures")
    return {kind: write_figure(figure, folder, kind) for kind, figure in EACH.items()}


@pytest.mark.parametrize("kind", EACH)
def test_the_data_comes_back_equal(kind, written):
    figure = EACH[kind]
    assert FigureData.from_dict(json.loads(json.dumps(figure.to_dict()))) == figure
    *_, path = written[kind]
    assert read_figure(path) == figure
    assert json.loads(path.read_text())["kind"] == kind


@pytest.mark.parametrize("kind", EACH)
def test_three_files_are_written_and_their_bytes_are_always_the_same(kind, written, tmp_path):
    again = write_figure(EACH[kind], tmp_path, "it")
    assert [path.name for path in again] == ["it.png", "it.svg", "it.json"]
    assert sorted(tmp_path.iterdir()) == sorted(again)
    for one, other in zip(written[kind], again, strict=True):
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.slow
def test_another_process_writes_the_same_bytes_and_never_imports_pyplot(written, tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from sample_figures import lines\n"
        "from shiftcal.report.figures import write_figure\n"
        "write_figure(lines(), sys.argv[2], 'it')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    support = str(next(p for p in map(str, sys.path) if p.endswith("support")))
    subprocess.run([sys.executable, "-c", code, support, str(tmp_path)], check=True)
    for path in written["lines"]:
        assert path.read_bytes() == (tmp_path / f"it{path.suffix}").read_bytes()


def test_the_png_is_the_width_of_a_page_at_200_dots_per_inch_on_white(written):
    path, *_ = written["lines"]
    with Image.open(path) as image:
        assert image.width == 1400
        assert round(image.info["dpi"][0]) == 200
        assert "Software" not in image.info
        corners = np.asarray(image.convert("RGB"))[[0, 0, -1, -1], [0, -1, 0, -1]]
    assert (corners == 255).all()


def test_the_words_in_the_svg_are_text_and_no_date_is_in_it(tmp_path):
    figure = lines(title="costs $5 and $6, a_b", note="<&>")
    _, path, _ = write_figure(figure, tmp_path, "it")
    said = [
        "".join(node.itertext()).strip() for node in ET.parse(path).iter() if "text" in node.tag
    ]
    for words in ("costs $5 and $6, a_b", "<&>", "ECE (%)", "TS", "SAC", "severity"):
        assert words in said
    assert "<dc:date>" not in path.read_text()


@pytest.mark.parametrize("kind", EACH)
def test_no_letter_is_smaller_than_eight_points(kind):
    from matplotlib.text import Text

    texts = [text for text in EACH[kind].draw().findobj(Text) if text.get_text()]
    assert min(text.get_fontsize() for text in texts) >= 8


@pytest.mark.parametrize("kind", EACH)
def test_title_legend_picture_and_note_do_not_overlap(kind):
    from dataclasses import replace

    figure = replace(EACH[kind], title="long " * 60, note="www " * 60 + "\nlast").draw()
    figure.draw_without_rendering()
    title, note = (text.get_window_extent() for text in figure.texts)
    legend = figure.legends[0].get_window_extent()
    pictures = [axes.get_tightbbox() for axes in figure.axes if axes.get_visible()]
    assert title.y1 <= figure.bbox.y1
    assert title.y0 >= legend.y1
    assert legend.y0 >= max(picture.y1 for picture in pictures)
    assert min(picture.y0 for picture in pictures) >= note.y1
    assert note.y0 >= 0
    assert max(title.x1, note.x1, *(picture.x1 for picture in pictures)) <= figure.bbox.x1


def test_the_users_own_settings_change_nothing_and_stay(written, tmp_path):
    import matplotlib as mpl

    expected = written["boxes"][0].read_bytes()
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "black", "lines.linewidth": 9}):
        before = dict(mpl.rcParams)
        assert write_figure(EACH["boxes"], tmp_path, "own")[0].read_bytes() == expected
        assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.pop("format"), "format 'shiftcal-figure', version 1"),
        (lambda d: d.update(version=2), "format 'shiftcal-figure', version 1"),
        (lambda d: d.update(kind="pie"), "no kind of figure is called 'pie'"),
        (lambda d: d.pop("kind"), "no kind of figure is called None"),
        (lambda d: d.pop("y_label"), "y_label"),
        (lambda d: d.update(colour="red"), "colour"),
        (lambda d: d.update(groups="01"), "groups"),
        (lambda d: d["series"][0].update(values=[[1.0]]), "'groups': 2, 'values': 1"),
        (lambda d: d["series"][0]["values"][0].append("x"), "series.0.values"),
        (lambda d: d["series"].append(3), "series.2"),
    ],
)
def test_a_damaged_file_is_rejected_by_name(change, words, written, tmp_path):
    document = json.loads(written["boxes"][2].read_text())
    change(document)
    path = tmp_path / "it.json"
    path.write_text(json.dumps(document))
    with pytest.raises(FileError, match=words) as caught:
        read_figure(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[1]", b'{"a": NaN}', b"[" * 100_000])
def test_what_is_no_figure_is_refused(content, tmp_path):
    path = tmp_path / "it.json"
    path.write_bytes(content)
    with pytest.raises(FileError, match="the data of a figure"):
        read_figure(path)


def series(key="ts", y=(1.0, 2.0), **options):
    return Series(key=key, label=key.upper(), y=y, **options)


def panel(x=(0.0, 1.0), made=None, **options):
    return Panel(x=x, series=made or (series(),), x_label="x", **options)


def drawn(*panels, **options):
    return Lines(panels=panels, y_label="ECE (%)", **options).draw()


def test_the_lines_carry_the_values_with_gaps_where_there_are_none():
    figure = lines().draw()
    left, right = figure.axes
    ts, sac = left.lines
    assert np.array_equal(ts.get_ydata(), [1.5, np.nan, 9.0], equal_nan=True)
    assert np.array_equal(sac.get_ydata(), [1.25, 2.5, 4.0])
    assert ts.get_color() == METHODS["ts"].colour
    assert sac.get_marker() == METHODS["sac"].marker
    assert right.lines[0].get_color() == METHODS["sac"].colour


def test_the_intervals_reach_from_low_to_high_at_the_place_of_the_point():
    left = lines().draw().axes[0]
    (bars,) = (c for c in left.collections if isinstance(c, LineCollection))
    places = left.lines[0].get_xdata()
    ends = [bar for bar in bars.get_segments() if bar.size]
    assert np.array_equal(
        ends, [[[places[0], 1.0], [places[0], 2.0]], [[places[2], 8], [places[2], 11]]]
    )


def test_bands_cover_the_intervals_and_move_nothing():
    made = series(y=(1.0, 2.0), low=(0.5, 1.0), high=(1.5, 4.0))
    axes = drawn(panel(made=(made, series("sac"))), intervals="bands").axes[0]
    (band,) = (c for c in axes.collections if isinstance(c, PolyCollection))
    assert {(0.0, 0.5), (1.0, 1.0), (0.0, 1.5), (1.0, 4.0)} <= set(
        map(tuple, band.get_paths()[0].vertices)
    )
    assert all(np.array_equal(line.get_xdata(), [0.0, 1.0]) for line in axes.lines)


def test_seven_series_with_bars_stand_beside_one_another_in_order_and_near_their_x():
    made = tuple(series(key, low=(0.0, 1.0), high=(2.0, 3.0)) for key in METHODS)
    axes = drawn(panel(made=made)).axes[0]
    places = np.array([line.get_xdata() for line in axes.lines])
    assert (np.diff(places, axis=0) > 0.03).all()
    assert (np.abs(places - [0.0, 1.0]) < 0.2).all()
    assert places.mean(axis=0) == pytest.approx([0.0, 1.0])


def test_numbers_are_joined_and_names_are_not_unless_it_is_said():
    def style(**options):
        return drawn(panel(**options)).axes[0].lines[0].get_linestyle()

    assert style() == "-"
    assert style(x=("a", "b")) == "None"
    assert style(x=("a", "b"), joined=True) == "-"
    assert style(joined=False) == "None"


def test_ticks_that_would_touch_are_left_out():
    x = tuple(float(i) for i in range(1000, 1200))
    axes = drawn(panel(x=x, made=(series(y=x),))).axes[0]
    assert 5 < len(axes.get_xticks()) < 40
    assert set(axes.get_xticks()) <= set(x)


def test_on_a_logarithmic_axis_powers_of_ten_are_left_out_last():
    x = tuple(float(i) for i in range(700, 1300, 10))
    ticks = drawn(panel(x=x, made=(series(y=x),), log_x=True)).axes[0].get_xticks()
    assert 1000.0 in ticks
    assert 5 < len(ticks) < 40


def test_names_in_several_lines_do_not_touch():
    names = ("ImageNet-V2 matched frequency", "ImageNet-V2 threshold", "ImageNet-V2 top images")
    names += ("ImageNet-Sketch", "Tiny-ImageNet, CIFAR-10 classes", "edges", "silhouettes")
    figure = drawn(panel(x=names, made=(series(y=tuple(range(7))),)))
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes))


def test_panels_share_y_and_one_legend_names_each_key_once():
    figure = lines().draw()
    left, right = figure.axes
    assert left.get_ylim() == right.get_ylim()
    assert left.get_ylim()[0] == 0
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["TS", "SAC"]
    assert left.get_ylabel() == "ECE (%)"
    assert not right.get_ylabel()
    assert (left.get_title(loc="left"), right.get_title(loc="left")) == ("left", "right")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: series(low=(0.0, 1.0)), "'TS' must have intervals with both ends"),
        (lambda: series(low=(0.0,), high=(2.0, 3.0)), "as many values everywhere"),
        (lambda: series(low=(0.0, None), high=(2.0, 3.0)), "both ends, in order"),
        (lambda: series(low=(0.0, 4.0), high=(2.0, 3.0)), "both ends, in order"),
        (lambda: panel(x=(0.0,)), "'x': 1, 'y': 2"),
        (lambda: panel(x=(), made=(series(y=()),)), "rising numbers x"),
        (lambda: panel(made=(series(), series())), "different keys"),
        (lambda: panel(x=(1.0, 1.0)), "rising numbers x"),
        (lambda: panel(x=(0.0, 1.0), log_x=True), "log_x, so its x must be numbers above 0"),
        (lambda: Lines(panels=(), y_label="y"), "at least one panel"),
        (lambda: replace(boxes(), groups=()), "at least one group"),
        (lambda: replace(boxes(), series=()), "at least one series"),
        (lambda: replace(boxes(), groups=("0", "1", "2")), "'groups': 3, 'values': 2"),
        (lambda: replace(densities(), surrogates=()), "at least one surrogate"),
        (lambda: replace(densities(), grid=(0.0, 1.0)), "'grid': 2"),
        (lambda: replace(densities(), grid=(0.0, 0.5, 2.0)), r"rising values within \[0, 1\]"),
        (lambda: replace(TS, edges=(0.0, 0.5, 0.5)), r"rising values within \[0, 1\]"),
        (lambda: replace(TS, count=(0, 50)), "in bins with samples"),
        (lambda: replace(TS, accuracy=(None, 60.0)), "in bins with samples"),
        (lambda: CalibrationPlots(panels=()), "at least one panel"),
        (lambda: density(np.array([0.5]), np.array([0.0, 2.0])), "rising values"),
        (lambda: density(np.array([1.5]), np.array([0.0, 1.0])), "p_max"),
    ],
)
def test_values_that_do_not_fit_are_rejected(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_boxes_are_drawn_from_the_data():
    figure = boxes().draw()
    (axes,) = figure.axes
    level = [
        line
        for line in axes.lines
        if len(set(line.get_ydata())) == 1 and len(line.get_ydata()) == 2
    ]
    medians = [line.get_ydata()[0] for line in level if line.get_linewidth() == 2.0]
    assert medians == [3.0, 7.0, 5.0]
    means = [line.get_ydata()[0] for line in axes.lines if line.get_marker() == "D"]
    assert means == [12.0, 7.0, 5.0]
    ends = [sorted({y for _, y in patch.get_path().vertices}) for patch in axes.patches]
    assert ends[0][-1] == 4.0
    assert 2.0 in ends[0]
    beyond = [list(line.get_ydata()) for line in axes.lines if line.get_marker() == "o"]
    assert beyond == [[50.0], [], []]
    assert [to_hex(patch.get_edgecolor()).upper() for patch in axes.patches][:2] == [
        METHODS["ts"].colour
    ] * 2


def test_seven_boxes_of_a_group_do_not_touch_and_stay_in_their_group():
    made = tuple(BoxSeries(key=key, label=key, values=((1.0, 2.0, 4.0),)) for key in METHODS)
    (axes,) = Boxes(groups=("0",), series=made, x_label="x", y_label="y").draw().axes
    sides = [patch.get_path().vertices[:, 0] for patch in axes.patches]
    lefts, rights = [side.min() for side in sides], [side.max() for side in sides]
    assert all(right < left for right, left in zip(rights, lefts[1:], strict=False))
    assert -0.5 < lefts[0] < rights[-1] < 0.5


GRID = np.linspace(0, 1, 2001)


@pytest.mark.parametrize("shape", [(9.0, 0.7), (2.0, 1.2), (0.5, 0.5)])
def test_it_is_scipys_estimate_of_the_data_with_both_mirror_images(shape):
    p_max = np.random.default_rng(3).beta(*shape, 500)
    mirrored = np.concatenate([p_max, -p_max, 2 - p_max])
    width = p_max.std(ddof=1) * stats.gaussian_kde(p_max).scotts_factor()
    theirs = stats.gaussian_kde(mirrored, bw_method=width / mirrored.std(ddof=1))
    assert density(p_max, GRID) == pytest.approx(3 * theirs(GRID), rel=1e-9)


@pytest.mark.parametrize("n", [2, 10, 3000])
def test_it_integrates_to_one_even_if_all_is_near_one(n):
    p_max = 1 - np.random.default_rng(4).exponential(0.02, n).clip(0, 1)
    # The trapezoidal rule on a grid finer than the kernel.
    assert np.trapezoid(density(p_max, GRID), GRID) == pytest.approx(1, abs=1e-3)


def test_stretched_it_is_scipys_estimate_of_the_digits_mirrored_at_zero():
    p_max = 1 - np.random.default_rng(3).beta(0.3, 2.0, 500).clip(1e-15)
    digits, x = -np.log10(1 - p_max), np.linspace(0, 6, 400)
    width = digits.std(ddof=1) * stats.gaussian_kde(digits).scotts_factor() / 2
    mirrored = np.concatenate([digits, -digits])
    theirs = stats.gaussian_kde(mirrored, bw_method=width / mirrored.std(ddof=1))
    # 1e-6: a grid of p_max near 1 holds its distance from 1 to ten digits
    assert density(p_max, 1 - 10**-x, stretched=True) == pytest.approx(2 * theirs(x), rel=1e-6)


def test_stretched_it_integrates_to_the_share_within_the_grid():
    p_max = np.concatenate([np.full(300, 0.9), np.full(100, 1.0)])
    grid = stretched_grid(601)
    made = density(p_max, grid, stretched=True)
    assert grid[0] == 0
    assert grid[-1] == pytest.approx(1 - 1e-6, abs=1e-15)
    # Both peaks are wide: they spread over 15 digits.
    assert np.trapezoid(made, -np.log10(1 - grid)) == pytest.approx(0.75, abs=0.01)


def test_the_curves_and_their_means_are_the_data():
    figure = densities().draw()
    for axes, surrogate in zip(figure.axes[:2], densities().surrogates, strict=True):
        theirs, their_mean, ours, our_mean = axes.lines
        assert tuple(theirs.get_ydata()) == surrogate.density
        assert tuple(ours.get_ydata()) == densities().target
        assert set(their_mean.get_xdata()) == {surrogate.mean}
        assert set(our_mean.get_xdata()) == {densities().target_mean}
        assert (theirs.get_color(), ours.get_color()) == (ORANGE, BLUE)
        assert tuple(ours.get_xdata()) == densities().grid


def stretched():
    """Half of the target beyond the axis, and a quarter or none of the surrogates."""
    first, second = densities().surrogates
    flat = tuple([1 / 6] * 7)
    return replace(
        densities(),
        grid=tuple(stretched_grid(7).tolist()),
        target=tuple(y / 2 for y in flat),
        target_mean=0.99,
        surrogates=(
            replace(first, density=tuple(0.75 * y for y in flat), mean=0.9),
            replace(second, density=flat),
        ),
        stretched=True,
    )


def test_on_a_stretched_axis_values_and_means_stand_at_their_digits():
    axes = stretched().draw().axes[0]
    theirs, their_mean, ours, our_mean = axes.lines
    assert theirs.get_xdata() == pytest.approx(np.arange(7.0), abs=1e-9)
    assert ours.get_ydata() == pytest.approx([1 / 12] * 7)
    assert list(their_mean.get_xdata()) == pytest.approx([1.0, 1.0])
    assert list(our_mean.get_xdata()) == pytest.approx([2.0, 2.0])
    assert axes.get_xlim() == (0, 6)
    told = {
        tick.get_text(): at
        for tick, at in zip(axes.get_xticklabels(), axes.get_xticks(), strict=True)
    }
    assert told["0.5"] == pytest.approx(np.log10(2))
    assert told["0.999"] == pytest.approx(3)


def test_the_small_print_explains_the_axes_and_what_lies_beyond():
    target, others = stretched().beyond()
    assert target == pytest.approx(0.5)
    assert others == pytest.approx((0.25, 0.0), abs=1e-9)
    (note,) = replace(stretched(), note="A note.").draw().texts
    said = " ".join(note.get_text().split())
    assert said.startswith("A note. Axis: equal distances are equal factors of 1 - p_max;")
    assert "50 % of the target and 0 to 25 % of the surrogate sets" in said
    (plain,) = densities().draw().texts
    assert plain.get_text() == "Densities: per unit of p_max."


def test_only_the_chosen_set_is_highlighted_and_says_so():
    clean, chosen, *below = densities().draw().axes
    assert "chosen" in chosen.get_title()
    assert "chosen" not in clean.get_title()
    grounds = [to_hex(axes.get_facecolor()).upper() for axes in (clean, chosen, *below)]
    assert grounds == ["#FFFFFF", CHOSEN, "#FFFFFF", CHOSEN]


def bars(axes, colour=None):
    return [
        (bar.get_x(), bar.get_width(), bar.get_height())
        for bar in axes.patches
        if colour is None or to_hex(bar.get_facecolor()).upper() == colour
    ]


def test_the_bars_are_accuracy_and_confidence_over_their_bins():
    vanilla, ts, *_ = calibration().draw().axes
    assert bars(vanilla, BLUE) == [(0.25, 0.25, 30.0), (0.5, 0.5, 60.0)]
    assert bars(vanilla, ORANGE) == [(0.25, 0.25, 40.0), (0.5, 0.5, 85.0)]
    assert bars(ts, BLUE) == [(0.0, 0.5, 30.0), (0.5, 0.5, 60.0)]
    assert all(0 < bar.get_alpha() < 1 for bar in vanilla.patches)


@pytest.mark.parametrize(
    ("counts", "shown"), [((50, 50), False), ((51, 50), False), ((52, 50), True)]
)
def test_shares_are_left_out_if_all_bins_hold_equally_many(counts, shown):
    figure = CalibrationPlots(panels=(TS, replace(TS, count=counts))).draw()
    assert len(figure.axes) == (4 if shown else 2)
    told = [text.get_text() for text in figure.legends[0].get_texts()]
    assert ("share of samples" in told) == shown
    assert all(axes.get_xlabel() for axes in figure.axes[-2:])
    assert [tick.get_text() for tick in figure.axes[-1].get_xticklabels()] == ["0", "0.5", "1"]


def test_bins_too_narrow_to_be_seen_are_counted_below():
    near_one = replace(
        TS,
        edges=(0.0, 0.5, 0.99, 0.995, 1.0),
        accuracy=(30.0, 60.0, 80.0, 90.0),
        confidence=(35.0, 62.0, 99.2, 99.9),
        count=(25, 25, 25, 25),
    )
    figure = CalibrationPlots(panels=(TS, near_one), note="A note.").draw()
    (note,) = figure.texts
    assert " ".join(note.get_text().split()) == (
        "A note. Bins above 0.99, too narrow to be seen: TS 2."
    )
    assert not CalibrationPlots(panels=(TS,)).draw().texts

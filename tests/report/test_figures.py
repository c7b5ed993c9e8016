"""Figures of studies: round trips, the same bytes, what is drawn is the data."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.text import Text
from PIL import Image

from shiftcal.charts import METHODS
from shiftcal.errors import FileError
from shiftcal.report.figures import (
    Boxes,
    BoxSeries,
    CalibrationPlots,
    Densities,
    FigureData,
    Lines,
    Panel,
    Reliability,
    Series,
    Surrogate,
    read_figure,
    stretched_grid,
    write_figure,
)


def lines(**changed: object) -> Lines:
    ts = Series(
        key="ts", label="TS", y=(1.5, None, 9.0), low=(1.0, None, 8.0), high=(2.0, None, 11.0)
    )
    sac = Series(key="sac", label="SAC", y=(1.25, 2.5, 4.0))
    numbers = Panel(x=(0.0, 1.0, 5.0), series=(ts, sac), x_label="severity", title="left")
    names = Panel(x=("a", "b", "c"), series=(sac,), x_label="map", title="right")
    given = {"panels": (numbers, names), "y_label": "ECE (%)", "title": "Two", "note": "A note."}
    return Lines(**{**given, **changed})


def boxes() -> Boxes:
    ts = BoxSeries(key="ts", label="TS", values=((1.0, 2.0, 3.0, 4.0, 50.0), (7.0,)))
    own = BoxSeries(key="own", label="my own", values=((5.0, 5.0), ()))
    return Boxes(groups=("0", "1"), series=(ts, own), x_label="severity", y_label="ECE (%)")


def densities() -> Densities:
    first = Surrogate(
        label="clean", density=(0.0, 1.0, 2.0), mean=0.75, accuracy=55.0, confidence=70.0, ece=15.5
    )
    second = Surrogate(
        label="pixelate 1",
        density=(0.5, 1.5, 1.0),
        mean=0.5,
        accuracy=55.0,
        confidence=56.0,
        ece=1.25,
        chosen=True,
    )
    return Densities(
        grid=(0.0, 0.5, 1.0),
        target=(0.25, 1.25, 1.5),
        target_mean=0.625,
        target_label="fog 2",
        surrogates=(first, second),
    )


def calibration() -> CalibrationPlots:
    vanilla = Reliability(
        key="vanilla",
        label="Vanilla",
        edges=(0.0, 0.25, 0.5, 1.0),
        accuracy=(None, 30.0, 60.0),
        confidence=(None, 40.0, 85.0),
        count=(0, 25, 75),
        ece=21.25,
    )
    ts = Reliability(
        key="ts",
        label="TS",
        edges=(0.0, 0.5, 1.0),
        accuracy=(30.0, 60.0),
        confidence=(35.0, 62.0),
        count=(50, 50),
        ece=3.5,
        temperature=1.5,
    )
    return CalibrationPlots(panels=(vanilla, ts))


def one_of_each() -> dict[str, FigureData]:
    made = (lines(), boxes(), densities(), calibration())
    return {figure.kind: figure for figure in made}


EACH = one_of_each()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The three files of every kind, not to be changed."""
    folder = tmp_path_factory.mktemp("figures")
    return {kind: write_figure(figure, folder, kind) for kind, figure in EACH.items()}


@pytest.mark.parametrize("kind", EACH)
def test_the_data_comes_back_equal_and_the_bytes_are_always_the_same(kind, written, tmp_path):
    assert read_figure(written[kind][2]) == EACH[kind]
    again = write_figure(EACH[kind], tmp_path, "it")
    assert [path.name for path in again] == ["it.png", "it.svg", "it.json"]
    assert sorted(tmp_path.iterdir()) == sorted(again)
    for one, other in zip(written[kind], again, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_a_picture_is_as_wide_as_a_page_on_white_and_its_words_are_text(written, tmp_path):
    with Image.open(written["lines"][0]) as image:
        assert (image.width, round(image.info["dpi"][0])) == (1400, 200)
        assert (np.asarray(image.convert("RGB"))[[0, 0, -1, -1], [0, -1, 0, -1]] == 255).all()
    _, path, _ = write_figure(lines(title="costs $5 and $6, a_b", note="<&>"), tmp_path, "it")
    shown = [
        "".join(node.itertext()).strip() for node in ET.parse(path).iter() if "text" in node.tag
    ]
    assert {"costs $5 and $6, a_b", "<&>", "ECE (%)", "TS", "SAC", "severity"} <= set(shown)
    assert "<dc:date>" not in path.read_text()


@pytest.mark.parametrize("kind", EACH)
def test_words_are_readable_and_do_not_overlap(kind):
    figure = replace(EACH[kind], title="A long title " * 12, note="A note. " * 40).draw()
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(Text) if text.get_text()]
    assert min(text.get_fontsize() for text in texts) >= 8
    title, note = (text.get_window_extent() for text in figure.texts)
    pictures = [axes.get_tightbbox() for axes in figure.axes if axes.get_visible()]
    above = [legend.get_window_extent() for legend in figure.legends] + [title]
    assert title.y1 <= figure.bbox.y1
    assert title.y0 >= max((one.y1 for one in above[:-1]), default=0)
    assert min(one.y0 for one in above) >= max(picture.y1 for picture in pictures) - 1
    assert min(picture.y0 for picture in pictures) >= note.y1 - 1
    assert note.y0 >= 0
    assert max(title.x1, note.x1, *(picture.x1 for picture in pictures)) <= figure.bbox.x1


def test_the_users_own_settings_change_nothing_and_stay(written, tmp_path):
    import matplotlib as mpl

    with mpl.rc_context({"font.size": 30, "axes.facecolor": "black", "lines.linewidth": 9}):
        before = dict(mpl.rcParams)
        own, *_ = write_figure(EACH["boxes"], tmp_path, "own")
        assert dict(mpl.rcParams) == before
    assert own.read_bytes() == written["boxes"][0].read_bytes()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.pop("format"), "format"),
        (lambda d: d.update(version=2), "format 'shiftcal-figure', version 1"),
        (lambda d: d.update(kind="pie"), "pie"),
        (lambda d: d.pop("y_label"), "y_label"),
        (lambda d: d.update(colour="red"), "colour"),
        (lambda d: d["series"][0]["values"][0].append("x"), "series.0.values"),
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


def series(key="ts", y=(1.0, 2.0), **options):
    return Series(key=key, label=key.upper(), y=y, **options)


def panel(x=(0.0, 1.0), made=None, **options):
    return Panel(x=x, series=made or (series(),), x_label="x", **options)


def drawn(*panels, **options):
    return Lines(panels=panels, y_label="ECE (%)", **options).draw()


def test_lines_and_intervals_are_the_data_with_gaps_where_there_is_none():
    figure = lines().draw()
    left, right = figure.axes
    ts, sac = left.lines
    assert np.array_equal(ts.get_ydata(), [1.5, np.nan, 9.0], equal_nan=True)
    assert np.array_equal(sac.get_ydata(), [1.25, 2.5, 4.0])
    assert ts.get_color() == METHODS["ts"].colour
    assert sac.get_marker() == METHODS["sac"].marker
    bars = next(c for c in left.collections if isinstance(c, LineCollection))
    ends = [bar for bar in bars.get_segments() if np.isfinite(bar).all() and bar.size]
    x = ts.get_xdata()
    assert np.array_equal(ends, [[[x[0], 1.0], [x[0], 2.0]], [[x[2], 8], [x[2], 11]]])
    assert left.get_ylim() == right.get_ylim()
    assert left.get_ylim()[0] == 0
    assert left.get_ylim()[1] > 11
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["TS", "SAC"]
    assert (left.get_ylabel(), right.get_ylabel()) == ("ECE (%)", "")
    assert (left.get_title(loc="left"), right.get_title(loc="left")) == ("left", "right")


def test_numbers_are_joined_and_names_are_not():
    styles = [axes.lines[0].get_linestyle() for axes in drawn(panel(), panel(x=("a", "b"))).axes]
    assert styles == ["-", "None"]


def test_boxes_are_drawn_from_the_data():
    (axes,) = boxes().draw().axes
    wide = [line for line in axes.lines if line.get_linewidth() == 2.0]
    assert [line.get_ydata()[0] for line in wide] == [3.0, 7.0, 5.0]
    means = [line.get_ydata()[0] for line in axes.lines if line.get_marker() == "D"]
    assert means == [12.0, 7.0, 5.0]
    beyond = [list(line.get_ydata()) for line in axes.lines if line.get_marker() == "o"]
    assert beyond == [[50.0], [], []]
    colours = [to_hex(patch.get_edgecolor()).upper() for patch in axes.patches]
    assert colours[:2] == [METHODS["ts"].colour] * 2


def test_densities_and_their_means_are_the_data_and_the_chosen_set_is_marked():
    figure = densities().draw()
    for axes, surrogate in zip(figure.axes, densities().surrogates, strict=True):
        theirs, ours = axes.lines
        assert tuple(theirs.get_ydata()) == surrogate.density
        assert tuple(ours.get_ydata()) == densities().target
        assert tuple(ours.get_xdata()) == densities().grid
        means = [c for c in axes.collections if isinstance(c, LineCollection)]
        places = [one.get_segments()[0][0, 0] for one in means]
        assert places == [surrogate.mean, densities().target_mean]
        assert ("(chosen)" in axes.get_title(loc="left")) == surrogate.chosen
        assert f"ECE {surrogate.ece:.2f} %" in axes.get_xlabel()


def test_on_a_stretched_axis_values_stand_at_their_digits():
    grid, flat = tuple(stretched_grid(7).tolist()), (0.1,) * 7
    surrogates = tuple(replace(one, density=flat) for one in densities().surrogates)
    stretched = {"grid": grid, "target": flat, "surrogates": surrogates, "stretched": True}
    axes = replace(densities(), **stretched).draw().axes[0]
    assert axes.lines[0].get_xdata() == pytest.approx(np.arange(7.0), abs=1e-9)
    assert axes.get_xlim() == pytest.approx((0, 6))
    pairs = zip(axes.get_xticklabels(), axes.get_xticks(), strict=True)
    ticks = {label.get_text(): x for label, x in pairs}
    assert ticks["0.999"] == pytest.approx(3)


def test_bins_of_a_calibration_plot_are_accuracy_over_confidence():
    vanilla, ts = calibration().draw().axes
    points = vanilla.containers[0].lines[0]
    assert np.array_equal(points.get_xdata(), [np.nan, 40, 85], equal_nan=True)
    assert np.array_equal(points.get_ydata(), [np.nan, 30, 60], equal_nan=True)
    assert ts.get_title(loc="left") == "TS\nECE 3.50 %, T = 1.50"

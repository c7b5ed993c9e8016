"""What every kind of figure promises: a round trip, the same bytes, errors that say what to do."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image
from sample_figures import lines, one_of_each

from shiftcal.errors import FileError, InputError, MissingExtra, UnknownName
from shiftcal.report.figures import FigureData, base, read_figure, write_figure

EACH = one_of_each()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The three files of every kind, not to be changed."""
    folder = tmp_path_factory.mktemp("figures")
    return {kind: write_figure(figure, folder, kind) for kind, figure in EACH.items()}


def test_a_kind_is_its_file_and_each_has_a_sample_here():
    assert base.kinds() == sorted(EACH)
    for kind, figure in EACH.items():
        assert type(figure).__module__ == f"shiftcal.report.figures.{kind}"


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


class NoMatplotlib:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def test_without_matplotlib_the_extra_is_named_and_nothing_is_written(monkeypatch, tmp_path):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [NoMatplotlib(), *sys.meta_path])
    with pytest.raises(MissingExtra, match=r"a figure needs matplotlib.*shiftcal\[plot\]"):
        EACH["lines"].draw()
    with pytest.raises(MissingExtra, match="matplotlib"):
        write_figure(EACH["lines"], tmp_path, "it")
    assert not list(tmp_path.iterdir())


def test_making_and_reading_data_needs_no_matplotlib():
    code = "import sys, shiftcal.report.figures; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(FileError, match=r"it\.png could not be written.*folder exists"):
        write_figure(EACH["boxes"], tmp_path / "nowhere", "it")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.pop("format"), "no format 'shiftcal-figure'.*beside the picture"),
        (lambda d: d.update(version=2), "version 2; this shiftcal reads version 1.*[Uu]pgrade"),
        (lambda d: d.update(kind="pie"), "damaged: no kind of figure is called 'pie'"),
        (lambda d: d.pop("kind"), "damaged: no kind of figure is called None"),
        (lambda d: d.pop("y_label"), "damaged: .*not complete.*y_label"),
        (lambda d: d.update(colour="red"), "damaged: the figure 'boxes' has no 'colour'"),
        (lambda d: d.update(groups="01"), r"damaged: Boxes\.groups must be a tuple, not '01'"),
        (lambda d: d["series"][0].update(values=[[1.0]]), "groups has 2, values has 1"),
        (lambda d: d["series"][0]["values"][0].append("4"), "finite number, not '4'"),
        (lambda d: d["series"].append(3), "must be a table of values, not 3"),
    ],
)
def test_damage_is_told_with_what_is_wrong(change, words, written, tmp_path):
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
    with pytest.raises(FileError, match="not the data of a figure"):
        read_figure(path)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(FileError, match="could not be read: No such file"):
        read_figure(tmp_path / "none.json")


def test_from_dict_leaves_what_it_was_given_and_names_unknown_kinds():
    values = EACH["boxes"].to_dict()
    FigureData.from_dict(values)
    assert values["kind"] == "boxes"
    with pytest.raises(UnknownName, match="Did you mean 'boxes'"):
        FigureData.from_dict({"kind": "boxs"})
    with pytest.raises(InputError, match="not complete"):
        FigureData.from_dict({"kind": "boxes"})

"""Maps, methods, metrics and corruptions of a user's own: found, saved, loaded, or told why not."""

from __future__ import annotations

import csv
import importlib
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from ladder_data import make_bank
from tiny_study import PLAN, write_study

import shiftcal as sc
from shiftcal.errors import FileError, InputError
from shiftcal.files import checksum_of

BANK = make_bank(300)
LOGITS, LABELS = BANK.clean.logits, BANK.clean.labels

PARTS = '''
from typing import ClassVar

import numpy as np

from shiftcal.corruptions import Corruption
from shiftcal.maps import FitStatus, Map
from shiftcal.methods import Flag, Method, Selection, fit_map
from shiftcal.metrics import Facts, metric


class Halved(Map):
    """``softmax(z / 2)``, whatever the labels say."""

    name: ClassVar[str] = "halved"
    preserves_accuracy: ClassVar[bool] = True
    divisor_: float

    def __init__(self, *, input="logits"):
        self.input = input

    def _fit(self, logits, labels, weights):
        self.divisor_ = 2.0
        self.status_ = FitStatus("converged")

    def _apply(self, logits):
        e = np.exp(logits / self.divisor_ - (logits / self.divisor_).max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)


class Last(Method):
    """The map of the last set of the bank."""

    name: ClassVar[str] = "last"
    uses_bank: ClassVar[bool] = True
    map_: Map

    def __init__(self, *, map="temperature", input="logits"):
        self.map = map
        self.input = input

    def _fit(self, bank, source_features):
        self.map_ = fit_map(self.map, bank[-1].logits, bank[-1].labels, where=bank[-1].name)

    def _adapt(self, logits, features):
        return Selection(self.name, flags=(Flag("few-rows", "none looked at."),))

    def _apply(self, logits):
        return self.map_.apply_checked(logits)


@metric(Facts(reads="top1"))
def sure_and_wrong(confidence, correct):
    """Share of rows that are wrong with a confidence above 0.9."""
    return float(np.mean((np.asarray(confidence) > 0.9) & ~np.asarray(correct)))


class Inverted(Corruption):
    """Dark is light."""

    name = "inverted"
    group = "digital"
    random = False
    severities = 1

    def setting(self, severity, *, table):
        return severity

    def _apply(self, images, out, plan, keys):
        out[:] = 255 - images
'''
ENTRY_POINTS = """
[shiftcal.maps]
halved = own_parts.everything:Halved
[shiftcal.methods]
last = own_parts.everything:Last
[shiftcal.metrics]
sure-and-wrong = own_parts.everything:sure_and_wrong
[shiftcal.corruptions]
inverted = own_parts.everything:Inverted
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A package on the path, that declares nothing."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "own_parts").mkdir()
    (folder / "own_parts" / "__init__.py").touch()
    (folder / "own_parts" / "everything.py").write_text(PARTS)
    return folder


@pytest.fixture(scope="module")
def installed(package, tmp_path_factory):
    """The metadata that installing the package with entry points leaves behind."""
    info = tmp_path_factory.mktemp("declared") / "own_parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-parts\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return [package, info.parent]


@pytest.fixture
def scores(tmp_path):
    """Files for the command line."""
    for j, each in enumerate(BANK):
        np.savez(tmp_path / f"s{j}.npz", logits=each.logits, labels=each.labels)
    return tmp_path


def python(code, *path, cwd=None, ok=True):
    """What a fresh interpreter prints."""
    return called(["-c", textwrap.dedent(code)], *path, cwd=cwd, ok=ok)


def called(arguments, *path, cwd, ok=True):
    search = os.pathsep.join([*map(str, path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": search, "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) is ok, done.stderr
    return done.stdout if ok else done.stderr


def test_a_method_and_a_map_of_my_own_are_named_saved_and_loaded(package, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(package)
    method = sc.methods.get("own_parts.everything:Last")(map="own_parts.everything:Halved")
    method.fit(BANK).save(tmp_path / "last.json")
    document = json.loads((tmp_path / "last.json").read_text())["object"]
    assert document["name"] == "own_parts.everything:Last"
    assert document["fitted"]["map_"]["name"] == "own_parts.everything:Halved"
    again = sc.load(tmp_path / "last.json")
    assert type(again) is type(method)
    assert again.adapt(LOGITS).has("few-rows")
    np.testing.assert_array_equal(again.predict_proba(LOGITS), method.predict_proba(LOGITS))
    inner = sc.SAC(map="own_parts.everything:Halved").fit(BANK)
    inner.save(tmp_path / "sac.json")
    assert sc.load(tmp_path / "sac.json").map == "own_parts.everything:Halved"


def test_a_file_never_causes_an_import(package, tmp_path):
    save = """
    import sys, shiftcal as sc
    from own_parts.everything import Halved
    Halved().fit([[3.0, 0.0], [0.0, 3.0]] * 6, [0, 1] * 6).save("map.json")
    """
    load = "import sys, shiftcal as sc; {}print(sc.load('map.json').divisor_)"
    python(save, package, cwd=tmp_path)
    said = python(load.format(""), package, cwd=tmp_path, ok=False)
    assert "map.json cannot be used" in said
    assert "Run `import own_parts.everything` first" in said
    again = python(load.format("import own_parts.everything; "), package, cwd=tmp_path)
    assert again.strip() == "2.0"


@pytest.mark.parametrize(
    ("where", "value", "words"),
    [
        ("name", "hostile_module:X", "Run `import hostile_module` first"),
        ("map", "hostile_module:X", "Run `import hostile_module` first"),
        ("name", "os:system", "must be a method, a subclass of Method"),
        ("map", "os:system", "must be a calibration map, a subclass of Map"),
        ("name", "shiftcal.methods.method:Method", "must define _adapt, _fit"),
        ("name", "os:", "has no "),
    ],
)
def test_a_hostile_file_runs_nothing(where, value, words, tmp_path, monkeypatch):
    (tmp_path / "hostile_module.py").write_text("open('ran', 'w').close()\nclass X: ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    sc.SAC().fit(BANK).save("sac.json")
    document = json.loads(Path("sac.json").read_text())
    del document["checksum"]
    (document["object"] if where == "name" else document["object"]["settings"])[where] = value
    document["checksum"] = checksum_of(document)
    Path("sac.json").write_text(json.dumps(document))
    with pytest.raises(FileError, match=words):
        sc.load("sac.json")
    assert not Path("ran").exists()


def test_what_is_installed_with_entry_points_is_found_by_its_name(installed, tmp_path):
    found = python(
        """
        import numpy as np, shiftcal as sc
        sure = np.array([[3.0, 0.0], [0.0, 3.0]] * 6)
        sc.SAC(map="halved").fit(sure, [0, 1] * 6).save("sac.json")
        sc.methods.get("last")(map="halved").fit(sure, [0, 1] * 6).save("last.json")
        image = np.zeros((8, 8, 3), np.uint8)
        print(sc.corrupt(image, "inverted", severity=1).max())
        print(sc.metrics.get("sure-and-wrong")([0.95, 0.2], [False, True]))
        print([name in kind.names() for kind, name in (
            (sc.maps, "halved"), (sc.methods, "last"), (sc.metrics, "sure-and-wrong"),
            (sc.corruptions, "inverted"))])
        """,
        *installed,
        cwd=tmp_path,
    )
    assert found.split("\n")[:3] == ["255", "0.5", str([True] * 4)]
    load = (
        "import shiftcal as sc; print(*(type(sc.load(f)).name for f in ('sac.json', 'last.json')))"
    )
    assert python(load, *installed, cwd=tmp_path).strip() == "sac last"


def test_a_class_without_input_is_told_what_it_lacks(tmp_path, monkeypatch):
    code = "import shiftcal as sc\nclass Half(sc.methods.Method):\n    name = 'half'\n"
    code += "    def _fit(self, bank, source_features): ...\n"
    code += "    def _adapt(self, logits, features): ...\n"
    (tmp_path / "without_input.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(sc.errors.InputError, match="must take input= and set it"):
        sc.methods.get("without_input:Half")


def test_the_command_line_takes_my_own_by_module_and_by_entry_point(package, installed, scores):
    def shiftcal(text, *path, ok=True):
        return called(["-m", "shiftcal", *text.split()], *path, cwd=scores, ok=ok)

    bank = "--surrogate s0.npz --surrogate s2.npz"
    mine = "own_parts.everything"
    shiftcal(f"fit --method {mine}:Last --map {mine}:Halved {bank} -o last.json", package)
    said = shiftcal("apply last.json s1.npz -o out.npz", package, ok=False)
    assert f"shiftcal --import {mine}" in said
    shiftcal(f"--import {mine} apply last.json s1.npz -o out.npz", package)
    shiftcal("apply last.json s1.npz -o out2.npz", *installed)
    with np.load(scores / "out.npz") as by_import, np.load(scores / "out2.npz") as by_entry:
        np.testing.assert_array_equal(by_import["probabilities"], by_entry["probabilities"])
    judged = shiftcal(f"evaluate out.npz --labels s1.npz --metric {mine}:sure_and_wrong", package)
    assert f"{mine}:sure_and_wrong" in judged
    table = shiftcal(f"compare --method {mine}:Last --method ts --target s1.npz {bank}", package)
    assert [line.split()[0] for line in table.split("\n")[3:5]] == ["ts", "last"]


HERE = "own_parts.everything"


@pytest.mark.parametrize(
    ("body", "bound", "said"),
    [
        ({"__module__": "__main__"}, True, "top level of a module, such as my_maps.py"),
        ({"__qualname__": "make.<locals>.Own"}, True, "`from my_maps import Own`"),
        ({"name": None}, True, 'Put this line into the class: name = "own"'),
        ({"name": "temperature"}, True, "has the name of a built-in calibration map"),
        ({}, False, f"{HERE}:Own could not be loaded"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(body, bound, said, package, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(package)
    there = importlib.import_module(HERE)
    body = {"name": "own", "__module__": HERE} | body
    own = type("Own", (there.Halved,), {k: v for k, v in body.items() if v is not None})
    if bound:
        monkeypatch.setattr(sys.modules[own.__module__], "Own", own, raising=False)
    with pytest.raises(InputError, match=re.escape(said)):
        own().fit(LOGITS, LABELS).save(tmp_path / "own.json")
    with pytest.raises(InputError, match=re.escape(said)):  # inside a method too
        sc.STS(map=own()).fit(BANK).save(tmp_path / "sts.json")
    assert list(tmp_path.iterdir()) == []


def test_what_a_file_would_lose_is_not_saved(package, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(package)
    fitted = importlib.import_module(HERE).Halved().fit(LOGITS, LABELS)
    fitted.shift_ = 2.0
    with pytest.raises(InputError, match=r"lose its attribute shift_. .* class: shift_: float"):
        fitted.save(tmp_path / "own.json")


@pytest.mark.parametrize(
    "changed",
    [
        'methods = ["antigravity:fly"]',
        'methods = [{name = "sac", map = "antigravity:fly"}]',
        'metrics = ["antigravity:fly"]',
        '[calibration]\ncorruption = "antigravity:fly"',
        '[[ladders]]\nname = "fine"\ncorruption = "antigravity:fly"\nstrengths = [1, 2]',
    ],
)
def test_a_plan_imports_nothing(changed):
    head = 'study = "synthetic"\n'
    tail = "" if changed.startswith("[") else "\n"
    with pytest.raises(InputError, match=r"a plan never imports .* --import antigravity"):
        sc.studies.read_plan(head + changed + tail)
    assert "antigravity" not in sys.modules


def test_a_plan_takes_my_own_once_they_are_imported(package, tmp_path):
    mine = "own_parts.everything"
    metrics = f'metrics = ["aurc", "{mine}:sure_and_wrong"]'
    plan = PLAN.replace("methods = [", f'{metrics}\nmethods = ["{mine}:Last", ')
    plan = plan.replace('["contrast", "brightness"]', f'["{mine}:Inverted"]')
    plan = plan.replace("[0, 2, 5]", "[0, 1]")
    write_study(tmp_path, plan)
    words = ["-m", "shiftcal", "--import", mine, "reproduce", "mine.toml", "-o", "run"]
    called([*words, "--data", "."], package, cwd=tmp_path)
    table = (tmp_path / "run" / "data" / "metrics.csv").read_text("utf-8")
    rows = list(csv.DictReader(table.splitlines()))
    assert f"{mine}:sure_and_wrong" in rows[0]
    assert any(row["label"] == "Last" and "Inverted" in row["target"] for row in rows)
    assert all(0 <= float(row["aurc"]) <= 1 for row in rows)
    assert "aurc" in (tmp_path / "run" / "report.md").read_text("utf-8")

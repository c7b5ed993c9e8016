"""Plans: read, checked, written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_adaptation import PLAN as DOMAINS

from shiftcal import studies
from shiftcal.errors import FileError, InputError, UnknownName
from shiftcal.registry import STUDIES
from shiftcal.studies.images import ImagesPipeline
from shiftcal.studies.plan import (
    CalibrationPlan,
    DataPlan,
    LadderPlan,
    ModelPlan,
    NamedPlan,
    NaturalSet,
    Plan,
    ShiftPlan,
)

TEXT = """\
study = "synthetic"
seeds = [3, 1]
methods = ["vanilla", { name = "SAC", label = "Ours", distance = "ks" }, "oracle"]

[model]
spec = "net.onnx"

[data]
images = ["{data}/a.npz", "b.npz"]

[calibration]
corruption = "Pixelate"
severities = [5, 1]

[shifts]
corruptions = ["Gaussian-Noise"]
"""


def read(text=TEXT, **options):
    return studies.read_plan(text, data="x", where="mine.toml", **options)


def test_a_plan_is_read_with_its_defaults():
    plan = read()
    assert (plan.study, plan.seeds, plan.bins) == ("synthetic", (3, 1), 15)
    assert plan.model == ModelPlan(("net.onnx",))
    assert plan.data.images == ("x/a.npz", "b.npz")
    assert plan.calibration == CalibrationPlan("pixelate", (1, 5))
    assert plan.shifts.corruptions == ("gaussian_noise",)
    assert [method.label for method in plan.methods] == ["Vanilla", "Ours", "Oracle"]
    assert plan.methods[1].settings == {"distance": "ks"}
    assert plan.stored
    named = read(model="other.onnx")
    assert (named.model.spec, named.stored) == (("other.onnx",), False)


def test_a_plan_of_domain_adaptation_is_read_with_its_defaults():
    plan = read(DOMAINS)
    assert plan.tasks == (("dawn", "noon"), ("noon", "dusk"))
    assert [pair.title for pair in plan.pairs] == ["A2N", "N2D"]
    assert [trainer.key for trainer in plan.trainers] == ["source-only", "dan", "mcc"]
    assert plan.domains[0].images == (("x/elsewhere.npz",), ("x/dawn.npz",))
    assert plan.domains[1].images == (("x/noon-1.npz", "x/noon-2.npz"),)
    assert plan.training.settings["iterations"] == 30
    everywhere = read(DOMAINS.replace('tasks = [["dawn", "noon"], ["noon", "dusk"]]', ""))
    assert len(everywhere.tasks) == 6


@pytest.mark.parametrize("name", studies.names())
def test_the_plans_of_shiftcal_are_trusted_and_the_same_after_writing(name):
    text, where = studies.plan_text(name)
    plan = studies.read_plan(text, data="x", where=where)
    assert not plan.stored
    again = studies.read_plan(studies.to_toml(plan))
    assert again == plan
    assert again.stored
    fetched = [plan.data.fetch] if isinstance(plan, Plan) else [d.fetch for d in plan.domains]
    assert all(fetched)
    if isinstance(plan, Plan):
        assert ImagesPipeline(plan).variants


def test_every_study_has_a_plan():
    plans = [studies.read_plan(studies.plan_text(name)[0], data="x") for name in studies.names()]
    assert {plan.study for plan in plans} == {*STUDIES.names(), "adaptation"}


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12)
keys = st.from_regex("[A-Za-z0-9_-]{1,9}", fullmatch=True)
places = st.tuples(texts.filter(lambda text: "{data}" not in text))
values = st.one_of(texts, st.integers(-99, 99), st.floats(-9, 9), st.booleans())
plans = st.builds(
    Plan,
    study=texts,
    model=st.builds(ModelPlan, places, st.none() | texts),
    data=st.builds(DataPlan, places, labels=st.none() | texts, limit=st.none() | st.just(7)),
    about=texts,
    calibration=st.just(CalibrationPlan("fog", (2, 4), 10)),
    shifts=st.builds(
        ShiftPlan,
        st.just(("contrast",)),
        sets=st.lists(texts, max_size=2, unique=True).map(
            lambda titles: tuple(
                NaturalSet(f"set{i}", title, ("here",)) for i, title in enumerate(titles)
            )
        ),
    ),
    methods=st.just((NamedPlan("ts", "TS"), NamedPlan("sac", 'a "b"', {"peek": 3}))),
    ladders=st.just((LadderPlan("fine", "pixelate", ((0.9,), (0.8,))),)),
    options=st.dictionaries(keys, values | st.lists(values, max_size=2), max_size=3),
)


@given(plan=plans)
@settings(max_examples=40, deadline=None)
def test_a_plan_is_the_same_after_writing_and_reading(plan):
    if any("{data}" in str(value) for value in plan.options.values()):
        return
    if any(name in plan.options for name in ("name", "map", "maps", "methods")):
        return
    assert studies.read_plan(studies.to_toml(plan), data="{data}") == plan


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("seeds", "sedes", r"\[sedes\]: there is no such entry. Did you mean 'seeds'"),
        ("[3, 1]", "[3, 3]", "seeds.*a different value"),
        ("[3, 1]", "[]", "seeds.*at least 1"),
        ("[3, 1]", '["3"]', "seeds.*integer"),
        ('study = "synthetic"', "", r"\[study\]: must be given"),
        ('"net.onnx"', '["net.onnx", ""]', r"\[model\] \[spec\] 2"),
        ('"net.onnx"', '"net.onnx"\nspecs = 1', r"\[model\] \[specs\]: there is no such"),
        ('"vanilla"', '"vanila"', r"\[methods\] 1: .*Did you mean 'vanilla'"),
        ('"vanilla"', "3", r"\[methods\] 1: .*; got 3"),
        ('distance = "ks"', "distanc = 1", r"\[methods\] 2: .*'distanc'"),
        ('"oracle"]', '{ name = "oracle", peek = 1 }]', "the oracle has no settings"),
        ('"oracle"]', '{ name = "ts", label = "Ours" }]', "a different label each"),
        ('"oracle"]', '{ name = "vanilla", label = "a" }]', "a different key each"),
        ('"oracle"]', '"pseudocal"]', "mixed target images"),
        ('"Pixelate"', '""', "at least 1 character"),
        ('"Gaussian-Noise"', '"fog", "fog"', "a different value"),
        ("[shifts]", '[[shifts.sets]]\nname = "../a"\nimages = "x"\n[shifts]', "name.*pattern"),
        (
            "[calibration]",
            '[[ladders]]\nname = "fog"\ncorruption = "pixelate"\nstrengths = [0.5]\n[calibration]',
            "must not be that of a published",
        ),
        (
            "[calibration]",
            '[[ladders]]\nname = "a"\ncorruption = "pixelate"\nstrengths = ["x"]\n[calibration]',
            "strengths.*valid number",
        ),
        (
            "[calibration]",
            '[[ladders]]\nname = "a"\ncorruption = "pixelate"\nstrengths = [2]\n[calibration]',
            "between 0 and 1",
        ),
        ('"vanilla"', '"evil:Method"', "a plan never imports"),
        ('"Pixelate"', '"evil:Corruption"', "a plan never imports"),
    ],
)
def test_a_plan_that_cannot_be_run_is_rejected_with_the_entry(old, new, words):
    assert TEXT.count(old) == 1
    with pytest.raises((InputError, FileError), match=rf"(?s)mine\.toml.*{words}"):
        read(TEXT.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('short = "D"', 'short = "N"', "a different short each"),
        ('name = "dusk"', 'name = "a b"', r"\[domains\] 3 \[name\].*pattern"),
        ('["noon", "dusk"]', '["noon", "dus"]', "connect two of the domains"),
        ('["noon", "dusk"]', '["noon", "noon"]', "connect two of the domains"),
        ('"dan"', '"dann"', r"\[trainers\] 2: .*'dan'"),
        ("frozen = true", "frozen = 1", r"\[network\] \[frozen\]"),
        ("[training.settings]", '[training]\ndevice = "A 1"\n[training.settings]', "device"),
        ("severities = [1, 3]", "severities = []", "severities must name at least one"),
        ("bins = 3", "bins = 0", "bins.*greater than or equal to 1"),
        ("bins = 3", 'paper = "visda"', r"\[paper\]: there is no such entry"),
    ],
)
def test_a_plan_of_domain_adaptation_that_cannot_be_run_is_rejected(old, new, words):
    assert DOMAINS.count(old) == 1
    with pytest.raises((InputError, UnknownName), match=rf"mine\.toml.*{words}"):
        read(DOMAINS.replace(old, new))


def test_what_is_no_plan_is_rejected(tmp_path):
    with pytest.raises(FileError, match="is not TOML"):
        read("study = ")
    with pytest.raises(InputError, match="--data FOLDER"):
        studies.read_plan(TEXT)
    with pytest.raises(UnknownName, match="synthetic"):
        studies.plan_text("synthetc")
    with pytest.raises(FileError, match="could not be read"):
        studies.plan_text(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(FileError, match="not UTF-8"):
        studies.plan_text(tmp_path / "bytes.toml")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"oracle"]', '"oracle"]\noptions = { x = 1 }', r"\[x\]: there is no such entry"),
        ('["Gaussian-Noise"]', '["pixelate"]', "compares nothing"),
        ('"Gaussian-Noise"', '"foq"', "Did you mean 'fog'"),
        ("[5, 1]", "[6]", "pixelate has the severities 1 to 5"),
        ('["Gaussian-Noise"]', "[]\nseverities = [1]", "compares nothing"),
        ("[5, 1]", "[]", "severities must name at least one: Ours"),
    ],
)
def test_a_plan_that_its_study_cannot_run_is_rejected(old, new, words):
    assert TEXT.count(old) == 1
    with pytest.raises(InputError, match=words):
        ImagesPipeline(read(TEXT.replace(old, new)))

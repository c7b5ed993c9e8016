"""Plans of domain adaptation: what is read, what is refused, what is written."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_adaptation import PLAN, SPEC, toy_plan

from shiftcal import adaptation, studies
from shiftcal.errors import InputError, UnknownName
from shiftcal.studies.adapting import trainings
from shiftcal.studies.adapting.paper import PUBLISHED
from shiftcal.studies.adapting.plan import (
    AdaptationPlan,
    DomainPlan,
    NetworkPlan,
    SurrogatePlan,
    TrainerPlan,
    TrainingPlan,
)
from shiftcal.studies.adapting.trainings import trainings_of
from shiftcal.studies.plan.plan import MethodPlan

OURS = ("digits", "office-caltech", "office-home", "pacs", "visda")


def built_in(name):
    return studies.read_plan(studies.plan_text(name)[0], data="/data")


def refused(old, new, match, error=InputError):
    assert PLAN.count(old) == 1
    with pytest.raises(error, match=match):
        studies.read_plan(PLAN.replace(old, new), data="/data", where="mine.toml")


def test_everything_that_a_plan_says_is_read():
    plan = toy_plan("/data")
    assert isinstance(plan, AdaptationPlan)
    assert plan.about == "Three times of day."
    assert (plan.seeds, plan.bins, plan.paper) == ((0, 1), 3, None)
    assert plan.tasks == (("dawn", "noon"), ("noon", "dusk"))
    assert [pair.title for pair in plan.pairs] == ["A2N", "N2D"]
    assert [pair.name for pair in plan.pairs] == ["dawn_to_noon", "noon_to_dusk"]
    assert [(t.name, t.label) for t in plan.trainers] == [
        ("source-only", "source only"), ("dan", "DAN"), ("mcc", "MCC"),
    ]  # fmt: skip
    assert plan.network == NetworkPlan((SPEC,), frozen=True)
    assert plan.training.settings["iterations"] == 30
    assert (plan.training.recipe, plan.training.select) == (None, "last")
    assert plan.calibration == SurrogatePlan("pixelate", (1, 3))
    dawn, noon, dusk = plan.domains
    assert dawn.images == (("/data/elsewhere.npz",), ("/data/dawn.npz",))
    assert noon.images == (("/data/noon-1.npz", "/data/noon-2.npz"),)
    assert dusk.images == (("/data/dusk.npz",),)
    assert (noon.short, noon.title, noon.limit) == ("N", "noon", None)


def test_all_tasks_are_all_ordered_pairs_of_domains():
    text = PLAN.replace('tasks = [["dawn", "noon"], ["noon", "dusk"]]', 'tasks = "all"')
    assert [pair.title for pair in toy_plan("/data", text).pairs] == [
        "A2N", "A2D", "N2A", "N2D", "D2A", "D2N",
    ]  # fmt: skip
    without = PLAN.replace('tasks = [["dawn", "noon"], ["noon", "dusk"]]\n', "")
    assert toy_plan("/data", without).tasks == toy_plan("/data", text).tasks


def test_a_trainer_with_options_is_called_by_them():
    plain = TrainerPlan("cdan", "CDAN")
    entropy = TrainerPlan("cdan", "CDAN+E", {"entropy": True})
    sharp = TrainerPlan("mcc", "MCC", {"temperature": 1.5, "lr": 1e-4})
    assert [t.key for t in (plain, entropy, sharp)] == [
        "cdan", "cdan-entropy", "mcc-temperature-1.5-lr-0.0001",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("bins = 3", "binz = 3", r"^mine\.toml has no entry 'binz'\. .*bins"),
        ("seeds = [0, 1]", "seeds = []", r"^mine\.toml seeds must name one at least"),
        ("frozen = true", 'frozen = "yes"', r"\[network\] frozen must be true or false; got 'yes'"),
        ('[["dawn", "noon"], ["noon", "dusk"]]', '"some"', r"tasks must be .all., or a list of"),
        ('[["dawn", "noon"], ["noon", "dusk"]]', '[["dawn"]]', r"tasks must be .all., or a list"),
        ('[["dawn", "noon"], ["noon", "dusk"]]', "[]", r"tasks must name one at least"),
        ('["noon", "dusk"]]', '["noon", "dawm"]]', r"domain 'dawm', which .* Did you mean 'dawn'"),
        ('["noon", "dusk"]]', '["noon", "noon"]]', r"from one domain to another; got 'noon' twice"),
        ('["noon", "dusk"]]', '["dawn", "noon"]]', r"two tasks are the same: 'dawn_to_noon'"),
        ('short = "D"', 'short = "A"', r"two domains have the short name 'A'"),
        ('name = "dusk"', 'name = "noon"', r"two domains have the name 'noon'"),
        ('name = "dusk"', 'name = "d/usk"', r"domains 3 name must be letters, digits"),
        ('images = "{data}/dusk.npz"', "images = []", r"domains 3 needs images"),
        ('images = "{data}/dusk.npz"', "images = [[]]", r"domains 3 images must be texts, or"),
        ("severities = [1, 3]", "severities = [1, 6]", r"severities must be those of pixelate"),
        ("severities = [1, 3]", "severities = []", r"name one at least: SAC, STS learn from"),
        ('"source-only", "dan",', '"dan", "dan",', r"two trainers are the same: 'dan'"),
        ('label = "MCC"', 'label = "DAN"', r"two trainers have the label 'DAN'"),
        ('label = "MCC"', "entropy = true", r"^mine\.toml trainers 3: MCC has no option 'entropy'"),
        ('label = "MCC"', "temperature = 0.0", r"^mine\.toml trainers 3: temperature must be"),
        ("batch_size = 8", "batchsize = 8", r"trainers 1: .*no option 'batchsize'.*batch_size"),
        ('"ts", "cpcs"', '"ts", "ts"', r"two methods have the label 'TS'"),
        (
            '"ts", "cpcs"',
            '"ts", { name = "ts", label = "again" }',
            r"two methods are the same, name and settings: 'ts \{\}'",
        ),
        ("bins = 3", 'bins = 3\npaper = "visdo"', r"paper must be a data set .* 'visda'"),
        ("[training.settings]", '[training]\nselect = "best"\n[training.settings]', r"select must"),
        ("[training.settings]", '[training]\nprecision = "half"\n[training.settings]',
         r"^mine\.toml \[training\] precision must be one of 'bfloat16', 'float16'; got 'half'"),
        ("[training.settings]", '[training]\ndevice = "the GPU"\n[training.settings]',
         r"^mine\.toml \[training\] device must be 'auto', or a device as torch names it"),
        ("[training.settings]", '[training]\ntransform = "none"\n[training.settings]',
         r"^mine\.toml \[training\] transform must be left out with a frozen backbone"),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_run_says_why(old, new, match):
    refused(old, new, match)


def test_a_transform_that_is_none_is_refused_as_the_plan_is_read():
    text = PLAN.replace("frozen = true", "frozen = false").replace(
        "[training.settings]", '[training]\ntransform = "centre-crop"\n[training.settings]'
    )
    with pytest.raises(UnknownName, match=r"\[training\] transform must be one of .*center-crop"):
        studies.read_plan(text, data="/data")


def test_a_plan_without_trainers_or_methods_or_domains_is_refused():
    refused('trainers = ["source-only", "dan", { name = "mcc", label = "MCC" }]', "", "needs train")
    methods = 'methods = ["vanilla", "ts", "cpcs", "transcal", "sac", "sts", "oracle"]'
    refused(methods, "", "compares nothing")
    with pytest.raises(InputError, match=r"needs two domains at least.*got 0"):
        studies.read_plan(PLAN.partition("[[domains]]")[0], data="/data")


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('"dan",', '"dam",', r"^mine\.toml trainers 2: .*'dam'.*dan"),
        ('"sac",', '"sacc",', r"^mine\.toml methods 5: .*'sacc'.*sac"),
        ("[calibration]", '[calibration]\ncorruption = "pixel"', r"corruption: .*pixelate"),
        ("[training.settings]", '[training]\nrecipe = "froze"\n[training.settings]', "'frozen'"),
    ],
)
def test_a_name_that_is_none_is_answered_by_the_nearest(old, new, match):
    refused(old, new, match, UnknownName)


def test_the_toy_is_the_same_after_writing_and_reading():
    plan = toy_plan("/data")
    assert studies.read_plan(studies.to_toml(plan)) == plan


WORD = st.text("abcdefgh-_.", min_size=1, max_size=6).filter(lambda text: text[0].isalpha())
TEXT = st.text(min_size=1, max_size=8)


@st.composite
def plans(draw):
    names = draw(st.lists(WORD, min_size=2, max_size=3, unique=True))
    shorts = draw(st.lists(WORD, min_size=len(names), max_size=len(names), unique=True))
    frozen = draw(st.booleans())
    images = st.lists(st.lists(TEXT, min_size=1, max_size=2).map(tuple), min_size=1, max_size=2)
    domains = tuple(
        DomainPlan(
            name,
            short,
            draw(TEXT),
            tuple(draw(images)),
            labels=draw(st.none() | TEXT),
            limit=draw(st.none() | st.integers(1, 99)),
            fetch=draw(st.text(max_size=5)),
        )
        for name, short in zip(names, shorts, strict=True)
    )
    return AdaptationPlan(
        domains=domains,
        tasks=((names[0], names[1]), (names[1], names[0])),
        trainers=(
            TrainerPlan("source-only", draw(TEXT), {"iterations": draw(st.integers(1, 9))}),
            TrainerPlan("cdan", "C", {"entropy": True, "lr": draw(st.floats(1e-4, 1))}),
        ),
        network=NetworkPlan((draw(TEXT), draw(TEXT)), frozen=frozen),
        training=TrainingPlan(
            recipe=draw(st.sampled_from([None, "digits", "default"])),
            transform=None if frozen else draw(st.none() | st.sampled_from(["none", "default"])),
            precision=draw(st.none() | st.just("bfloat16")),
            threads=draw(st.none() | st.integers(1, 4)),
            settings=draw(st.just({}) | st.just({"batch_size": 4})),
        ),
        calibration=SurrogatePlan("pixelate", draw(st.sampled_from([(1,), (2, 5)]))),
        about=draw(st.text(max_size=5)),
        methods=(MethodPlan("ts", "TS"), MethodPlan("sac", "KS", {"distance": "ks"})),
        seeds=(3, 1),
        bins=draw(st.integers(1, 20)),
        paper=draw(st.sampled_from([None, *PUBLISHED])),
    )


@given(plans().filter(lambda plan: plan.trainers[0].label != "C"))
def test_a_plan_is_the_same_after_writing_and_reading(plan):
    assert studies.read_plan(studies.to_toml(plan)) == plan


@pytest.mark.parametrize("name", OURS)
def test_a_plan_that_comes_with_shiftcal_says_what_to_get_and_where_to_put_it(name):
    plan = built_in(name)
    assert isinstance(plan, AdaptationPlan)
    assert all("/data" in domain.fetch for domain in plan.domains)
    assert all("/data" in text for d in plan.domains for texts in d.images for text in texts)
    assert {m.name for m in plan.methods} == {
        "vanilla", "ts", "cpcs", "transcal", "sac", "sts", "oracle",
    }  # fmt: skip


def test_the_plans_of_the_papers_data_have_the_papers_tasks_and_trainers():
    for name in ("office-home", "visda"):
        plan = built_in(name)
        assert plan.paper == plan.training.recipe == name
        assert {pair.title for pair in plan.pairs} == set(PUBLISHED[name].tasks)
        assert {t.name for t in plan.trainers} == {*PUBLISHED[name].trainers, "source-only"}


def test_the_plans_of_frozen_features_have_twelve_tasks_seven_trainers_and_five_seeds():
    for name in ("office-caltech", "pacs"):
        plan = built_in(name)
        assert len(plan.tasks) == 12
        assert plan.network.frozen
        assert len(trainings_of(plan)) == 12 * 7 * 5


def test_what_decides_a_training_decides_its_folder():
    plan = toy_plan("/data")
    first = trainings_of(plan)[0].place
    assert first.startswith("trainings/dawn_to_noon/source-only-")
    assert first.endswith("/seed-0")
    others = [
        replace(plan, calibration=SurrogatePlan("pixelate", (1,))),
        replace(plan, training=replace(plan.training, settings={"iterations": 9})),
        replace(plan, training=replace(plan.training, select="source-validation")),
        replace(plan, network=replace(plan.network, backbone=("another",))),
        replace(plan, domains=(replace(plan.domains[0], limit=30), *plan.domains[1:])),
    ]
    assert len({first, *(trainings_of(other)[0].place for other in others)}) == 6
    same = [
        replace(plan, seeds=(0,), bins=5, about="else", methods=plan.methods[:2]),
        replace(plan, training=replace(plan.training, device="cpu", threads=2)),
        replace(plan, trainers=plan.trainers[:1], domains=plan.domains[:2], tasks=plan.tasks[:1]),
    ]
    assert {trainings_of(other)[0].place for other in same} == {first}


def places(plan):
    return {training.trainer.key: training.place for training in trainings_of(plan)}


def test_a_recipe_that_is_changed_in_the_code_has_other_folders(monkeypatch):
    plan = replace(toy_plan("/data"), training=TrainingPlan(recipe="frozen"))
    before = places(plan)
    kind = adaptation.get("mcc")
    for changed in ({"temperature": 1.75}, {"lr": 0.0125}):
        recipes = {**kind.recipes, "frozen": {**kind.recipes["frozen"], **changed}}
        monkeypatch.setattr(kind, "recipes", recipes)
        after = places(plan)
        assert after["mcc"] != before["mcc"]
        assert after["dan"] == before["dan"]
        # An earlier note of a divergence is beside the folder, and so not found, either.
        assert after["mcc"].rpartition("/")[0] != before["mcc"].rpartition("/")[0]


def test_defaults_of_a_trainer_that_are_changed_in_the_code_have_other_folders(monkeypatch):
    plan = replace(toy_plan("/data"), network=NetworkPlan((SPEC,), frozen=False))
    before = places(plan)
    kind = adaptation.get("dan")
    monkeypatch.setattr(kind, "settings", kind.settings.changed({"weight_decay": 0.25}))
    monkeypatch.setattr(adaptation.get("mcc"), "transform", "center-crop")
    after = places(plan)
    assert {name for name, place in after.items() if place != before[name]} == {"dan", "mcc"}


def test_the_same_numbers_have_the_same_folder_whoever_says_them():
    frozen = adaptation.get("dan").recipes["frozen"]
    plan = replace(toy_plan("/data"), training=TrainingPlan(recipe="frozen"))
    said = replace(plan, training=TrainingPlan(recipe="default", settings=dict(frozen)))
    said = replace(said, trainers=tuple(t for t in plan.trainers if t.name == "dan"))
    assert places(said)["dan"] == places(plan)["dan"]
    trainings_before = places(plan)
    assert trainings.FORMAT == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainings, "FORMAT", 2)
        assert not set(places(plan).values()) & set(trainings_before.values())


def test_images_that_are_chosen_by_chance_have_a_folder_of_their_own():
    plan = toy_plan("/data")
    dusk = replace(plan.domains[2], limit=30)
    few = replace(plan, domains=(*plan.domains[:2], dusk))
    source_too = replace(few, tasks=(*few.tasks, ("dusk", "noon")))
    assert few.images_of(dusk) != source_too.images_of(dusk)
    assert plan.images_of(plan.domains[2]) == source_too.images_of(plan.domains[2])
    one, other = (
        {t.place for t in trainings_of(each) if t.pair.name == "noon_to_dusk"}
        for each in (few, source_too)
    )
    assert not one & other

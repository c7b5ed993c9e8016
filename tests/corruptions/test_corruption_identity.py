"""What a corruption of the user's own is known by: all that decides its pixels, in any process."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import os
import subprocess
import sys
import threading
import types
from pathlib import Path

import numba
import numpy as np
import pytest
import torch

from shiftcal.corruptions import Corruption, Custom, Fog, Frost, Pixelate
from shiftcal.corruptions.base import Settings
from shiftcal.errors import InputError

FACTOR = 0.5
TABLE = {"low": np.arange(256, dtype=np.uint8)}


def identity(step):
    """Of a function under one name, so that names never tell two apart."""
    return Custom(step, name="own").identity


def digest(step):
    found = identity(step)
    assert found is not None
    return found


def darker(factor):
    return lambda image: (image * factor).astype(np.uint8)


def with_default(factor):
    def step(image, _factor=factor):
        return (image * _factor).astype(np.uint8)

    return step


def with_keyword_default(factor):
    def step(image, *, _factor=factor):
        return (image * _factor).astype(np.uint8)

    return step


def with_attribute(factor):
    def step(image):
        return (image * step.factor).astype(np.uint8)

    step.factor = factor
    return step


def through_another(factor):
    def scale(image):
        return image * factor

    def step(image):
        return scale(image).astype(np.uint8)

    return step


def decorated(factor):
    @functools.wraps(np.flipud)
    def step(image):
        return (image * factor).astype(np.uint8)

    return step


def cached(factor):
    return functools.lru_cache(darker(factor))


def compiled(factor):
    @numba.njit
    def scale(value):
        return value * factor

    return lambda image: scale(image).astype(np.uint8)


def of_class_attribute(factor):
    class Darker:
        strength = factor

        def __call__(self, image):
            return (image * self.strength).astype(np.uint8)

    return Darker()


class Scaled:
    """An object that is called; its text would tell its address."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, image):
        return self.scale(image).astype(np.uint8)

    def scale(self, image):
        return image * self.factor


class Slotted:
    """The same without a dictionary."""

    __slots__ = ("factor",)

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, image):
        return (image * self.factor).astype(np.uint8)


class Forgetful(Scaled):
    """One that leaves out of its pickles what decides."""

    def __getstate__(self):
        return {}


@dataclasses.dataclass
class Data:
    """The same as a data class."""

    factor: object

    def __call__(self, image):
        return (image * self.factor).astype(np.uint8)


VARIED = {
    "closure": darker,
    "default": with_default,
    "keyword default": with_keyword_default,
    "attribute of a function": with_attribute,
    "closure of a function in a closure": through_another,
    "decorated": decorated,
    "cached": cached,
    "compiled": compiled,
    "class attribute": of_class_attribute,
    "object": Scaled,
    "object with slots": Slotted,
    "object with a state of its own": Forgetful,
    "data class": Data,
    "method": lambda factor: Scaled(factor).scale,
    "partial argument": lambda factor: functools.partial(np.multiply, factor),
    "partial keyword": lambda factor: functools.partial(np.roll, shift=factor),
    "partial of a closure": lambda factor: functools.partial(darker(factor)),
    "nested containers": lambda factor: darker({"a": [(factor,)]}),
    "set": lambda factor: darker({"a", factor}),
    "array": lambda factor: darker(np.array([1.0, factor])),
    "array of objects": lambda factor: darker(np.array(["a", factor], object)),
    "tensor": lambda factor: darker(torch.tensor([factor])),
    "network": lambda factor: darker(torch.nn.Dropout(factor)),
    "ladder": lambda factor: [darker(1), darker(factor)],
    "space of names": lambda factor: darker(types.SimpleNamespace(factor=factor)),
}


@pytest.mark.parametrize("name", VARIED)
def test_a_value_that_decides_the_pixels_changes_the_identity(name):
    make = VARIED[name]
    assert digest(make(0.5)) == digest(make(0.5))
    assert len({digest(make(value)) for value in (0.5, 0.1, 0.25)}) == 3


@pytest.mark.parametrize(
    "values",
    [
        (1, 1.0, True, "1", b"1", None, (1,), [1], {1}, frozenset({1}), np.int64(1), np.array(1)),
        (0.0, -0.0, 1e-300, float("nan"), float("inf"), 0j),
        ([1, 2], [2, 1], [[1], 2], [1, [2]], ["1", "2"], ["12"], [], [[]]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 2, "b": 1}, {}),
        (np.zeros(4), np.zeros((2, 2)), np.zeros(4, np.float32), np.zeros(4, ">f8"), np.ones(4)),
        (2**70, -(2**70), 10**5000, "é", "\ud800", slice(1), range(3), ...),
        (np.flipud, np.fliplr, np.add, np.subtract, abs, len, Fog(), Pixelate(), Path("a")),
    ],
)
def test_values_that_differ_in_any_way_are_told_apart(values):
    assert len({digest(darker(value)) for value in values}) == len(values)


def test_the_layout_of_an_array_in_memory_does_not_count():
    whole = np.arange(24.0).reshape(4, 6)
    assert digest(darker(whole.T)) == digest(darker(np.ascontiguousarray(whole.T)))
    assert digest(darker(whole[::2])) == digest(darker(whole[::2].copy()))


def reads_a_global(image):
    return (image * FACTOR).astype(np.uint8)


def reads_it_further_down(image):
    return [reads_a_global(part) for part in image]


def looks_up(image):
    return TABLE["low"][image]


@pytest.mark.parametrize("step", [reads_a_global, reads_it_further_down])
def test_a_global_that_is_read_counts(monkeypatch, step):
    before = digest(step)
    monkeypatch.setitem(globals(), "FACTOR", 0.1)
    assert digest(step) != before
    monkeypatch.setitem(globals(), "FACTOR", 0.5)
    assert digest(step) == before


def test_an_array_that_is_changed_in_its_place_counts(monkeypatch):
    before = digest(looks_up)
    monkeypatch.setitem(TABLE, "low", TABLE["low"] + np.uint8(1))
    assert digest(looks_up) != before


def test_globals_that_are_only_named_as_attributes_do_not_count(monkeypatch):
    before = digest(looks_up)
    monkeypatch.setitem(globals(), "low", threading.Lock())
    monkeypatch.setitem(globals(), "FACTOR", threading.Lock())
    assert digest(looks_up) == before


def test_two_functions_on_one_line_are_told_apart():
    steps = [lambda image: image // 2, lambda image: image // 4]
    assert digest(steps[0]) != digest(steps[1])
    assert digest(steps) != digest(steps[::-1])


def test_functions_that_call_one_another_have_an_identity():
    def even(image, n):
        return image if n == 0 else odd(image, n - 1)

    def odd(image, n):
        return even(image, n - 1)

    assert digest(even) == digest(even)
    assert digest(even) != digest(odd)


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """Imports a module of the user's own, with the text it is given."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names = ("own_steps", "own_tools", "own_pack", "own_pack.deep")

    def load(text, tools="", name="own_steps"):
        for old in names:
            sys.modules.pop(old, None)
        (tmp_path / f"{name}.py").write_text(text)
        (tmp_path / "own_tools.py").write_text(tools)
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield load
    for old in names:
        sys.modules.pop(old, None)


IMPORTING = {
    "import above": "import own_tools\ndef step(image):\n    return own_tools.scale(image)\n",
    "from above": "from own_tools import scale\ndef step(image):\n    return scale(image)\n",
    "import inside": "def step(image):\n    import own_tools as t\n    return t.scale(image)\n",
    "from inside": "def step(image):\n    from own_tools import scale\n    return scale(image)\n",
}


@pytest.mark.parametrize("text", IMPORTING.values(), ids=IMPORTING)
def test_what_is_taken_from_a_module_of_ones_own_counts(own_module, text):
    tools = "K = {}\ndef scale(image):\n    return image // K\nUNUSED = {}\n"
    before = digest(own_module(text, tools.format(2, 1)).step)
    assert digest(own_module(text, tools.format(2, 7)).step) == before
    assert digest(own_module(text, tools.format(4, 1)).step) != before


def test_where_a_function_stands_and_its_comments_do_not_count(own_module):
    plain = "def step(image):\n    return image // 2\n"
    before = digest(own_module(plain).step)
    assert digest(own_module(f"# moved\n\n\nX = 3\n{plain}# on\n").step) == before
    assert digest(own_module(plain.replace("2", "3")).step) != before


def test_a_file_that_was_edited_since_it_was_imported_is_not_taken_for_the_code(own_module):
    old = own_module("def step(image):\n    return image // 2\n")
    before = digest(old.step)
    Path(old.__file__).write_text("def step(image):\n    return image // 9\n")
    assert digest(old.step) == before


def test_what_is_not_installed_counts_as_missing():
    def step(image):
        import no_such_module_anywhere

        return no_such_module_anywhere.f(image)

    assert digest(step) == digest(step)


def opened(image):
    return image[: STREAM.tell()]


def draws(image):
    return GENERATOR.permutation(image)


def evaluates(image):
    return eval("image")


STREAM = Path(__file__).open()  # noqa: SIM115 (held by a function, as users do)
STREAM.close()
GENERATOR = np.random.default_rng(0)


@pytest.mark.parametrize(
    "step",
    [
        opened,
        draws,
        evaluates,
        darker(threading.Lock()),
        darker(i for i in range(3)),
        Scaled([threading.Lock()]),
        functools.partial(darker, threading.Lock()),
        [reads_a_global, darker(threading.Lock())],
    ],
)
def test_what_cannot_be_compared_has_no_identity_unless_it_has_a_key(step):
    assert identity(step) is None
    keyed = Custom(step, name="own", key="v1")
    assert keyed.identity == "own (custom, key v1)"
    assert Custom(step, name="own", key="v2").identity != keyed.identity


def test_a_key_replaces_the_digest():
    one, other = (Custom(darker(f), name="own", key="darker-v1") for f in (0.5, 0.1))
    assert one.identity == other.identity
    assert Custom(darker(1), name="other", key="darker-v1").identity != one.identity


@pytest.mark.parametrize("key", ["", "  ", 3, b"v1"])
def test_a_key_must_be_text(key):
    with pytest.raises(InputError, match=r"key must be text that changes whenever the pixels do"):
        Custom(darker(1), key=key)


def own_class(*, divisor=2, turned="", levels=1):
    """A subclass of the user's own, made anew with other code."""
    step = eval(f"lambda images: images[:, ::{turned or 1}]")

    class Mine(Corruption):
        group = "digital"
        settings = Settings(cifar=((),), tiny_imagenet=((),), imagenet=((levels,),))

        def __init__(self, strength=1, held=None):
            self.strength = strength
            self.held = held

        def _apply(self, images, out, plan, keys):
            out[...] = step(images) // (divisor * self.strength)

    return Mine


def test_a_subclass_of_ones_own_is_known_by_code_and_attributes():
    made = [
        own_class()(),
        own_class()(strength=2),
        own_class()(held=np.arange(3)),
        own_class(divisor=3)(),
        own_class(turned="-1")(),
        own_class(levels=2)(),
    ]
    known = {each.identity for each in made}
    assert None not in known
    assert len(known) == len(made)
    assert made[0].identity == own_class()().identity
    assert made[0].identity.startswith("mine (sha256 ")


def test_a_subclass_that_cannot_be_compared_takes_a_key():
    mine = own_class()(held=threading.Lock())
    assert mine.identity is None
    mine.key = "mine-v1"
    assert mine.identity == "mine (key mine-v1)"


def test_those_of_this_package_are_known_by_name_unless_something_is_changed_on_them():
    assert Pixelate().identity == "pixelate"
    assert Frost().identity == "frost (procedural)"
    for made in (Pixelate(), Frost()):
        plain = made.identity
        made.settings = Settings(cifar=((0.1,),), tiny_imagenet=((0.1,),), imagenet=((0.1,),))
        assert made.identity is not None
        assert made.identity.startswith(plain)
        assert made.identity != plain


def test_albumentations_transforms_are_known_by_their_settings():
    albumentations = pytest.importorskip("albumentations")

    def noise(top):
        return albumentations.GaussNoise(std_range=(0.1, top), p=1)

    class Mine(albumentations.ImageOnlyTransform):
        def apply(self, img, **params):
            return img // 2

    class Other(albumentations.ImageOnlyTransform):
        def apply(self, img, **params):
            return img // 3

    Other.__qualname__, Other.__name__ = Mine.__qualname__, Mine.__name__
    steps = [noise(0.2), noise(0.3), Mine(), Other(), albumentations.VerticalFlip()]
    steps += [albumentations.Compose([step]) for step in steps]
    assert len({digest(step) for step in steps}) == len(steps)
    used = noise(0.2)
    used.set_random_seed(3)
    used(image=np.zeros((8, 8, 3), np.uint8))
    assert digest(used) == digest(noise(0.2))


SCRIPT = """
import functools, re, sys
import numpy as np
from shiftcal.corruptions import Corruption, Custom
from shiftcal.corruptions.base import Settings

WORDS = {"fog", "snow", "rain", "hail", "dew"}
LEVELS = np.linspace(0, 1, 7)

class Step:
    def __init__(self, k):
        self.k = k
        self.words = frozenset(WORDS)

    def __call__(self, image):
        return image // self.k if re.match("a", "b") else image

def plain(image, severity, rng):
    known = "fog" in {"fog", "snow", "rain", "hail"}
    return (image * LEVELS[severity]).astype(np.uint8) if known and WORDS else image

class Mine(Corruption):
    group = "digital"
    settings = Settings(cifar=((1,),), tiny_imagenet=((1,),), imagenet=((1,),))

    def __init__(self):
        self.words = WORDS

    def _apply(self, images, out, plan, keys):
        out[...] = images

steps = [plain, Step(3), functools.partial(plain, severity=2), np.flipud, Step(2).__call__]
for step in steps:
    print(Custom(step, name="own").identity)
print(Mine().identity)
"""


def test_another_process_gives_the_same_identities(tmp_path):
    file = tmp_path / "steps.py"
    file.write_text(SCRIPT)

    def told(seed):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run = subprocess.run(
            [sys.executable, file], env=environment, capture_output=True, text=True, check=True
        )
        return run.stdout.split("\n")[:-1]

    first = told("1")
    assert "None" not in first
    assert len(set(first)) == 6
    assert told("2") == first

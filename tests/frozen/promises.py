"""What shiftcal promises today, through public names only: internal moves change nothing here.

``write.py`` records it, ``test_promises.py`` compares. To change a promise, edit the tables at the
top of this file if a name changes, run ``make frozen``, and look at the difference.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import io
import json
import os
import re
import runpy
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import shiftcal
from shiftcal import estimates, grouping, maps, methods, metrics, monitoring, scoring

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden" / "v1"

# Not promised: what may still change.
NO_NAMES = {"shiftcal.ScoreStatistics", "shiftcal.scoring.ScoreStatistics"}
# Members without an underscore that only shiftcal itself calls.
NO_MEMBERS = {"adapt_moments", "after_load", "decide", "estimate_moments", "fitted_attributes"}
NO_MEMBERS |= {"needs_rows", "refined", "sketch"}


# --- names -----------------------------------------------------------------------------------


def names() -> dict[str, Any]:
    """Every public module with its names: what can be called, with parameters and defaults."""
    public = {"shiftcal": shiftcal}
    for name in shiftcal.__all__:
        if f"shiftcal.{name}" not in NO_NAMES and inspect.ismodule(getattr(shiftcal, name)):
            public[f"shiftcal.{name}"] = getattr(shiftcal, name)
    found = {
        place: {
            name: described(getattr(module, name))
            for name in sorted(module.__all__)
            if f"{place}.{name}" not in NO_NAMES
        }
        for place, module in public.items()
    }
    for place, module in public.items():
        if "names" in module.__all__:
            known = {
                name: described(_entry(module, name), members=False) for name in module.names()
            }
            found[f"{place}.names()"] = known
    return found


def _entry(module: Any, name: str) -> Any:
    return module.get(name) if "get" in module.__all__ else None


def described(thing: Any, *, members: bool = True) -> Any:
    """A module or value by its kind, a function by its signature, a class with its members."""
    if inspect.isclass(thing):
        if issubclass(thing, Exception):
            bases = [base.__name__ for base in thing.__mro__[1:-1]]
            return {"bases": bases}
        text = {"()": _signature(thing)}
        return text | (_members(thing) if members else {})
    if callable(thing):
        return _signature(thing)
    return "module" if inspect.ismodule(thing) else type(thing).__name__


def _members(thing: type) -> dict[str, str]:
    found = {}
    for name in sorted(dir(thing)):
        where = next(cls for cls in [*thing.__mro__, type] if name in vars(cls))
        ours = where.__module__.startswith("shiftcal")
        if name.startswith("_") or name in NO_MEMBERS or not ours:
            continue
        member = getattr(thing, name)
        found[name] = _signature(member) if callable(member) else "attribute"
    return found


def _signature(thing: Any) -> str:
    """Parameters and defaults; annotations may name what is not public, and are left out."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return "()"
    plain = [
        p.replace(annotation=p.empty)
        for name, p in signature.parameters.items()
        if not name.startswith("_")
    ]
    text = str(signature.replace(parameters=plain, return_annotation=signature.empty))
    return re.sub(r"<[^<>]* at 0x[0-9a-f]+>|<factory>", "...", text)


# --- numbers ---------------------------------------------------------------------------------


def _draw(n: int, strength: float, seed: int) -> tuple[Any, Any]:
    """Logits of an over-confident model whose signal gets weaker with ``strength``, and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 5, n)
    evidence = rng.standard_normal((n, 5))
    evidence[np.arange(n), labels] += 2.5 * strength
    return 3 * evidence, labels


CLEAN, LABELS = _draw(400, 1.2, seed=1)
TARGET, TRUTH = _draw(300, 0.7, seed=2)
_RNG = np.random.default_rng(3)
SOURCE_FEATURES, CLEAN_FEATURES, TARGET_FEATURES = (
    _RNG.standard_normal((n, 3)) + shift for n, shift in ((300, 0), (400, 0), (300, 0.5))
)
GROUPS = np.array(["left", "right", "few"])[np.minimum(np.arange(300) % 13 // 6, 2)]


def bank() -> shiftcal.SurrogateBank:
    """A ladder of four sets."""
    ladder = [CLEAN, *(_draw(400, strength, seed=1)[0] for strength in (1.0, 0.8, 0.5))]
    return shiftcal.SurrogateBank.from_arrays(
        ladder, LABELS, features=CLEAN_FEATURES, corruption="fade"
    )


# Methods with settings beside the default ones.
METHODS: dict[str, Callable[[], Any]] = {
    **{name: methods.get(name) for name in methods.names()},
    "sac/ks": lambda: shiftcal.SAC(distance="ks"),
    "sac/wasserstein": lambda: shiftcal.SAC(distance="wasserstein"),
    "sac/atc": lambda: shiftcal.SAC(distance="atc"),
    "sac/atc-entropy": lambda: shiftcal.SAC(distance="atc-entropy"),
    "sac/peek": lambda: shiftcal.SAC(peek=40, seed=3),
    "sac/histogram": lambda: shiftcal.SAC(map=maps.get("histogram")(n_bins=7)),
    "sts/isotonic": lambda: shiftcal.STS(map="isotonic"),
    "transcal/free": lambda: shiftcal.TransCal(reading="free"),
}


def _probs(logits: Any) -> Any:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def _fitted_method(name: str) -> tuple[Any, Any]:
    method = METHODS[name]()
    source = SOURCE_FEATURES if method.uses_features else None
    method.fit(bank(), source_features=source)
    more: dict[str, Any] = {}
    if method.uses_mixed:  # as score_mixed gives them
        mixed = 0.65 * TARGET + 0.35 * np.roll(TARGET, 1, axis=0)
        more["mixed"] = shiftcal.Scores(mixed, "logits", labels=TARGET.argmax(axis=1))
    features = TARGET_FEATURES if method.uses_features else None
    return method, method.adapt(TARGET, features, **more)


def _of_maps(folder: Path) -> Iterator[tuple[str, Any]]:
    for name in maps.names():
        for kind, scores in (("logits", (CLEAN, TARGET)), ("probabilities", _pair())):
            fitted = maps.get(name)(input=kind).fit(scores[0], LABELS)
            made = fitted.predict_proba(scores[1])
            _check_round_trip(
                fitted, folder, lambda again, s=scores: again.predict_proba(s[1]), made
            )
            yield f"maps/{name}/{kind}", made[::7]


def _pair() -> tuple[Any, Any]:
    return _probs(CLEAN), _probs(TARGET)


def _of_methods(folder: Path) -> Iterator[tuple[str, Any]]:
    for name in METHODS:
        method, selection = _fitted_method(name)
        made = method.predict_proba(TARGET)
        _check_round_trip(method, folder, lambda again: again.predict_proba(TARGET), made)
        yield f"methods/{name}/probs", made[::7]
        yield from _numbers(f"methods/{name}/selection", selection.to_dict())


def _of_metrics() -> Iterator[tuple[str, Any]]:
    probs = _probs(TARGET)
    top1 = (probs.max(axis=1), probs.argmax(axis=1) == TRUTH)
    tied = (np.round(top1[0], 1), top1[1])
    for name in metrics.names():
        metric = metrics.get(name)
        first = next(iter(inspect.signature(metric).parameters))
        whole = first == "probs"
        given = {"": (probs, TRUTH)} if whole else {"": top1, "/tied": tied}
        options: list[dict[str, Any]] = [{}]
        if "n_bins" in inspect.signature(metric).parameters:
            options += [{"n_bins": 7, "binning": "width"}]
        for case, arrays in given.items():
            for j, option in enumerate(options):
                yield f"metrics/{name}{case}/{j}", metric(*arrays, **option)
        interval = metrics.bootstrap(metric, *next(iter(given.values())), n_resamples=60)
        yield f"metrics/{name}/interval", [interval.low, interval.high]
    table = metrics.bin_table(*tied, n_bins=6)
    for field in ("lower", "upper", "count", "confidence", "accuracy", "gap"):
        yield f"metrics/bin-table/{field}", getattr(table, field)


def _of_estimates(folder: Path) -> Iterator[tuple[str, Any]]:
    for name in estimates.names():
        fitted = estimates.get(name)().fit(bank())
        found = fitted.estimate(TARGET).to_dict()
        _check_round_trip(fitted, folder, lambda again: again.estimate(TARGET).to_dict(), found)
        yield from _numbers(f"estimates/{name}", found)


def _of_the_rest(folder: Path) -> Iterator[tuple[str, Any]]:
    weights = shiftcal.ImportanceWeights().fit(SOURCE_FEATURES, TARGET_FEATURES)
    yield "weights", weights.weights(CLEAN_FEATURES)[::7]

    grouped = grouping.GroupedCalibration(shiftcal.SAC().fit(bank()))
    yield from _numbers("groups/selection", grouped.adapt(TARGET, GROUPS).to_dict())
    made = grouped.predict_proba(TARGET, GROUPS)
    _check_round_trip(grouped, folder, lambda again: again.predict_proba(TARGET, GROUPS), made)
    yield "groups/probs", made[::7]

    window = monitoring.Sliding(rows=120, blocks=4)
    monitor = shiftcal.Monitor("sac", estimator="surrogate-curve", window=window).fit(bank())
    updates = [monitor.feed(rows) for rows in np.split(np.concatenate([CLEAN, TARGET]), 7)]
    for j, update in enumerate(updates):
        yield from _numbers(f"monitor/{j}", _update(update))
    state = json.loads(json.dumps(monitor.state_dict()))
    monitor.save(folder / "monitor.json")
    again = shiftcal.load(folder / "monitor.json")
    again.load_state_dict(state)
    one, two = (json.dumps(_update(m.feed(TARGET[:50]))) for m in (monitor, again))
    assert one == two, "a saved monitor goes on otherwise"

    parts = [scoring.ScoreStatistics.of_rows(TARGET[i::3], TRUTH[i::3]) for i in range(3)]
    merged = scoring.ScoreStatistics.merged(parts)
    for j, s in enumerate((merged, scoring.ScoreStatistics.of_rows(TARGET, TRUTH))):
        yield f"statistics/{j}", [s.n, s.accuracy(), s.ece(), s.nll(), s.brier(), s.temperature]
    merged.write(folder / "statistics.json")
    assert scoring.ScoreStatistics.read(folder / "statistics.json").ece() == merged.ece()

    built = bank()
    built.save(folder / "bank")
    loaded = shiftcal.SurrogateBank.load(folder / "bank")
    assert all(np.array_equal(a.logits, b.logits) for a, b in zip(built, loaded, strict=True))
    yield "bank/summaries", [[s.n, s.mean_confidence, s.accuracy] for s in loaded.summaries()]
    for suffix in (".npz", ".csv", ".parquet"):
        file = folder / f"scores{suffix}"
        shiftcal.write_scores(file, shiftcal.Scores(TARGET, "logits", labels=TRUTH))
        back = shiftcal.read_scores(file)
        assert np.array_equal(back.values, TARGET), suffix
        assert np.array_equal(back.labels, TRUTH), suffix


def _update(update: Any) -> dict[str, Any]:
    """What a monitor made of a batch, as JSON can hold it."""
    return {
        "confidence": update.confidence[::9].tolist(),
        "rows": update.rows,
        "state": update.state,
        "statistic": update.statistic,
        "outside": update.outside,
        "temperature": update.temperature,
        "events": [event.to_dict() for event in update.events],
        "selection": update.selection and update.selection.to_dict(),
        "estimate": update.estimate and update.estimate.to_dict(),
    }


def _numbers(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Every number inside a document, by where it stands."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(f"{place}/{key}", inner)
    elif isinstance(value, list | tuple) and any(isinstance(x, dict | str) for x in value):
        for j, inner in enumerate(value):
            yield from _numbers(f"{place}/{j}", inner)
    elif isinstance(value, str):
        yield f"{place}={value[:40] if ' ' not in value else '...'}", 1.0
    elif value is not None:
        yield place, value


def _check_round_trip(fitted: Any, folder: Path, use: Callable[[Any], Any], wanted: Any) -> None:
    """Saved and loaded, it gives the same bits."""
    fitted.save(folder / "saved.json")
    found = use(shiftcal.load(folder / "saved.json"))
    same = found == wanted if isinstance(wanted, dict) else np.array_equal(found, wanted)
    assert same, f"{type(fitted).__name__} is another after save and load"


def numbers(folder: Path) -> dict[str, Any]:
    """What maps, methods, metrics, estimates, groups, weights, monitor and statistics give."""
    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in (_of_maps, _of_methods, _of_estimates, _of_the_rest):
            found |= {key: np.asarray(value, float) for key, value in part(folder)}
        found |= {key: np.asarray(value, float) for key, value in _of_metrics()}
    return found


def rounding() -> str:
    """How this machine rounds: another processor may have other last bits, and so other steps."""
    rows, column = np.exp(CLEAN), np.exp(CLEAN[:, 0])
    sums = (rows.T @ rows, column @ rows, rows @ rows[0], column @ column, np.log(rows).sum())
    return hashlib.sha256(b"".join(np.asarray(one).tobytes() for one in sums)).hexdigest()


def inputs() -> dict[str, str]:
    """Digests of the corruptions of rows and texts, and of the files of golden pixels."""
    import pandas as pd

    from shiftcal import corruptions

    rows = pd.DataFrame(np.random.default_rng(5).standard_normal((40, 4)), columns=list("abcd"))
    rows["kind"] = ["red", "green", "blue", "red"] * 10
    texts = [f"The {i} quick brown foxes jump over {i * 7} lazy dogs." for i in range(20)]
    found = {}
    for group, data in ((corruptions.tabular, rows), (corruptions.text, texts)):
        for name in group.names():
            for severity in (1, 3, 5):
                made_by = group.get(name)()
                if group is corruptions.tabular:
                    made_by.fit(rows)
                made = corruptions.corrupt_inputs(data, made_by, severity=severity)
                text = repr(np.asarray(made, object).tolist())
                found[f"{name}/{severity}"] = hashlib.sha256(text.encode()).hexdigest()
    for file in sorted(GOLDEN.iterdir()):
        found[f"golden/{file.name}"] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


# --- the command line ------------------------------------------------------------------------


def run(line: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of ``python -m shiftcal`` in this process."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            mock.patch.object(sys, "argv", ["shiftcal", *line.split()]),
        ):
            runpy.run_module("shiftcal", run_name="__main__")
    except SystemExit as end:
        return int(end.code or 0), out.getvalue(), err.getvalue()
    raise AssertionError("the program did not exit")


def commands() -> dict[str, Any]:
    """Every command with its usage and options, as its help prints them."""
    found = {}
    ahead = [""]
    while ahead:
        name = ahead.pop()
        status, text, _ = run(f"{name} --help")
        assert status == 0, name
        usage, panels = text.splitlines()[0], text.partition("\nOptions:\n")[0]
        if "COMMAND" in usage:
            inner = re.findall(r"^  ([a-z]+)  ", panels, re.MULTILINE)
            ahead += [f"{name} {word}".strip() for word in inner]
        options = re.findall(r"^  (-[-\w]+(?:, -[-\w]+)*)", text, re.MULTILINE)
        found[name or "shiftcal"] = {"usage": usage, "options": options}
    return found


# Run in this order in one folder, with --json.
LINES = [
    "list",
    "doctor",
    "data list",
    "corrupt images.npy corrupted --corruption contrast --severity 2",
    "bank --model colours.onnx --images images.npy --labels truth.npy --severity 1-2 "
    "--batch-size 20 --classes a,b,c -o made",
    "score --bank made --images images.npy -o scored.npz",
    "score --model colours.onnx --images images.npy --shard-size 20 --shard 1/2 -o 1.npz",
    "score --model colours.onnx --images images.npy --shard-size 20 --shard 2/2 -o 2.npz",
    "merge 1.npz 2.npz -o merged.npz",
    "fit --method ts --bank bank -o ts.json",
    "fit --method sac --bank bank -o sac.json",
    "fit bank --method cpcs --source-train train.npz -o cpcs.json",
    "apply sac.json target.npz -o out.npz",
    "apply sac.json target.npz -o out.csv --save-adapted adapted.json",
    "apply sac.json target.npz -o grouped.npz --groups groups.txt",
    "apply cpcs.json target.npz -o out.npz",
    "evaluate out.npz",
    "evaluate out.npz --max-ece 0.0001",
    "evaluate plain.npz --labels labels.csv --resamples 0",
    "compare bank target.npz --resamples 20",
    "compare bank plain.npz --method sac --method ts",
    "estimate bank target.npz",
    "report bank target.npz -o report.html --resamples 20",
    "monitor bank --follow feed --once --settle 0 --window 200",
    "gallery picture.png -o gallery.png --corruption contrast",
    "export ts.json --onnx net.onnx -o calibrated.onnx",
    "reproduce --list",
]


def _make_files() -> None:
    """The files that the lines name, in the current folder."""
    bank().save("bank")
    labels = np.arange(60) % 3
    images = np.random.default_rng(7).integers(0, 120, (60, 16, 16, 3)).astype(np.uint8)
    images[np.arange(60), ..., labels] += 100
    np.save("images.npy", images)
    np.save("truth.npy", labels)
    np.savez("target.npz", logits=TARGET, labels=TRUTH, features=TARGET_FEATURES)
    np.savez("plain.npz", logits=TARGET)
    np.savez("train.npz", logits=TARGET, features=SOURCE_FEATURES)
    Path("labels.csv").write_text("label\n" + "\n".join(map(str, TRUTH)) + "\n", "utf-8")
    Path("groups.txt").write_text("\n".join(GROUPS) + "\n", "utf-8")
    Path("feed").mkdir()
    np.savez("feed/1.npz", logits=TARGET)

    from PIL import Image

    Image.fromarray(images[0]).save("picture.png")
    _write_onnx("net.onnx", ["n", 5], [("Identity", {})])
    _write_onnx("colours.onnx", ["n", 3, 16, 16], [
        ("ReduceMean", {"axes": [2, 3], "keepdims": 0}), ("Add", {}), ("Add", {}), ("Add", {}),
    ])  # fmt: skip


def _write_onnx(file: str, shape: list[Any], steps: list[tuple[str, dict[str, Any]]]) -> None:
    """A network of one step after the other; what takes two inputs is given the last one twice."""
    from onnx import TensorProto, helper, save

    nodes = [
        helper.make_node(kind, [f"x{j}"] * (2 if kind == "Add" else 1), [f"x{j + 1}"], **settings)
        for j, (kind, settings) in enumerate(steps)
    ]
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, sides)]
        for name, sides in (("x0", shape), (f"x{len(steps)}", shape[:2]))
    ]
    graph = helper.make_graph(nodes, "net", *ends)
    opset = [helper.make_opsetid("", 17)]
    save(helper.make_model(graph, opset_imports=opset, ir_version=8), file)


def invocations(folder: Path) -> dict[str, Any]:
    """Exit status of every line, and the keys of what it prints with ``--json``."""
    found: dict[str, Any] = {}
    before = Path.cwd()
    os.chdir(folder)
    try:
        _make_files()
        for line in LINES:
            status, out, err = run(f"{line} --json")
            assert status in (0, 1), (line, err)
            documents = [json.loads(text) for text in _documents(out)]
            keys = sorted({key for document in documents for key in _keys(document)})
            found[line] = {"status": status, "keys": keys}
    finally:
        os.chdir(before)
    return found


def _documents(text: str) -> Iterator[str]:
    """One document, or one on each line."""
    try:
        json.loads(text)
        yield text
    except ValueError:
        yield from text.splitlines()


def _keys(document: Any, place: str = "") -> Iterator[str]:
    if isinstance(document, dict):
        for key, value in document.items():
            yield f"{place}{key}"
            if key != "environment":  # of doctor, whose variables are the machine's
                yield from _keys(value, f"{place}{key}.")
    elif isinstance(document, list):
        for value in document:
            yield from _keys(value, f"{place[:-1]}[].")


@functools.cache
def recorded() -> tuple[dict[str, Any], dict[str, Any]]:
    """What was written down: documents and numbers."""
    documents = json.loads((HERE / "promises.json").read_text("utf-8"))
    with np.load(HERE / "numbers.npz", allow_pickle=False) as arrays:
        return documents, {**arrays, **documents.pop("single numbers")}


def record(documents: dict[str, Any], values: dict[str, Any]) -> None:
    """Write down documents and numbers, for :func:`recorded`."""
    arrays = {key: value for key, value in values.items() if np.ndim(value)}
    single = {key: float(value) for key, value in values.items() if not np.ndim(value)}
    text = json.dumps({**documents, "single numbers": single}, indent=1, sort_keys=True)
    (HERE / "promises.json").write_text(text + "\n", "utf-8")
    np.savez_compressed(HERE / "numbers.npz", **arrays)

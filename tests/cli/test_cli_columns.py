"""Tables of other programs: columns with any names, one column for two classes, percent."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, softmax

import shiftcal as sc
from shiftcal.errors import FileError

N = 120
KINDS = np.array(["cat", "dog", "elk"])


def draw(seed, k, strength):
    """Logits of a model, rounded to six digits, and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, N)
    z = rng.standard_normal((N, k)) + strength * np.eye(k)[labels]
    return np.round(2 * z, 6), labels


def binary(seed, strength):
    z, labels = draw(seed, 2, strength)
    return z[:, 1] - z[:, 0], labels


def fraud(seed, strength, *, unit=1, sign="", labels=("genuine", "fraud")):
    """Columns of a binary classifier, and the same set as ours."""
    odds, y = binary(seed, strength)
    p = np.round(expit(odds), 6)
    cells = [f"{unit * x:.4f}{sign}" if unit > 1 else f"{x:.6f}" for x in p]
    table = {"score": cells, "txn": np.arange(N), "outcome": np.array(labels)[y]}
    named = labels if isinstance(labels[0], str) and labels[0] != "False" else None
    ours = sc.Scores(np.column_stack([1 - p, p]), "probabilities", labels=y, classes=named)
    return table, ours


def log_odds(seed, strength):
    odds, y = binary(seed, strength)
    ours = sc.Scores(np.column_stack([0 * odds, odds]), "logits", labels=y)
    return {"z": odds, "outcome": y}, ours


def animals(seed, strength, *, column="p_{}", unit=1, sign=""):
    """A column per class, in another order than the alphabet's."""
    z, y = draw(seed, 3, strength)
    p, order = np.round(softmax(z, axis=1), 6), [2, 0, 1]
    table = {
        column.format(KINDS[i]): p[:, i]
        if unit == 1
        else [f"{unit * x:.4f}{sign}" for x in p[:, i]]
        for i in order
    }
    classes = tuple(KINDS[order])
    truth = np.argsort(order)[y]
    ours = sc.Scores(p[:, order], "probabilities", labels=truth, classes=classes, normalize=True)
    return {"file": [f"{i}.png" for i in range(N)], "truth": KINDS[y], **table}, ours


def written(path, table):
    rows = zip(*([str(cell) for cell in column] for column in table.values()), strict=True)
    Path(path).write_text("\n".join(map(",".join, [table, *rows])) + "\n", "utf-8")


ONE = "--probability-column score --label-column outcome"
FRAUD = f"{ONE} --positive-class fraud"
TABLES = {
    "one column, names": (fraud, {}, f"{FRAUD} --id-column txn"),
    "one column, 0 and 1": (fraud, {"labels": ("0", "1")}, f"{ONE} --positive-class 1"),
    "one column, booleans": (fraud, {"labels": ("False", "True")}, ONE),
    "percent with its sign": (fraud, {"unit": 100, "sign": "%"}, FRAUD),
    "percent": (fraud, {"unit": 100}, f"{FRAUD} --normalize"),
    "log-odds": (log_odds, {}, "--logit-columns z --label-column outcome"),
    "a pattern": (animals, {}, "--probability-columns p_* --label-column truth"),
    "a pattern's end": (
        animals,
        {"column": "{}_prob"},
        "--probability-columns=*_prob --label-column truth",
    ),
    "names": (
        animals,
        {"column": "{}", "unit": 100, "sign": " %"},
        "--probability-columns elk,cat --probability-column dog --label-column truth",
    ),
    "percent of classes": (
        animals,
        {"unit": 100},
        "--probability-columns p_* --label-column truth --normalize",
    ),
}


def keywords(options):
    """The options as ``read_scores`` takes them."""
    given = {}
    for name, value in re.findall(r"--([a-z-]+)(?:[ =](?!-)(\S+))?", options):
        key = re.sub(r"^(\w+y|logit)_columns?$", r"\1_columns", name.replace("-", "_"))
        if key.endswith("columns"):
            given[key] = [*given.get(key, []), *value.split(",")]
        else:
            given[key] = value or True
    return given


@pytest.mark.parametrize("case", TABLES)
def test_a_table_of_others_is_read_as_ours_is(tmp_path, monkeypatch, shiftcal_json, case):
    monkeypatch.chdir(tmp_path)
    make, settings, options = TABLES[case]
    for name, seed, strength in (("clean", 1, 2.0), ("target", 2, 1.0)):
        table, ours = make(seed, strength, **settings)
        written(f"{name}.csv", table)
        sc.write_scores(f"{name}.npz", ours)
        if name == "target":  # without labels too
            rest = {k: c for k, c in table.items() if k not in ("outcome", "truth")}
            written("unlabelled.csv", rest)
    read = sc.read_scores("target.csv", **keywords(options))
    assert (read.input, read.classes) == (ours.input, ours.classes)
    np.testing.assert_allclose(read.values, ours.values, atol=2e-6)
    np.testing.assert_array_equal(read.labels, ours.labels)
    if "--id-column" in options:
        assert read.ids.tolist() == [str(i) for i in range(N)]
    for command, more in (("evaluate", ""), ("compare clean.{}", "--method ts --method sac")):
        line = f"{command} target.{{}} --resamples 0 {more}"
        theirs = shiftcal_json(line.format("csv", "csv"), options)
        of_ours = shiftcal_json(line.format("npz", "npz"))
        assert numbers(theirs) == pytest.approx(numbers(of_ours), abs=1e-4)
    found = shiftcal_json(f"compare clean.csv unlabelled.csv --method ts {options}")
    assert not found["labelled"]


def numbers(document):
    """Values of all metrics, in order."""
    methods = document.get("methods", [document])
    return [one["metrics"][name]["value"] for one in methods for name in ("accuracy", "ece", "nll")]


def test_a_parquet_table_and_every_other_command_take_the_options(
    tmp_path, monkeypatch, shiftcal, shiftcal_json
):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    for name, seed in (("clean", 1), ("target", 2)):
        table, ours = fraud(seed, 1.5)
        table["score"] = list(map(float, table["score"]))
        parquet.write_table(arrow.table(table), f"{name}.parquet")
        read = sc.read_scores(f"{name}.parquet", **keywords(FRAUD))
        np.testing.assert_array_equal(read.values, ours.values)
        assert (read.classes, read.labels.tolist()) == (ours.classes, ours.labels.tolist())
    both = f"clean.parquet target.parquet {FRAUD}"
    assert shiftcal_json(f"estimate {both} --estimator doc")["accuracy"] is not None
    assert shiftcal(f"report {both} --method ts --resamples 0 -o r.html").status == 0
    assert "--positive-class=fraud" in Path("r.html").read_text("utf-8")
    assert shiftcal(f"fit clean.parquet --method ts -o ts.json {FRAUD}").status == 0
    names = ["genuine", "fraud"]
    Path("later.txt").write_text("\n".join(names[y] for y in ours.labels), "utf-8")
    later = "--labels later.txt --method ts --resamples 0"
    bare = arrow.table({"score": table["score"]})
    parquet.write_table(bare, "bare.parquet")
    document = shiftcal_json(f"compare clean.parquet bare.parquet {FRAUD} {later}")
    assert numbers(document) == numbers(shiftcal_json(f"compare {both} {later}"))
    assert shiftcal(f"apply ts.json target.parquet -o out.csv {FRAUD}").status == 0
    assert Path("out.csv").read_text("utf-8").splitlines()[0] == (
        '"label","predicted","confidence","probability_genuine","probability_fraud"'
    )


BASE = "p_cat,p_dog,score,truth,note\n0.25,0.75,0.5,a,x\n0.5,0.5,0.25,b,y\n0.5,0.5,0.75,b,z\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--probability-columns p_cat,p_dgo", "no column 'p_dgo'. Did you mean 'p_dog'"),
        ("--probability-columns p_* --id-column nota", "no column 'nota'. Did you mean 'note'"),
        ("--probability-columns p_* --label-column trut", "no column 'trut'. Did you mean 'truth'"),
        ("--probability-columns p_cat,p_cat", "'p_cat' is named twice"),
        ("--probability-columns p_* --label-column note --id-column note", "'note' is named twice"),
        ("--probability-columns q_*", "'q_.*' must match two columns or more.*nothing of 'p_cat'"),
        ("--probability-columns p_c*", "must match two columns or more.*it matches 'p_cat'"),
        ("--probability-columns p_* --logit-columns p_*", "probabilities or logits, not both"),
        ("--probability-columns p_* --positive-class a", "goes with one column"),
        ("--probability-column score --label-column truth", "0 and 1; got 'a'.*--positive-class"),
        ("--probability-column score --label-column note --positive-class x1", "'x1' and one othe"),
        ("--probability-column score --normalize", "no number of it is above 1"),
        ("--probability-column percent", "in \\[0, 1\\]; these go from 10 to 90.*--normalize"),
        ("--probability-column note", "line 2: .* must be numbers"),
        ("--label-column truth", "Name others with --probability-columns"),
    ],
)
def test_columns_that_cannot_be_used_raise(tmp_path, monkeypatch, refused, options, words):
    monkeypatch.chdir(tmp_path)
    lines = zip(BASE.splitlines(), ("percent", 10, 90, 50), strict=True)
    Path("x.csv").write_text("".join(f"{line},{cell}\n" for line, cell in lines), "utf-8")
    assert re.search(f"x.csv.*{words}", refused("evaluate x.csv", options))
    with pytest.raises(FileError, match=words):
        sc.read_scores("x.csv", **keywords(options))


@pytest.mark.parametrize("name", ["x.npz", "x.npy"])
def test_files_without_columns_take_no_names_of_columns(tmp_path, monkeypatch, refused, name):
    monkeypatch.chdir(tmp_path)
    if name == "x.npy":
        np.save(name, np.eye(3))
    else:
        np.savez(name, logits=np.eye(3))
    assert "has no columns to name" in refused(f"evaluate {name} --label-column truth")


def test_a_column_of_the_first_class_of_a_bank_is_noticed(tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    table, _ = fraud(2, 1.0)
    written("x.csv", {"score": table["score"]})
    _, ours = fraud(1, 1.0, labels=("fraud", "genuine"))
    sc.write_scores("bank.npz", ours)
    line = "compare bank.npz x.csv --probability-column score --positive-class fraud"
    assert "column 1 is 'fraud' here and 'genuine' there" in refused(line)


@pytest.mark.parametrize("sets", ["--bank bank", "--surrogate clean.npz", "clean.npz"])
def test_columns_of_a_bank_are_not_ignored(tmp_path, monkeypatch, shiftcal, sets):
    monkeypatch.chdir(tmp_path)
    ours = fraud(1, 2.0)[1]
    sc.write_scores("clean.npz", ours)
    sc.SurrogateBank.from_files(["clean.npz"]).save("bank")
    done = shiftcal("fit --method ts -o ts.json --label-column outcome", sets)
    assert (done.status, "Leave out the column options" in done.err) == (2, True)
    assert not Path("ts.json").exists()

"""``shiftcal apply --groups``, and the interval of a temperature."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from ladder_data import STEPS, draw

from shiftcal import load, read_scores
from shiftcal.grouping import GroupedCalibration

SITES = ["north"] * 300 + ["south"] * 150 + ["west"] * 10


@pytest.fixture
def mixed(fitted):
    """``mixed.npz``, a target of three sites without ids, beside a fitted ``sac.json``."""
    sizes = ((300, STEPS[0], 1), (150, STEPS[4], 2), (10, STEPS[2], 3))
    np.savez("mixed.npz", logits=np.concatenate([draw(n, s, seed=i)[0] for n, s, i in sizes]))
    fitted.with_name("sites.txt").write_text("\n".join(SITES) + "\n", "utf-8")
    return fitted


def expected(method="sac.json", target="mixed.npz", groups=SITES):
    grouped = GroupedCalibration(load(method))
    values = read_scores(target).values
    return grouped.adapt(values, groups), grouped.predict_proba(values, groups)


def write_groups(name):
    table = pd.DataFrame({"group": SITES, "camera": [f"{s}-1" for s in SITES]})
    match name.partition(":")[0]:
        case "sites.npy":
            np.save("sites.npy", np.array(SITES))
        case "sites.npz":
            np.savez("sites.npz", groups=np.array(SITES), camera=np.array(table["camera"], str))
        case "sites.csv":
            table.to_csv("sites.csv", index=False)
        case "sites.parquet":
            table.to_parquet("sites.parquet")
        case "one.csv":
            table[["group"]].rename(columns={"group": "place"}).to_csv("one.csv", index=False)


@pytest.mark.parametrize(
    "name",
    [
        "sites.txt",
        "sites.npy",
        "sites.npz",
        "sites.csv",
        "sites.parquet",
        "one.csv",
        "sites.csv:camera",
        "sites.parquet:camera",
        "sites.npz:camera",
    ],
)
def test_it_writes_what_the_python_interface_predicts(mixed, shiftcal, name):
    write_groups(name)
    done = shiftcal(f"apply sac.json mixed.npz --groups {name} -o out.npz")
    assert (done.status, done.err) == (0, "")
    _, probs = expected()
    np.testing.assert_array_equal(read_scores("out.npz").values, probs)


def test_groups_may_be_a_column_of_the_target_itself(mixed, shiftcal):
    logits = read_scores("mixed.npz").values
    table = pd.DataFrame(logits, columns=[f"logit_{i}" for i in range(6)])
    table["site"] = SITES
    table.to_csv("mixed.csv", index=False)
    done = shiftcal("apply sac.json mixed.csv --groups mixed.csv:site -o out.npz")
    assert (done.status, done.err) == (0, "")
    np.testing.assert_allclose(read_scores("out.npz").values, expected()[1], atol=1e-12)


def test_the_text_shows_every_group(mixed, shiftcal):
    chosen, probs = expected()
    out = shiftcal("apply sac.json mixed.npz --groups sites.txt -o out.npz").out
    lines = out.splitlines()
    assert lines[0].split() == ["group", "rows", "own", "T", "weight", "T", "own", "set", "flags"]
    for line, (name, choice) in zip(lines[1:4], chosen.groups.items(), strict=True):
        cells = line.split()
        assert cells[:2] == [name, str(choice.rows)]
        assert cells[2:5] == [
            f"{choice.own.temperature:.3f}",
            f"{choice.weight:.2f}",
            f"{choice.temperature:.3f}",
        ]
    assert f"all rows         {chosen.everything}" in out
    assert f"mean confidence  {probs.max(axis=1).mean():.4f} (before: " in out
    assert out.endswith("460 rows written to out.npz\n")


def test_the_json_document(mixed, shiftcal_json):
    document = shiftcal_json("apply sac.json mixed.npz --groups sites.txt -o out.npz")
    chosen, _ = expected()
    assert document["selection"]["index"] == chosen.everything.index
    assert set(document["groups"]) == {
        "groups",
        "within",
        "between",
        "shrunk",
        "flags",
        "borrowed",
        "outside",
    }
    for name, choice in chosen.groups.items():
        found = document["groups"]["groups"][name]
        assert found["weight"] == choice.weight
        assert found["temperature"] == choice.temperature
        assert found["own"]["set_name"] == choice.own.set_name


def test_rows_are_joined_by_ids_where_both_files_have_them(mixed, shiftcal):
    logits = read_scores("mixed.npz").values
    ids = np.array([f"img {i}" for i in range(len(SITES))])
    np.savez("named.npz", logits=logits, ids=ids)
    table = pd.DataFrame({"id": ids, "site": SITES}).sample(frac=1, random_state=1)
    for name, write in (("s.csv", table.to_csv), ("s.parquet", table.to_parquet)):
        write(name, index=False)
        done = shiftcal(f"apply sac.json named.npz --groups {name} -o out.npz")
        assert (done.status, done.err) == (0, "")
        np.testing.assert_array_equal(read_scores("out.npz").values, expected()[1])

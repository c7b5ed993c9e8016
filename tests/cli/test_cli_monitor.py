"""``shiftcal monitor`` on whole streams."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import sys
import threading

import numpy as np
import pyarrow as pa
import pytest
from ladder_data import STEPS, draw
from monitor_streams import arrow, columns, headed, items, jsonl, npy

import shiftcal as sc
from shiftcal.cli.stream import BadBatch, RowBatch, new_files
from shiftcal.monitoring import Monitor

CLEAN = draw(600, STEPS[0], seed=1)[0]
SHIFTED = draw(600, STEPS[3], seed=2)[0]
BEYOND = CLEAN * 0.05  # less sure than any set of the bank
STREAM = np.concatenate([CLEAN, SHIFTED, BEYOND])


def batches(rows=150, z=STREAM):
    return [z[i : i + rows] for i in range(0, len(z), rows)]


@pytest.fixture
def monitor(watched, shiftcal, monkeypatch):
    """``monitor("sac.json --json", stdin=b"...")``: status, out and err."""

    def call(*words, stdin=None):
        content = npy(*batches()) if stdin is None else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return shiftcal("monitor", *words)

    return call


@pytest.fixture
def lines(monitor):
    """The lines of ``--json``, after checking the status."""

    def call(*words, status=0, **options):
        done = monitor(*words, "--json", **options)
        assert done.status == status, done.err
        return [json.loads(line, parse_constant=pytest.fail) for line in done.out.splitlines()]

    return call


def of(kind, found):
    return [line for line in found if line["type"] == kind]


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_numbers_equal_those_of_the_python_interface(watched, lines):
    found = lines("rehearsal.json --every 300 --confidences c.jsonl")
    told = sc.load("rehearsal.json")
    updates = [told.feed(z) for z in batches(300)]
    windows = of("window", found)
    assert [line["row"] for line in windows] == [300, 600, 900, 1200, 1500, 1800]
    for line, update in zip(windows, updates, strict=True):
        assert line["state"] == update.state
        assert line["temperature"] == update.temperature
        assert line["statistic"] == update.statistic
        assert line["mean_confidence"] == pytest.approx(update.confidence.mean(), abs=2**-32)
        assert line["raw_mean_confidence"] == update.selection.mean_confidence
        assert line["accuracy"] == {
            name: getattr(update.estimate, name) for name in ("value", "low", "high", "level")
        }
    events = [event.to_dict() for update in updates for event in update.events]
    assert [{"type": "event", **event} for event in events] == of("event", found)
    assert {"shift-began", "outside-bank"} <= {event["kind"] for event in events}
    rows = read(watched / "c.jsonl")
    assert [row["row"] for row in rows] == list(range(len(STREAM)))
    assert [row["confidence"] for row in rows] == np.concatenate(
        [update.confidence for update in updates]
    ).tolist()
    assert [row["predicted"] for row in rows] == STREAM.argmax(axis=1).tolist()


def test_the_first_and_the_last_line_say_what_was_done(lines):
    first, *_, last = lines("sac.json")
    assert first == {
        "type": "start",
        "shiftcal": sc.__version__,
        "command": "monitor",
        "method": "sac",
        "every": 200,
        "row": 0,
        "state": "filling",
        "state_file": None,
    }
    events = last.pop("events")
    assert events["shift-began"] >= 1
    assert last == {
        "type": "end",
        "by": "input",
        "rows": 1800,
        "batches": 12,
        "malformed": 0,
        "row": 1800,
        "state": "outside-bank",
        "followed": False,
    }


@pytest.mark.parametrize("spec", ["sac.json", "rehearsal.json"])
def test_neither_the_format_nor_the_size_of_batches_changes_a_line(lines, watched, spec):
    expected = None
    for stdin in (
        npy(*batches()),
        npy(STREAM),
        npy(*batches(37)),
        jsonl(*[z.tolist() for z in batches(64)]),
        jsonl(*[z[0].tolist() for z in batches(1)[:150]], STREAM[150:].tolist()),
        arrow(*[columns(z) for z in batches(100)]),
    ):
        found = lines(spec, "--confidences c.jsonl", stdin=stdin)
        told = found[:-1], (watched / "c.jsonl").read_bytes()
        (watched / "c.jsonl").unlink()
        expected = expected or told
        assert told == expected


def test_the_clock_and_the_ids_of_the_sender_come_out_again(watched, lines):
    z = batches(100)
    sent = [
        {"logits": rows.tolist(), "at": 10.5 * i, "id": [f"{i}-{j}" for j in range(len(rows))]}
        for i, rows in enumerate(z)
    ]
    found = lines("sac.json --confidences c.jsonl", stdin=jsonl(*sent))
    for line in of("window", found) + of("event", found):
        assert line["at"] == 10.5 * ((line["row"] - 1) // 100)
    assert [row["id"] for row in read(watched / "c.jsonl")[98:102]] == [
        "0-98",
        "0-99",
        "1-0",
        "1-1",
    ]


def test_confidences_may_stand_among_the_lines(lines, watched):
    to_file = lines("sac.json --confidences c.jsonl")
    mixed = lines("sac.json --confidences -")
    assert of("confidence", mixed) == read(watched / "c.jsonl")
    assert [line for line in mixed if line["type"] != "confidence"] == to_file


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".csv", ".parquet"])
def test_a_folder_of_scores_files_is_a_stream(lines, watched, suffix):
    (watched / "in").mkdir()
    for i, z in enumerate(batches(300)):
        scores = sc.Scores(values=z)
        path = watched / "in" / f"{i:03}{suffix}"
        if suffix == ".npy":
            np.save(path, z)
            np.save(path.with_name(f"{i:03}_labels.npy"), np.zeros(len(z), int))
        else:
            sc.write_scores(path, scores)
    found = lines("sac.json --follow in --once --settle 0", stdin=b"")
    assert found[:-1] == lines("sac.json")[:-1]
    assert (found[-1]["batches"], found[-1]["followed"]) == (6, True)


def test_a_monitor_is_fitted_on_a_bank_and_kept(lines, monitor, watched):
    words = "bank --method sac --estimator none --window 200 --false-alarms 3 --set distance=mean"
    done = monitor(words, "--save kept.json", stdin=b"")
    assert done.status == 0
    assert done.err == "note: the monitor is saved as kept.json\n"
    kept = sc.load("kept.json")
    assert isinstance(kept, Monitor)
    assert (kept.rows, kept.window.rows, kept.false_alarms) == (0, 200, 3)
    found = lines(words)
    assert found[0]["every"] == 200
    assert found == lines("kept.json")


@pytest.mark.parametrize(("gate", "kind"), [("shift", "shift-began"), ("outside-bank",) * 2])
def test_a_gate_ends_it_with_status_1_after_the_batch(monitor, lines, watched, gate, kind):
    whole = lines("sac.json --confidences whole.jsonl")
    row = next(line["row"] for line in of("event", whole) if line["kind"] == kind)
    words = f"sac.json --fail-on {gate} --state s.json --confidences c.jsonl"
    found = lines(words, status=1)
    assert (found[-1]["by"], found[-1]["row"]) == ("gate", -(-row // 150) * 150)
    assert of("event", found)[-1]["kind"] == kind
    done = monitor(words, "--replay")  # goes on: the state is not entered anew
    assert done.status == 0
    assert (watched / "c.jsonl").read_bytes() == (watched / "whole.jsonl").read_bytes()
    again = monitor(words.replace("s.json", "t.json").replace("c.jsonl", "d.jsonl"))
    assert again.err.startswith(f"gate failed: {kind} at row {row:,}: ")


def test_a_run_that_is_cut_anywhere_goes_on_to_the_same_bits(lines, watched):
    whole = lines("rehearsal.json --every 70 --confidences whole.jsonl")[1:-1]
    told, sent = [], batches(45)
    for cut in range(0, len(sent), 7):
        words = "rehearsal.json --every 70 --state s.json --confidences c.jsonl"
        told += lines(words, stdin=npy(*sent[cut : cut + 7]))[1:-1]
    assert told == whole
    assert (watched / "c.jsonl").read_bytes() == (watched / "whole.jsonl").read_bytes()


def test_replay_passes_over_what_the_state_has_seen(lines, monitor):
    whole = lines("sac.json")
    sent = batches()
    bad = [sent[0][:, :2], *sent]
    skipping = "sac.json --state s.json --on-error skip"
    first = lines(skipping, stdin=npy(*bad[:6]))
    second = lines(skipping, "--replay", stdin=npy(*bad))
    told = [line for line in first[1:-1] + second[1:-1] if line["type"] != "malformed"]
    assert told == whole[1:-1]
    done = monitor(skipping, "--replay", stdin=npy(*bad[:3]))
    assert done.status == 2
    assert "must begin with the 13 batches that the state has seen; it ended after 3" in done.err


@pytest.mark.parametrize("kind", ["nan", "inf", "huge", "classes", "probabilities", "empty"])
@pytest.mark.parametrize("write", [npy, lambda *z: jsonl(*[rows.tolist() for rows in z])])
def test_a_bad_batch_stops_or_is_skipped_as_if_it_had_not_come(
    monitor, lines, watched, kind, write
):
    good = batches()
    bad = good[3].copy()
    bad[-1, 0] = {"nan": np.nan, "inf": -np.inf, "huge": 1e31}.get(kind, 0)
    changed = {
        "classes": bad[:, 1:],
        "probabilities": np.full((20, 6), 1 / 6),
        "empty": bad[:0].reshape(0, 6),
    }
    sent = write(*good[:4], changed.get(kind, bad), *good[4:])
    whole = lines("sac.json --confidences whole.jsonl")
    found = lines("sac.json --on-error skip --confidences c.jsonl", stdin=sent)
    assert [line for line in found if line["type"] != "malformed"][:-1] == whole[:-1]
    assert (watched / "c.jsonl").read_bytes() == (watched / "whole.jsonl").read_bytes()
    assert (found[-1]["malformed"], found[-1]["batches"]) == (1, 12)
    (told,) = of("malformed", found)
    assert told["where"].startswith("batch 5" if write is npy else "line 5")
    done = monitor("sac.json", stdin=sent)
    assert done.status == 2
    assert done.err.startswith(f"error: {told['where']}: ")
    assert done.err.count("\n") == 1
    assert done.out.splitlines()[-1].startswith("end  rows 600  batches 4  malformed 1")
    done = monitor("sac.json --on-error skip", stdin=sent)
    assert (done.status, done.err.count("warning: left out: ")) == (0, 1)
    assert done.out.splitlines()[-1].startswith("end  rows 1,800  batches 12  malformed 1")


def test_a_bad_file_is_left_out_once_and_for_all(lines, monitor, watched):
    (watched / "in").mkdir()
    np.savez("in/a.npz", logits=STREAM[:300])
    (watched / "in" / "b.npz").write_bytes(b"PK\x03\x04 half of it")
    words = "sac.json --follow in --once --settle 0 --state s.json"
    done = monitor(words)
    assert done.status == 2
    assert done.err.startswith("error: in/b.npz could not be read as an .npz archive")
    found = lines(words, "--on-error skip")
    assert [line["where"] for line in of("malformed", found)] == ["in/b.npz"]
    assert found[-1]["rows"] == 0
    np.savez("in/c.npz", logits=STREAM[300:])
    found = lines(words)
    assert (found[-1]["rows"], found[-1]["malformed"]) == (1500, 0)
    assert found[1:-1] == [line for line in lines("sac.json")[1:-1] if line["row"] > 300]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("nowhere.json", "nowhere.json"),
        ("method.json", "method.json holds the method 'ts'. The first argument must be"),
        ("sac.json --method ts --window 100", "--method, --window: only for fitting"),
        ("bank --method pseudocal", "pseudocal"),
        ("bank --estimator rehearse", "no accuracy estimator is called 'rehearse'"),
        ("bank --set nonsense=1", "nonsense"),
        ("bank --save kept.txt", "kept.txt must end in .json"),
        ("bank --save no/kept.json", "there is no folder no"),
        ("bank --window 505", "rows must be a multiple of blocks"),
        ("sac.json --follow nowhere", "nowhere is not a folder"),
        ("sac.json --on-error ignore", "'ignore' is not one of 'stop', 'skip'"),
        ("sac.json --fail-on shifted", "--fail-on must be one of 'outside-bank', 'shift'"),
        ("sac.json --confidences no/c.jsonl", "there is no folder no"),
        ("sac.json --state sac.json", "is read by this command and must not be replaced"),
        ("sac.json --state s --confidences ./s", "must be two files; s and s are one"),
        ("sac.json --state method.json", "is not the state of a monitor"),
        ("sac.json --metrics-port 0 --metrics-host 192.0.2.1", "metrics cannot be served at 192"),
        ("sac.json --every 0", "--every"),
        ("sac.json --waiting 100", "--waiting: only for fitting"),
        ("sac.json --listen 8000", "--listen must be HOST:PORT"),
        ("sac.json --listen 127.0.0.1:99999", "--listen must be HOST:PORT"),
        (
            "sac.json --listen 0.0.0.0:0",
            "is open to others, and needs a token. Set $SHIFTCAL_TOKEN",
        ),
        ("sac.json --listen [::]:0", "needs a token"),
        ("sac.json --listen example.org:0", "needs a token"),
        ("sac.json --listen 127.0.0.1:0 --replay", "takes rows over HTTP only"),
    ],
)
def test_wrong_use_is_reported_in_one_line(monitor, watched, words, reason):
    sc.TS().fit(*draw(100, 1.0, seed=0)).save("method.json")
    before = sorted(watched.rglob("*"))
    done = monitor(words)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert reason in done.err
    assert sorted(watched.rglob("*")) == before


def test_a_token_that_no_header_can_have_is_reported(monitor, monkeypatch):
    monkeypatch.setenv("SHIFTCAL_TOKEN", "schlüssel")
    done = monitor("sac.json --listen 127.0.0.1:0")
    assert done.status == 2
    assert "$SHIFTCAL_TOKEN must be of ASCII characters" in done.err
    assert "schlüssel" not in done.err


def label_lines(rows, *, ids=str):
    return [json.dumps({"id": ids(i), "label": int(label)}) + "\n" for i, label in rows]


def test_late_labels_are_those_of_the_python_interface(lines, watched):
    labels = np.concatenate([draw(600, STEPS[s], seed=i)[1] for i, s in ((1, 0), (2, 3))])
    rows = list(enumerate(labels))
    path = watched / "labels.jsonl"
    words = "rehearsal.json --every 200 --labels-follow labels.jsonl --state s.state"
    sent, told, rest = batches(200, STREAM[:1200]), [], ""
    for i, batch in enumerate([*sent, STREAM[1200:1201]]):
        told += lines(words, stdin=npy(batch))
        # labels come two batches late; once a line is cut
        text = rest + "".join(label_lines(rows[max(0, 200 * i - 400) : max(0, 200 * i - 200)]))
        cut = len(text) - (20 if i == 4 else 0)
        with path.open("a") as file:
            file.write(text[:cut])
        rest = text[cut:]
    told += lines(words, stdin=npy(STREAM[1201:1202]))
    watch = sc.load("rehearsal.json")
    for i, batch in enumerate(sent):
        watch.feed(batch, ids=range(200 * i, 200 * i + 200))
    for i in range(0, 1000, 200):
        watch.add_labels(range(i, i + 200), labels[i : i + 200])
    found = of("labels", told)
    assert [line["labelled"] for line in found] == [200, 400, 800, 1000]  # one was cut
    last, wanted = found[-1], watch.realised.to_dict()
    for name in ("n", "accuracy", "low", "high", "mean_confidence", "ece", "agree", "unknown"):
        assert last[name] == wanted[name]
    assert last["waiting"] == 1202 - 1000
    assert {"accuracy", "estimated", "ece", "delay"} <= last.keys()


def test_a_restart_knows_what_waits_also_of_ids_that_come_twice(lines, watched):
    words = "sac.json --every 1 --labels-follow labels.jsonl --state s.state"
    sent = {"logits": CLEAN[:2].tolist(), "id": ["b", "a"]}
    lines(words, stdin=jsonl(sent, {"logits": CLEAN[2].tolist(), "id": "a"}))
    found = []
    for _ in range(2):  # the second label meets no prediction, not the older one of this id
        with (watched / "labels.jsonl").open("a") as file:
            file.write('{"id": "a", "label": 0}\n')
        found += of("labels", lines(words, stdin=jsonl(CLEAN[3].tolist())))
    assert [(line["labelled"], line["waiting"]) for line in found] == [(1, 2)]


def test_labels_by_name_or_index_and_what_is_wrong_with_them(lines, monitor, watched):
    path = watched / "labels.jsonl"
    words = "sac.json --labels-follow labels.jsonl"
    stdin = jsonl({"logits": CLEAN[:3].tolist(), "id": ["a", 7, "c"]})
    path.write_text('{"id": "a", "label": 1}\n\n{"id": "7", "label": 0}\n{"id": "z", "label": 0}\n')
    assert lines(words, stdin=stdin)[-1]["malformed"] == 0
    for bad in ('{"id": "a"}', '{"id": "a", "label": 6}', '{"id": "a", "label": "ant"}', "{", "[1]",
                '{"id": "a", "label": true}', '{"id": [1], "label": 1}'):  # fmt: skip
        path.write_text(f'{{"id": "a", "label": 1}}\n{bad}\n')
        done = monitor(words, stdin=stdin)
        assert done.status == 2
        assert done.err.startswith("error: labels.jsonl, byte 24: ")
        found = lines(words, "--on-error skip", stdin=stdin)
        assert (found[-1]["malformed"], found[-1]["rows"]) == (1, 3)
    path.write_text('{"id": "late", "label": 1}\n' * 2)
    done = monitor(words, stdin=stdin)
    assert done.err.count("warning: labels.jsonl has labels that match no prediction") == 1
    path.write_text('{"id": "a", "label": 1}')  # a line that still grows
    assert lines(words, stdin=stdin)[-1]["rows"] == 3


def test_a_state_of_another_monitor_or_folder_is_refused(monitor, lines, watched):
    lines("sac.json --state s.json")
    done = monitor("rehearsal.json --state s.json")
    assert done.status == 2
    assert "s.json cannot be resumed: this state is that of another monitor" in done.err
    assert "Keep the monitor with --save and name that file" in done.err
    for name in ("one", "two"):
        (watched / name).mkdir()
    lines("sac.json --follow one --once --state f.json", stdin=b"")
    np.savez("one/a.npz", logits=STREAM)
    lines("sac.json --follow one --once --settle 0 --state f.json", stdin=b"")
    done = monitor("sac.json --follow two --once --state f.json")
    assert "f.json belongs to a monitor of " in done.err


def test_a_row_that_may_be_probabilities_is_told_of_once(monitor):
    done = monitor("sac.json", stdin=jsonl(*[[0.5, 0.5, 0, 0, 0, 0]] * 50))
    assert done.status == 0
    assert done.err.count("these logits look like probabilities") == 1


def test_without_prometheus_the_extra_is_named(monitor, monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    done = monitor("sac.json --metrics-port 0")
    assert done.status == 2
    assert "--metrics-port needs prometheus_client, which is not installed" in done.err
    assert "shiftcal[monitor]" in done.err


Z = np.random.default_rng(3).standard_normal((7, 3))
STREAMS = {
    "npy": npy(Z[:4], Z[4:]),
    "jsonl": jsonl(Z[:4].tolist(), Z[4:].tolist()),
    "arrow": arrow(columns(Z[:4]), columns(Z[4:])),
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("trickle", [1 << 18, 7])
def test_the_first_byte_shows_the_format_and_every_number_arrives(name, trickle):
    first, second = items(STREAMS[name], trickle=trickle)
    np.testing.assert_array_equal(first.values, Z[:4])
    np.testing.assert_array_equal(second.values, Z[4:])
    assert second.where == ("line 2" if name == "jsonl" else "batch 2")


NUMBERS = "{'descr': '<f8', 'fortran_order': False, 'shape': %s}"
CUT = npy(Z)[:-1], npy(Z)[:30], arrow(columns(Z))[:-40]
BAD = [
    (CUT[0], "EOF: reading array data, expected 168 bytes got 167"),
    (CUT[1], "it must be an .npy array"),
    (headed(NUMBERS % "(99999999999999, 3)"), "it must be an .npy array"),
    (headed((NUMBERS % "(1, 3)").replace("<f8", "|O"), pickle.dumps([1])), "Object arrays"),
    (b"[1, 2\n", "Expecting ',' delimiter"),
    (b" \xff\xfe\n", "decode byte 0xff"),
    (b"[[1, 2, 3], [1, 2]]\n", "inhomogeneous"),
    (b'["1", "2", "3"]\n', "a row of numbers"),
    (b"[1" + b"0" * 400 + b", 2, 3]\n", "numbers"),
    (b"{}\n", "either 'logits' or 'probabilities'"),
    (b'{"logits": [1, 2], "probabilities": [1, 0]}\n', "either 'logits' or"),
    (b'{"logits": [1, 2, 3], "at": "noon"}\n', "'at' must be a number of seconds"),
    (b'{"logits": [1, 2, 3], "at": NaN}\n', "'at' must be a number of seconds"),
    (b'{"logits": [[1, 2, 3]], "id": ["a", "b"]}\n', "a text or number for each row"),
    (b'{"logits": [1, 2, 3], "id": ["a"]}\n', "a text or number for each row"),
    (b"[" * 100_000 + b"\n", "recursion"),
    (arrow({"x": Z[:, 0]}), "must have columns logit_<class> or probability_<class>"),
    (arrow({"logits": [[1.0, 2.0, 3.0], [1.0]]}), "of the same length"),
    (CUT[2], "it must be an Arrow record batch"),
]


@pytest.mark.parametrize(("content", "words"), BAD, ids=range(len(BAD)))
def test_a_piece_that_is_no_batch_is_reported_and_the_next_one_read_if_possible(content, words):
    name = {b"\x93": "npy", b"\xff": "arrow"}.get(content[:1], "jsonl")
    bad, *rest = items(content if content in CUT else content + STREAMS[name])
    assert isinstance(bad, BadBatch)
    assert words in str(bad)
    assert str(bad).startswith("line 1: " if name == "jsonl" else "batch 1: ")
    ended = name == "npy" or content in CUT
    assert [len(batch.values) for batch in rest] == ([] if ended else [4, 3])


def test_a_line_is_a_row_a_batch_or_an_object():
    row = [0.5, -1.0, 2.0]
    lines = jsonl(row, [row, row], {"logits": row, "id": "a", "at": 3, "camera": 7},
                  {"probabilities": [[0.5, 0.25, 0.25]] * 2, "id": ["a", 2]})  # fmt: skip
    one, two, named, probable = items(b"\xef\xbb\xbf\n  \n" + lines)
    assert (one.values.shape, two.values.shape) == ((1, 3), (2, 3))
    assert (named.ids, named.at, named.kind, named.where) == (["a"], 3.0, "logits", "line 5")
    assert (probable.ids, probable.kind, probable.at) == (["a", 2], "probabilities", None)
    assert (one.kind, one.ids) == (None, None)


def test_an_arrow_stream_has_the_columns_of_a_scores_table_and_may_begin_again():
    p = np.full((2, 3), 1 / 3)
    tables = [
        columns(Z.astype(np.float32)),
        {"logits": pa.array(Z.tolist(), pa.list_(pa.float64()))},
        {**columns(p, "probability_"), "id": ["a", "b"]},
        columns(Z, "logit_class "),
    ]
    found = items(b"".join(map(arrow, tables)), trickle=7)
    assert [item.where for item in found] == ["batch 1", "batch 2", "batch 3", "batch 4"]
    np.testing.assert_allclose(found[0].values, Z, rtol=1e-6)
    np.testing.assert_array_equal(found[1].values, Z)
    assert (found[2].kind, found[2].ids) == ("probabilities", ["a", "b"])
    assert found[3].classes == ("class 0", "class 1", "class 2")


def test_a_damaged_arrow_stream_is_reported_and_nothing_crashes():
    whole = arrow(columns(Z), columns(Z))
    rng = np.random.default_rng(5)
    for place in rng.integers(4, len(whole), 200):
        hurt = bytearray(whole)
        hurt[place : place + 4] = rng.bytes(4)
        assert all(isinstance(item, RowBatch | BadBatch) for item in items(bytes(hurt)))


@pytest.mark.parametrize(
    "content", [b"", b"a,b\n1,2\n", gzip.compress(b"x", mtime=0), pickle.dumps(Z), b"PAR1"]
)
def test_another_format_is_rejected_with_what_to_do(monitor, content):
    done = monitor("sac.json", stdin=content)
    assert done.status == 2
    assert "--follow" in done.err


def test_files_come_in_order_when_they_no_longer_grow(tmp_path):
    for name in ("b.npz", "a.npz", "c.npz", ".d.npz", "~e.npz", "f.txt", "g_labels.npy"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "gone.npz").symlink_to(tmp_path / "nowhere")
    found = new_files(tmp_path, {"b.npz"}, once=True, settle=0.5)

    def grow():
        with (tmp_path / "a.npz").open("ab") as file:
            file.write(b"more")

    threading.Timer(0.2, grow).start()
    assert next(filter(None, found)).name == "a.npz"
    assert (tmp_path / "a.npz").stat().st_size == 5
    assert [path.name for path in found if path] == ["c.npz"]

"""What ``shiftcal monitor`` reads from standard input, whole and broken."""

from __future__ import annotations

import gzip
import json
import pickle
import sys
import threading

import numpy as np
import pyarrow as pa
import pytest
from monitor_streams import arrow, columns, headed, items, jsonl, npy

from shiftcal.cli.monitor_input import BadBatch, Batch, Stop, is_scores_name, new_files
from shiftcal.errors import FileError, InputError, MissingExtra

Z = np.random.default_rng(3).standard_normal((7, 3))
STREAMS = {
    "npy": npy(Z[:4], Z[4:]),
    "jsonl": jsonl(Z[:4].tolist(), Z[4:].tolist()),
    "arrow": arrow(columns(Z[:4]), columns(Z[4:])),
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("trickle", [1 << 18, 1, 7])
def test_the_first_bytes_tell_the_format_and_every_number_arrives(name, trickle):
    first, second = items(STREAMS[name], trickle=trickle)
    np.testing.assert_array_equal(first.values, Z[:4])
    np.testing.assert_array_equal(second.values, Z[4:])
    assert items(STREAMS[name], named=name)[1].where == second.where
    assert second.where.startswith("line 2" if name == "jsonl" else "batch 2")


@pytest.mark.parametrize("dtype", ["float16", "float32", ">f8", "int64", "uint8"])
def test_arrays_of_numbers_of_any_type_and_order_are_read(dtype):
    whole = np.asfortranarray((10 * Z).round().clip(0).astype(dtype))
    (batch,) = items(npy(whole))
    np.testing.assert_array_equal(batch.values, whole)


NUMBERS = "{'descr': '<f8', 'fortran_order': False, 'shape': %s}"
ENDS, SKIPPED = True, False
BAD = [
    ("npy", npy(Z)[:-1], ENDS, "promises 168 bytes; the input ended after 167"),
    ("npy", npy(Z)[:30], ENDS, "it must be an .npy array"),
    ("npy", b"oops", ENDS, "it must be an .npy array"),
    ("npy", headed("x", version=(9, 0)), ENDS, "it must be an .npy array"),
    ("npy", headed(b"", version=(2, 0))[:8] + b"\xff" * 4, ENDS, "version (2, 0)"),
    ("npy", headed("{'descr': __import__('os'), 'shape': (1, 3)}"), ENDS, "must be an .npy array"),
    ("npy", headed("(" * 4000), ENDS, "it must be an .npy array"),
    ("npy", headed(NUMBERS % "(99999999999999, 3)"), ENDS, "got 99,999,999,999,999"),
    ("npy", headed(NUMBERS % "(100, 3)", b"few"), ENDS, "the input ended after 3"),
    ("npy", headed(NUMBERS % "(-1, 3)"), ENDS, "1 to 100 rows"),
    ("npy", headed((NUMBERS % "(1, 3)").replace("<f8", "|O"), pickle.dumps([1])), ENDS, "Pickled"),
    ("npy", npy(Z[:, :2]), SKIPPED, "shape (rows, 3)"),
    ("npy", npy(Z[0]), SKIPPED, "shape (rows, 3)"),
    ("npy", npy(Z[:0]), SKIPPED, "1 to 100 rows"),
    ("npy", npy(Z.astype(complex)), SKIPPED, "real numbers; got dtype complex128"),
    ("npy", npy(Z > 0), SKIPPED, "real numbers; got dtype bool"),
    ("npy", npy(np.tile(Z, (20, 1))), SKIPPED, "1 to 100 rows; got 140"),
    ("jsonl", b"[1, 2", SKIPPED, "Expecting ',' delimiter"),
    ("jsonl", b"\xff\xfe", SKIPPED, "decode byte 0xff"),
    ("jsonl", b"3", SKIPPED, "a line must be a row [1.5, -0.3, ...], a batch"),
    ("jsonl", b"[]", SKIPPED, "shape (rows, 3)"),
    ("jsonl", b"[1, 2]", SKIPPED, "shape (rows, 3)"),
    ("jsonl", b"[[1, 2, 3], [1, 2]]", SKIPPED, "3 numbers each"),
    ("jsonl", b"[[[1, 2, 3]]]", SKIPPED, "shape (1, 1, 3)"),
    ("jsonl", b'["1", "2", "3"]', SKIPPED, "rows must be numbers"),
    ("jsonl", b"[1, null, 3]", SKIPPED, "rows must be numbers"),
    ("jsonl", b"[true, false, true]", SKIPPED, "rows must be numbers"),
    ("jsonl", b"[1" + b"0" * 400 + b", 2, 3]", SKIPPED, "numbers"),
    ("jsonl", b"[1" + b"0" * 5000 + b", 2, 3]", SKIPPED, "digits"),
    ("jsonl", b"{}", SKIPPED, "either 'logits' or 'probabilities'"),
    ("jsonl", b'{"logits": [1, 2, 3], "probabilities": [1, 0, 0]}', SKIPPED, "either 'logits' or"),
    ("jsonl", b'{"logits": 3}', SKIPPED, "either 'logits' or 'probabilities'"),
    ("jsonl", b'{"logits": [1, 2, 3], "at": "noon"}', SKIPPED, "'at' must be a number of seconds"),
    ("jsonl", b'{"logits": [1, 2, 3], "at": NaN}', SKIPPED, "'at' must be a number of seconds"),
    (
        "jsonl",
        b'{"logits": [1, 2, 3], "at": ' + b"1" * 400 + b"}",
        SKIPPED,
        "'at' must be a number",
    ),
    ("jsonl", b'{"logits": [1, 2, 3], "id": ["a", "b"]}', SKIPPED, "'id' must be text or a whole"),
    ("jsonl", b'{"logits": [[1, 2, 3]], "id": ["a", "b"]}', SKIPPED, "for each of 1 rows"),
    ("jsonl", b'{"logits": [1, 2, 3], "id": true}', SKIPPED, "'id' must be text or a whole number"),
    ("jsonl", b"[" * 100_000, SKIPPED, "recursion"),
    ("jsonl", json.dumps([[1.0] * 3] * 101).encode(), SKIPPED, "1 to 100 rows; got 101"),
    ("jsonl", b"[" + b"1," * (1 << 20), SKIPPED, "at most 1,048,576 bytes"),
    ("arrow", columns(Z[:, :2]), SKIPPED, "shape (rows, 3)"),
    ("arrow", columns(np.tile(Z, (15, 1))), SKIPPED, "1 to 100 rows; got 105"),
    ("arrow", columns(Z[:0]), SKIPPED, "1 to 100 rows"),
    ("arrow", {"x": Z[:, 0]}, SKIPPED, "must have columns logit_<class> or probability_<class>"),
    ("arrow", {**columns(Z[:, :2]), "logit_2": ["a"] * 7}, SKIPPED, "numbers"),
    ("arrow", {"logits": [[1.0, 2.0, 3.0], None]}, SKIPPED, "must have a number in every row"),
    ("arrow", {"logits": [[1.0, 2.0, 3.0], [1.0]]}, SKIPPED, "must have the same length"),
    ("arrow", arrow(columns(Z), compression="zstd"), SKIPPED, "must not be compressed"),
    ("arrow", arrow(columns(Z))[:-40], ENDS, "record batches without dictionaries"),
    ("arrow", arrow(columns(Z))[:4] + b"\xff\xff\xff\x7f", ENDS, "has 2,147,483,647 bytes"),
    ("arrow", {**columns(Z), "id": pa.array(["a"] * 7).dictionary_encode()}, ENDS, "dictionary"),
]


@pytest.mark.parametrize(("name", "content", "ends", "words"), BAD, ids=range(len(BAD)))
def test_what_is_no_batch_is_reported_and_the_next_one_read_if_possible(name, content, ends, words):
    content = arrow(content) if isinstance(content, dict) else content
    content += b"\n" if name == "jsonl" else b""
    bad, *rest = items(content if ends else content + STREAMS[name], named=name)
    assert words in str(bad)
    assert str(bad).startswith("line 1: " if name == "jsonl" else "batch 1: ")
    assert bad.final == ("Nothing after it can be read" in str(bad)) == ends
    assert [len(batch.values) for batch in rest] == ([] if ends else [4, 3])


def test_a_line_is_a_row_a_batch_or_an_object():
    row = [0.5, -1.0, 2.0]
    lines = jsonl(row, [row, row], {"logits": row, "id": "a", "at": 3, "camera": 7},
                  {"probabilities": [[0.5, 0.25, 0.25]] * 2, "id": ["a", 2]})  # fmt: skip
    one, two, named, probable = items(b"\xef\xbb\xbf\n  \n" + lines)
    assert one.values.shape == (1, 3)
    assert two.values.shape == (2, 3)
    assert (named.ids, named.at, named.kind, named.where) == (("a",), 3.0, "logits", "line 5")
    assert (probable.ids, probable.kind, probable.at) == (("a", 2), "probabilities", None)
    assert (one.kind, one.ids) == (None, None)


def lists(kind, size=-1):
    values = pa.array(Z.ravel(), kind)
    if size > 0:
        return {"logits": pa.FixedSizeListArray.from_arrays(values, size)}
    return {"logits": pa.array(Z.tolist(), pa.list_(kind))}


@pytest.mark.parametrize(
    "table",
    [
        columns(Z.astype(np.float32)),
        lists(pa.float64()),
        lists(pa.float32(), 3),
        columns(Z, "logit_class "),
    ],
)
def test_the_columns_of_an_arrow_stream_are_those_of_a_scores_table(table):
    (batch,) = items(arrow(table))
    np.testing.assert_allclose(batch.values, Z, rtol=1e-7)
    assert batch.kind == "logits"
    assert (batch.classes is None) == ("logit_class 0" not in table)


def test_ids_and_probabilities_come_by_arrow_too():
    p = np.full((2, 3), 1 / 3)
    (batch,) = items(arrow({**columns(p, "probability_"), "id": ["a", "b"]}))
    assert (batch.kind, batch.ids) == ("probabilities", ("a", "b"))


def test_an_arrow_stream_that_is_damaged_anywhere_is_told_and_nothing_crashes():
    whole = arrow(columns(Z), columns(Z))
    rng = np.random.default_rng(5)
    for place in rng.integers(4, len(whole), 200):
        hurt = bytearray(whole)
        hurt[place : place + 4] = rng.bytes(4)
        for item in items(bytes(hurt), named="arrow"):
            assert isinstance(item, Batch | BadBatch)


@pytest.mark.parametrize("trickle", [1 << 18, 7])
def test_a_restarted_sender_sends_another_arrow_stream(trickle):
    one, two = arrow(columns(Z[:4])), arrow(lists(pa.float32()))
    found = items(one + two + one, trickle=trickle)
    assert [(len(item.values), item.where) for item in found] == [
        (4, "batch 1"),
        (7, "batch 2"),
        (4, "batch 3"),
    ]
    read, bad = items(one + b"hello" + two, trickle=trickle)
    assert len(read.values) == 4
    assert str(bad).startswith("batch 2: ")
    assert bad.final


@pytest.mark.parametrize(
    "content",
    [b"", b"a,b\n1,2\n", gzip.compress(b"x", mtime=0), pickle.dumps(Z), b"PAR1", b"PK\x03\x04"],
)
def test_another_format_raises_with_what_to_do(content):
    with pytest.raises(InputError, match="--follow"):
        items(content)


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"an Arrow stream needs pyarrow.*shiftcal\[parquet\]"):
        items(STREAMS["arrow"])


@pytest.mark.parametrize("name", [".x.npz", "~x.npz", "x.npz.part", "x.txt", "x_labels.npy"])
def test_names_that_are_skipped(name):
    assert not is_scores_name(name)
    assert is_scores_name("x_logits.npy")


def test_files_come_in_order_when_they_no_longer_grow(tmp_path):
    for name in ("b.npz", "a.npz", "c.npz", ".d.npz", "e.txt"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "gone.npz").symlink_to(tmp_path / "nowhere")
    found = new_files(tmp_path, {"b.npz"}, Stop(), once=True, settle=0.3)

    def grow():
        with (tmp_path / "a.npz").open("ab") as file:
            file.write(b"more")

    timers = [threading.Timer(delay, grow) for delay in (0.1, 0.3)]
    for timer in timers:
        timer.start()
    assert next(found).name == "a.npz"
    assert (tmp_path / "a.npz").stat().st_size == 9
    assert [path.name for path in found] == ["c.npz"]
    (tmp_path / "in").mkdir()
    gone = new_files(tmp_path / "nowhere", set(), Stop(), once=True, settle=0)
    with pytest.raises(FileError, match="nowhere cannot be followed: No such file"):
        next(gone)

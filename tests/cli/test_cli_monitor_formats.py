"""What ``shiftcal monitor`` reads from standard input, whole and broken."""

from __future__ import annotations

import gzip
import json
import pickle

import numpy as np
import pyarrow as pa
import pytest
from monitor_streams import arrow, columns, headed, items, jsonl, npy

from shiftcal.cli._monitor_batches import Batch, Broken
from shiftcal.errors import InputError

Z = np.random.default_rng(3).standard_normal((7, 3))
STREAMS = {
    "npy": npy(Z[:4], Z[4:]),
    "jsonl": jsonl(Z[:4].tolist(), Z[4:].tolist()),
    "arrow": arrow(columns(Z[:4]), columns(Z[4:])),
}


def only(found):
    """The one broken piece, as its message."""
    (broken,) = found
    assert isinstance(broken, Broken), broken
    return str(broken)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("trickle", [None, 1, 7])
def test_the_first_bytes_tell_the_format_and_every_number_arrives(name, trickle):
    first, second = items(STREAMS[name], trickle=trickle)
    np.testing.assert_array_equal(first.values, Z[:4])
    np.testing.assert_array_equal(second.values, Z[4:])
    assert items(STREAMS[name], named=name)[1].where == second.where
    assert second.where.startswith("line 2" if name == "jsonl" else "batch 2 (bytes ")


@pytest.mark.parametrize("dtype", ["float16", "float32", ">f8", "int64", "uint8"])
def test_arrays_of_numbers_of_any_type_and_order_are_read(dtype):
    whole = np.asfortranarray((10 * Z).round().clip(0).astype(dtype))
    (batch,) = items(npy(whole))
    np.testing.assert_array_equal(batch.values, whole)


def test_positions_count_bytes_of_the_whole_stream():
    one = npy(Z)
    first, second = items(one * 2)
    assert first.where == f"batch 1 (bytes 0 to {len(one)})"
    assert second.where == f"batch 2 (bytes {len(one)} to {2 * len(one)})"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (npy(Z)[:-1], "must have the 168 bytes its header says; the input ended after 167"),
        (npy(Z)[:30], "the header must be that of an .npy array; it could not be read"),
        (npy(Z)[:7], "its version is (1,), and 1 and 2 are read"),
        (npy(Z) + b"oops", "batch 2 (from byte 296): the header must be that of an .npy array; it "
         "begins with the bytes b'oops'"),
        (headed("x", version=(9, 0)), "its version is (9, 0)"),
        (headed(b"", version=(2, 0))[:8] + b"\xff\xff\xff\xff", "says it is 4294967295 bytes long"),
        (headed("{'descr': __import__('os'), 'fortran_order': False, 'shape': (1, 3)}"),
         "it could not be read"),
        (headed("(" * 4000), "it could not be read"),
        (headed("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999, 3)}"),
         "at most 100 rows; this one says 99,999,999,999,999"),
        (headed("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 3)}"), "at least one row"),
        (headed("{'descr': '|O', 'fortran_order': False, 'shape': (1, 3)}", pickle.dumps([1])),
         "pickled Python objects, which are never loaded because they can run code"),
    ],
    ids=range(11),
)  # fmt: skip
def test_a_broken_array_is_told_with_its_position_and_ends_the_stream(content, words):
    *whole, broken = items(content)
    assert len(whole) == content.startswith(npy(Z))
    assert words in str(broken)
    assert "Where the next array begins cannot be known" in str(broken)


def test_a_hostile_header_takes_no_memory():
    import tracemalloc

    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (65536, 1000)}"
    tracemalloc.start()
    broken = only(items(headed(header, b"few"), rows=1 << 16, k=1000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "must have the 524288000 bytes its header says; the input ended after 3" in broken
    assert peak < 10 << 20


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (Z[:, :2], "must have 3 columns, one per class of the bank; got 2"),
        (Z[0], "must have shape (rows, 3), one column per class; got shape (3,)"),
        (Z[:0], "at least one row"),
        (Z.astype(complex), "must be real numbers; got dtype complex128"),
        (Z > 0, "must be real numbers; got dtype bool"),
        (Z.astype(str), "must be real numbers; got dtype <U"),
        (np.tile(Z, (20, 1)), "at most 100 rows; this one says 140. Send smaller batches"),
    ],
)
def test_an_array_of_another_shape_is_passed_over_since_its_size_is_known(array, words):
    broken, batch = items(npy(array, Z))
    assert words in str(broken)
    assert "Where the next" not in str(broken)
    np.testing.assert_array_equal(batch.values, Z)


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


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"[1, 2", "this is no JSON (expecting ',' delimiter, at character"),
        (b"\xff\xfe", "must be UTF-8 text; byte 0 of it is not"),
        (b"3", "a line must be a row [1.5, -0.3, ...], a batch"),
        (b"[]", "must have shape (rows, 3)"),
        (b"[1, 2]", "must have 3 columns, one per class of the bank; got 2"),
        (b"[[1, 2, 3], [1, 2]]", "these rows differ in length or depth"),
        (b"[[[1, 2, 3]]]", "got shape (1, 1, 3)"),
        (b'["1", "2", "3"]', "a row must be numbers"),
        (b"[1, null, 3]", "a row must be numbers"),
        (b"[true, false, true]", "a row must be numbers"),
        (b"[1" + b"0" * 400 + b", 2, 3]", "number too large"),
        (b"[1" + b"0" * 5000 + b", 2, 3]", "digits"),
        (b"{}", "either 'logits' or 'probabilities', as a row or a batch; its names are none"),
        (b'{"logit": [1, 2, 3]}', "its names are 'logit'"),
        (b'{"logits": [1, 2, 3], "probabilities": [1, 0, 0]}', "either 'logits' or"),
        (b'{"logits": 3}', "'logits' must be a row or a batch of them; it is 3"),
        (b'{"logits": [1, 2, 3], "at": "noon"}', "'at' must be a number of seconds; it is "),
        (b'{"logits": [1, 2, 3], "at": NaN}', "'at' must be a number of seconds"),
        (b'{"logits": [1, 2, 3], "at": ' + b"1" * 400 + b"}", "'at' must be a number of seconds"),
        (b'{"logits": [1, 2, 3], "id": ["a", "b"]}', "'id' must be text or a whole number"),
        (b'{"logits": [[1, 2, 3]], "id": ["a", "b"]}', "a list of 1 for this batch; it is a list "
         "of 2"),
        (b'{"logits": [[1, 2, 3]], "id": "a"}', "'id' must name every row"),
        (b'{"logits": [1, 2, 3], "id": true}', "'id' must be text or a whole number; one is true"),
        (b"[" * 100_000, "nested too deep"),
        (json.dumps([[1.0] * 3] * 101).encode(), "at most 100 rows; this one says 101"),
    ],
    ids=range(25),
)  # fmt: skip
def test_a_broken_line_is_told_and_the_next_one_read(line, words):
    broken, batch = items(line + b"\n[1, 2, 3]\n", named="jsonl")
    assert words in str(broken)
    assert str(broken).startswith("line 1: ")
    assert batch.where == "line 2"


@pytest.mark.parametrize("trickle", [None, 100_000])
def test_a_line_without_end_takes_no_memory_and_the_next_one_is_read(trickle):
    import tracemalloc

    content = b"[" + b"1," * (20 << 20) + b"\n[1, 2, 3]\n[1"
    tracemalloc.start()
    broken, batch, cut = items(content, trickle=trickle)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "line 1: a line must have at most 1,048,576 bytes; this one has more" in str(broken)
    assert batch.where == "line 2"
    assert "line 3" in str(cut)
    assert peak < 5 << 20


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


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (arrow(columns(Z[:, :2])), "must have 3 columns, one per class of the bank; got 2"),
        (arrow(columns(np.tile(Z, (15, 1)))), "at most 100 rows; this one says 105"),
        (arrow(columns(Z), compression="zstd"), "must not be compressed"),
        (arrow(columns(Z), compression="lz4"), "must not be compressed"),
        (arrow({"x": Z[:, 0]}), "must have columns logit_<class> or probability_<class>"),
        (arrow({**columns(Z[:, :2]), "logit_2": ["a"] * 7}), "must hold numbers; it holds string"),
        (arrow({"logits": [[1.0, 2.0, 3.0], None]}), "must have a number in every row"),
        (arrow({"logits": [[1.0, 2.0, 3.0], [1.0]]}), "must have the same length"),
        (arrow(columns(Z[:0])), "at least one row"),
    ],
    ids=range(9),
)
def test_a_record_batch_that_is_no_batch_is_told_and_the_next_one_read(content, words):
    broken = only(items(content))
    assert words in broken
    assert broken.startswith("batch 1 (bytes ")
    assert "Nothing after it" not in broken


def test_an_arrow_stream_that_is_damaged_anywhere_is_told_and_nothing_crashes():
    whole = arrow(columns(Z), columns(Z))
    rng = np.random.default_rng(5)
    for place in rng.integers(4, len(whole), 200):
        hurt = bytearray(whole)
        hurt[place : place + 4] = rng.bytes(4)
        for item in items(bytes(hurt), named="arrow"):
            assert isinstance(item, Batch | Broken)
    assert "Nothing after it can be read" in str(items(whole[:-40])[-1])


@pytest.mark.parametrize("trickle", [None, 7])
def test_a_sender_that_was_started_again_sends_another_arrow_stream(trickle):
    one, two = arrow(columns(Z[:4])), arrow(lists(pa.float32()))
    found = items(one + two + one, trickle=trickle)
    assert [len(item.values) for item in found] == [4, 7, 4]
    assert found[1].where.startswith("batch 2 (bytes ")
    # the end of a stream has eight bytes
    assert found[2].where.endswith(f" to {len(one + two + one) - 8})")
    read, broken = items(one + b"hello" + two, trickle=trickle)
    assert len(read.values) == 4
    assert str(broken).startswith(f"batch 2 (from byte {len(one)}): ")
    assert "Nothing after it can be read" in str(broken)


def test_what_an_arrow_stream_says_is_no_reason_to_take_memory():
    whole = bytearray(arrow(columns(Z)))
    whole[4:8] = (2**31 - 1).to_bytes(4, "little")
    assert "2,147,483,647 bytes belong together, and at most" in only(items(bytes(whole)))


def test_dictionaries_are_refused():
    table = {**columns(Z), "id": pa.array(["a"] * 7).dictionary_encode()}
    assert "a message of type 'dictionary'" in only(items(arrow(table)))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "ended before anything came. Send batches of logits into it"),
        (b"a,b\n1,2\n", "it begins with the bytes b'a,b\\n1,2\\n'"),
        (b" " * 5000, "it begins with the bytes"),
        (gzip.compress(STREAMS["npy"]), "compressed by gzip. Unpack it first"),
        (pickle.dumps(Z), "a pickle, which is never loaded"),
        (b"PAR1....", "a Parquet file. Write such files into a folder and --follow it"),
        (b"ARROW1\0\0", "an Arrow file. Write a stream instead"),
        (b"PK\x03\x04....", "a zip archive, as .npz is"),
    ],
)
def test_another_format_is_refused_with_what_to_do(content, words):
    with pytest.raises(InputError) as refused:
        items(content)
    assert words in str(refused.value)


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    import sys

    from shiftcal.errors import MissingExtra

    content = STREAMS["arrow"]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"an Arrow stream needs pyarrow.*shiftcal\[parquet\]"):
        items(content)


def test_a_stream_may_end_without_a_line_end():
    assert len(items(b"[1, 2, 3]\n[1, 2, 3]")) == 2

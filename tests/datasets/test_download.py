"""One file over connections that break, lie, or change under the hands."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from toy_fetch import BODY, MD5, OTHER, fetching_into, left, names
from toy_server import Turn, serving

from shiftcal.datasets.about import Download
from shiftcal.datasets.download import Line, download
from shiftcal.errors import FileError


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with serving() as toy:
        yield toy


@pytest.fixture
def fetch(tmp_path):
    return fetching_into(tmp_path)


def test_a_file_comes_whole_and_alone(server, fetch, tmp_path):
    done = fetch(server.offer("/data", Turn(BODY)))
    assert done.path.read_bytes() == BODY
    assert names(tmp_path) == ["data.bin"]
    assert (done.notes, done.waits) == ([], [])
    assert done.steps[0] == ("data.bin", 0, 300_000)
    assert ("data.bin", 300_000, 300_000) in done.steps
    assert done.steps[-1] == ("verifying data.bin", 300_000, 300_000)
    (_, headers) = server.asked[0]
    assert headers["User-Agent"].startswith("shiftcal/")
    assert "Range" not in headers


def test_sha256_will_do_as_well_and_capital_digits(server, fetch):
    url = server.offer("/data", Turn(BODY))
    assert (
        fetch(
            url, digest=hashlib.sha256(BODY).hexdigest().upper(), algorithm="sha256"
        ).path.read_bytes()
        == BODY
    )


@pytest.mark.parametrize("mark", [{}, {"etag": "", "modified": "Mon, 01 Jan 2024 00:00:00 GMT"}])
def test_a_broken_connection_is_resumed_where_it_broke(server, fetch, mark):
    url = server.offer("/data", Turn(BODY, cut_after=100_000, **mark), Turn(BODY, **mark))
    done = fetch(url)
    assert done.path.read_bytes() == BODY
    assert server.ranges() == [None, "bytes=100000-"]
    assert server.asked[1][1]["If-Range"] == (mark.get("modified") or '"one"')
    assert done.waits == [1.0]
    assert done.notes == [
        "data.bin: the connection ended after 100,000 of 300,000 bytes. Trying again in 1 s."
    ]


def test_a_connection_that_breaks_again_and_again_is_given_up_and_the_part_is_kept(
    server, fetch, tmp_path
):
    url = server.offer("/data", Turn(BODY, cut_after=1000))
    with pytest.raises(FileError, match=r"given up after 4 tries .* 4,000 bytes are kept"):
        fetch(url, tries=4)
    assert left(tmp_path) == BODY[:4000]
    assert names(tmp_path) == ["data.bin.partial", "data.bin.partial.json"]


def test_another_run_goes_on_with_the_part(server, fetch, tmp_path):
    url = server.offer("/data", Turn(BODY, cut_after=1000))
    with pytest.raises(FileError, match="given up"):
        fetch(url, tries=1)
    server.offer("/data", Turn(BODY))
    assert fetch(url).path.read_bytes() == BODY
    assert server.ranges() == [None, "bytes=1000-"]
    assert names(tmp_path) == ["data.bin"]


def test_the_waits_grow_and_a_try_that_helps_starts_them_anew(server, tmp_path):
    body = np.random.default_rng(5).bytes(4 << 20)
    short = Turn(body, cut_after=5)
    turns = [short, short, Turn(body, cut_after=2 << 20), short, Turn(body)]
    url, waits = server.offer("/data", *turns), []
    source = Download(url, "data.bin", hashlib.md5(body).hexdigest())
    path = download(source, tmp_path, line=Line(tries=3, wait=waits.append))
    assert path.read_bytes() == body
    assert waits == [1.0, 2.0, 1.0, 2.0]


def test_a_server_that_ignores_range_starts_anew(server, fetch):
    url = server.offer(
        "/data", Turn(BODY, cut_after=100_000, ranges=False), Turn(BODY, ranges=False)
    )
    assert fetch(url).path.read_bytes() == BODY
    assert server.ranges() == [None, "bytes=100000-"]


def test_a_file_that_changed_meanwhile_is_not_glued_together(server, fetch):
    changed = Turn(BODY, etag='"two"')
    url = server.offer("/data", Turn(OTHER, cut_after=100_000), changed)
    assert fetch(url).path.read_bytes() == BODY
    assert server.ranges() == [None, "bytes=100000-"]


@pytest.mark.parametrize(
    "liar",
    [
        Turn(
            OTHER, etag='"two"', status=206, headers=(("Content-Range", "bytes 100000-1/300000"),)
        ),
        Turn(OTHER, shifted=7),
        Turn(OTHER[:-1]),
        Turn(OTHER[:50_000]),
        Turn(b"", status=206),
    ],
    ids=["etag", "start", "total", "shorter", "no range told"],
)
def test_nor_if_the_server_heeds_no_if_range(server, fetch, liar):
    url = server.offer("/data", Turn(BODY, cut_after=100_000), liar, Turn(BODY))
    done = fetch(url)
    assert done.path.read_bytes() == BODY
    assert server.ranges() == [None, "bytes=100000-", None]
    assert "the file on the server has changed" in done.notes[-1]


@pytest.mark.parametrize("etag", ["", 'W/"one"'])
def test_without_a_mark_the_checksum_must_find_out(server, fetch, tmp_path, etag):
    url = server.offer("/data", Turn(OTHER, cut_after=100_000, etag=etag), Turn(BODY, etag=etag))
    with pytest.raises(FileError, match="is not the published file"):
        fetch(url)
    assert server.ranges() == [None, "bytes=100000-"]
    assert "If-Range" not in server.asked[1][1]
    assert names(tmp_path) == []


def test_without_a_mark_and_a_checksum_nothing_is_resumed(server, tmp_path, monkeypatch):
    monkeypatch.setattr("shiftcal.datasets._http._check_address", lambda *_, **__: None)
    turns = Turn(OTHER, cut_after=100_000, etag=""), Turn(BODY, etag="")
    source = Download(server.offer("/data", *turns), "data.bin")
    path = download(source, tmp_path, line=Line(wait=lambda _: None))
    assert path.read_bytes() == BODY
    assert server.ranges() == [None, None]


def test_the_part_of_another_address_is_not_used(server, fetch):
    with pytest.raises(FileError):
        fetch(server.offer("/old", Turn(OTHER, cut_after=1000)), tries=1)
    assert fetch(server.offer("/new", Turn(BODY))).path.read_bytes() == BODY
    assert server.ranges() == [None, None]


@pytest.mark.parametrize("facts", ["", "[]", '{"url": 3, "more": 1}', "\0"])
def test_a_part_of_which_nothing_is_known_is_not_used(server, fetch, tmp_path, facts):
    (tmp_path / "data.bin.partial").write_bytes(b"of something else")
    (tmp_path / "data.bin.partial.json").write_text(facts)
    assert fetch(server.offer("/data", Turn(BODY))).path.read_bytes() == BODY


def test_a_part_that_was_complete_is_only_verified(server, fetch, tmp_path):
    url = server.offer("/data", Turn(BODY))
    known = {"url": url, "etag": '"one"', "modified": "", "total": len(BODY)}
    (tmp_path / "data.bin.partial").write_bytes(BODY)
    (tmp_path / "data.bin.partial.json").write_text(json.dumps(known))
    assert fetch(url).path.read_bytes() == BODY
    assert server.asked == []


def test_a_length_that_is_too_long_does_no_harm(server, fetch):
    url = server.offer("/data", Turn(BODY, length=300_500), Turn(BODY))
    assert fetch(url).path.read_bytes() == BODY
    assert server.ranges() == [None, "bytes=300000-"]


def test_a_length_that_is_too_short_is_found_by_the_checksum(server, fetch, tmp_path):
    with pytest.raises(FileError, match="is not the published file"):
        fetch(server.offer("/data", Turn(BODY, length=299_000)))
    assert names(tmp_path) == []


@pytest.mark.parametrize("how", [{"length": None}, {"chunked": True}])
def test_no_length_at_all_will_do(server, fetch, how):
    done = fetch(server.offer("/data", Turn(BODY, **how)))
    assert done.path.read_bytes() == BODY
    assert done.steps[0] == ("data.bin", 0, None)


def test_a_break_between_chunks_is_noticed(server, fetch):
    url = server.offer("/data", Turn(BODY, chunked=True, cut_after=1000), Turn(BODY))
    assert fetch(url).path.read_bytes() == BODY
    assert server.ranges() == [None, "bytes=1000-"]


def test_a_published_size_notices_a_break_that_nothing_else_shows(server, fetch):
    url = server.offer("/data", Turn(BODY, length=None, cut_after=1000), Turn(BODY))
    assert fetch(url, size=len(BODY)).path.read_bytes() == BODY
    assert server.ranges() == [None, "bytes=1000-"]


def test_a_wrong_checksum_leaves_nothing_and_says_both(server, fetch, tmp_path):
    url = server.offer("/data", Turn(OTHER))
    got = hashlib.md5(OTHER).hexdigest()
    with pytest.raises(FileError, match=f"md5 must be {MD5}; got {got}. It was removed"):
        fetch(url)
    assert names(tmp_path) == []


def test_what_is_there_already_is_verified_and_not_fetched(server, fetch, tmp_path):
    url = server.offer("/data", Turn(BODY))
    (tmp_path / "data.bin").write_bytes(BODY)
    assert fetch(url).path.read_bytes() == BODY
    (tmp_path / "data.bin").write_bytes(OTHER)
    with pytest.raises(FileError, match="Remove it, and the same command fetches it"):
        fetch(url)
    assert (tmp_path / "data.bin").read_bytes() == OTHER
    assert server.asked == []

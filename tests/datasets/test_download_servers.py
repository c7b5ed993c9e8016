"""Servers that refuse, redirect, stall or ask for patience, and addresses that are not used."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from toy_fetch import BODY, Seen, fetching_into, names
from toy_server import Turn, serving, unused_port

from shiftcal.datasets.about import Download
from shiftcal.datasets.download import download
from shiftcal.errors import FileError


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with serving() as toy:
        yield toy


@pytest.fixture
def fetch(tmp_path):
    return fetching_into(tmp_path)


@pytest.mark.parametrize("status", [404, 403, 410])
def test_a_file_that_is_not_given_is_not_asked_for_again(server, fetch, status):
    url = server.offer("/data", Turn(b"no", status=status))
    with pytest.raises(FileError, match=f"the server says {status} .*It may have moved"):
        fetch(url)
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_server_that_is_out_of_order_is_asked_again(server, fetch, status):
    url = server.offer("/data", Turn(b"no", status=status), Turn(BODY))
    done = fetch(url)
    assert done.path.read_bytes() == BODY
    assert done.waits == [1.0]
    assert f"the server says {status}" in done.notes[0]


@pytest.mark.parametrize(
    ("asked", "waited"), [("7", 7.0), ("86400", 60.0), ("Fri, 31 Dec 1999 23:59:59 GMT", 1.0)]
)
def test_a_server_may_say_how_long_to_wait(server, fetch, asked, waited):
    busy = Turn(b"", status=503, headers=(("Retry-After", asked),))
    assert fetch(server.offer("/data", busy, Turn(BODY))).waits == [waited]


def test_a_server_that_never_comes_back_is_given_up(server, fetch, tmp_path):
    with pytest.raises(FileError, match=r"the server says 500 .*given up after 3 tries"):
        fetch(server.offer("/data", Turn(b"no", status=500)))
    assert len(server.asked) == 3
    assert names(tmp_path) == []


def test_nobody_listening_is_given_up(fetch):
    with pytest.raises(FileError, match="Connection refused; given up after 3 tries"):
        fetch(f"http://127.0.0.1:{unused_port()}/data")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirections_are_followed_with_the_range(server, fetch, status):
    server.offer("/there", Turn(BODY, cut_after=1000), Turn(BODY))
    url = server.offer("/data", Turn(b"", status=status, headers=(("Location", "/there"),)))
    assert fetch(url).path.read_bytes() == BODY
    assert [path for path, _ in server.asked] == ["/data", "/there"] * 2
    assert server.ranges() == [None, None, "bytes=1000-", "bytes=1000-"]


@pytest.mark.parametrize(
    "to", ["file:///etc/passwd", "ftp://127.0.0.1/data", "data:text/plain,x", "gopher://x/"]
)
def test_a_redirection_elsewhere_is_refused(server, fetch, tmp_path, to):
    url = server.offer("/data", Turn(b"", status=302, headers=(("Location", to),)))
    with pytest.raises(FileError, match=r"is not (fetched|followed)"):
        fetch(url)
    assert len(server.asked) == 1
    assert names(tmp_path) == []


def test_a_redirection_in_circles_is_refused(server, fetch):
    url = server.offer("/data", Turn(b"", status=302, headers=(("Location", "/data"),)))
    with pytest.raises(FileError, match="its redirection is not followed"):
        fetch(url)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host/file", "data.bin", ""])
def test_only_the_web_is_fetched_from(fetch, url):
    with pytest.raises(FileError, match="an address must begin with https: or http:"):
        fetch(url)


def test_plain_http_needs_a_checksum(server, fetch):
    with pytest.raises(FileError, match="over plain http anybody on the way can change a file"):
        fetch(server.offer("/data", Turn(BODY)), digest="")
    assert server.asked == []


def test_a_redirection_from_https_to_plain_http_needs_one_too():
    from urllib.request import Request

    from shiftcal.datasets._http import _Redirects

    answer = SimpleNamespace(close=lambda: None)
    for checked in (True, False):
        given = (Request("https://host/a"), answer, 302, "Found", {}, "http://host/b")
        if checked:
            assert _Redirects(checked).redirect_request(*given).full_url == "http://host/b"
        else:
            with pytest.raises(FileError, match="https://host/a leads on to http://host/b, which"):
                _Redirects(checked).redirect_request(*given)


def test_a_web_page_in_the_place_of_the_file_is_refused(server, fetch, tmp_path):
    page = Turn(b"<html>log in</html>", headers=(("Content-Type", "text/html; charset=utf-8"),))
    with pytest.raises(FileError, match=r"gave a web page instead of data\.bin"):
        fetch(server.offer("/data", page))
    assert names(tmp_path) == []


def test_without_a_checksum_the_size_is_compared(server, tmp_path, monkeypatch):
    monkeypatch.setattr("shiftcal.datasets._http._check_address", lambda *_, **__: None)
    url, watch = server.offer("/data", Turn(BODY)), Seen()
    with pytest.raises(FileError, match="must have 299,999 bytes; got 300,000"):
        download(Download(url, "data.bin", size=299_999), tmp_path)
    assert names(tmp_path) == []
    download(Download(url, "data.bin", size=300_000), tmp_path, watch=watch)
    assert watch.notes == ["data.bin: no checksum of it is published, so none was verified."]


def test_a_stalled_connection_counts_as_broken(server, fetch):
    release = threading.Event()
    url = server.offer("/data", Turn(BODY, cut_after=1000, stall=release), Turn(BODY))
    done = fetch(url, timeout=0.2)
    release.set()
    assert done.path.read_bytes() == BODY
    assert server.ranges() == [None, "bytes=1000-"]
    assert "nothing came for too long" in done.notes[0]

"""One request over http or https, and which of its failures another try may mend."""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from importlib.metadata import version
from typing import IO, Any
from urllib.parse import urlsplit

from shiftcal.errors import FileError

# Statuses of a server that is busy or out of order, not of a file that is not there.
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
NO_SUCH_RANGE = 416
_LONGEST_WAIT = 60.0


class Broken(Exception):
    """The connection or the server failed, and another try may do better. Never leaves a download.

    Args:
        reason: What happened.
        wait: Seconds the server asks to wait, if it does.
    """

    def __init__(self, reason: str, *, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


def open_url(url: str, *, headers: Mapping[str, str], timeout: float, checked: bool) -> Any:
    """The answer to a GET request, to be closed by the caller; its status is 200, 206 or 416.

    Args:
        url: Where.
        headers: Beside those every request has.
        timeout: Seconds without a byte after which the connection counts as broken.
        checked: Whether what comes is held against a checksum. Only then may it come, or be
            redirected, over plain http.

    Raises:
        Broken: If another try may do better.
        FileError: If not.
    """
    _check_address(url, url, checked=checked)
    always = {"User-Agent": f"shiftcal/{version('shiftcal')}", "Accept-Encoding": "identity"}
    request = urllib.request.Request(url, headers={**always, **headers})
    try:
        answer = _opener(checked).open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == NO_SUCH_RANGE:
            return error
        with error:
            raise _refused(url, error) from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise FileError(
                f"{url} could not be fetched: its server has no valid certificate "
                f"({error.reason.verify_message})."
            ) from error
        raise Broken(_words(error.reason)) from error
    except (http.client.HTTPException, OSError) as error:
        raise Broken(_words(error)) from error
    if answer.status not in (200, 206):
        with answer:
            raise FileError(f"{url} could not be fetched: the server says {answer.status}.")
    return answer


def read_some(answer: Any, most: int) -> bytes:
    """What has come of an answer's body, at least a byte; none at its end.

    Raises:
        Broken: If the connection ends in the middle, or nothing comes for too long.
    """
    try:
        return bytes(answer.read1(most))
    except (http.client.HTTPException, OSError) as error:
        raise Broken(_words(error)) from error


class _Redirects(urllib.request.HTTPRedirectHandler):
    def __init__(self, checked: bool) -> None:
        self.checked = checked

    def redirect_request(  # noqa: PLR0917 - as urllib calls it
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        try:
            _check_address(newurl, req.full_url, checked=self.checked)
        except FileError:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener(checked: bool) -> urllib.request.OpenerDirector:
    # urllib's own opener would follow file: and ftp: addresses as well.
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _Redirects(checked),
    ):
        opener.add_handler(handler)
    return opener


def _check_address(url: str, asked: str, *, checked: bool) -> None:
    scheme = urlsplit(url).scheme.lower()
    where = url if url == asked else f"{asked} leads on to {url}, which"
    if scheme not in ("http", "https"):
        raise FileError(f"{where} is not fetched: an address must begin with https: or http:.")
    if scheme == "http" and not checked:
        raise FileError(
            f"{where} is not fetched: over plain http anybody on the way can change a file, and "
            "no checksum is known to find that out. Fetch it by hand from a place you trust."
        )


def _refused(url: str, error: urllib.error.HTTPError) -> Exception:
    if error.code in _PASSING:
        return Broken(f"the server says {error.code} {error.reason}", wait=_asked_wait(error))
    if 300 <= error.code < 400:
        reason = " ".join(str(error.reason).split())
        return FileError(f"{url} could not be fetched: its redirection is not followed ({reason}).")
    return FileError(
        f"{url} could not be fetched: the server says {error.code} {error.reason}. "
        "It may have moved."
    )


def _asked_wait(error: urllib.error.HTTPError) -> float | None:
    asked = (error.headers.get("Retry-After") or "").strip()
    return min(float(asked), _LONGEST_WAIT) if asked.isascii() and asked.isdigit() else None


def _words(reason: object) -> str:
    if isinstance(reason, TimeoutError):
        return "nothing came for too long"
    if isinstance(reason, http.client.IncompleteRead):
        return "the connection ended in the middle"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return str(reason) or type(reason).__name__

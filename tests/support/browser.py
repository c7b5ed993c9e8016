"""Headless Chromium, spoken to over two pipes: no port, no package."""

from __future__ import annotations

import base64
import functools
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Seconds; a machine may have much else to do.
_PATIENCE = 120
_START = (
    "import fcntl, os, sys;"
    "r, w = (fcntl.fcntl(int(one), fcntl.F_DUPFD, 10) for one in sys.argv[1:3]);"
    "os.dup2(r, 3); os.dup2(w, 4);"
    "os.execv(sys.argv[3], sys.argv[3:])"
)


@functools.cache
def chromium():
    """Where the program is; ``None`` if there is none."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


class Browser:
    """One process with one page."""

    def __init__(self):
        self._home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        options = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
            "--disable-dev-shm-usage", "--no-first-run", f"--user-data-dir={self._home.name}",
            "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(to_read), str(to_write), chromium(), *options],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_read)
        os.close(to_write)
        self._rest, self._number, self._session = b"", 0, None
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """What the browser answers to a command."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, path, *, width=1200, height=900, dark=False, script=True, media=""):
        """Load a file and wait until it is there."""
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", media=media, features=scheme)
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        deadline = time.monotonic() + _PATIENCE
        while not any(one["method"] == "Page.loadEventFired" for one in self.events):
            assert time.monotonic() < deadline, "the page did not load"
            self._next()

    def evaluate(self, expression):
        """The value of a JavaScript expression on the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def complaints(self):
        """Console errors, exceptions, refused resources and requests that are no files."""
        found = []
        for one in self.events:
            answer = one["params"]
            if one["method"] == "Runtime.exceptionThrown":
                found.append(answer["exceptionDetails"]["text"])
            elif one["method"] == "Log.entryAdded":
                found.append(answer["entry"]["text"])
            elif one["method"] == "Runtime.consoleAPICalled":
                found.append(f"console.{answer['type']}")
            elif one["method"] == "Network.requestWillBeSent":
                url = answer["request"]["url"]
                if not url.startswith(("file:", "data:")):
                    found.append(url)
        return found

    def screenshot(self, path):
        """The whole page as a picture."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(answer["data"]))

    def close(self):
        """End the process."""
        for descriptor in (self._write, self._read):
            os.close(descriptor)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._home.cleanup()

    def _next(self):
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], _PATIENCE)
            assert ready, f"the browser has said nothing for {_PATIENCE} seconds"
            some = os.read(self._read, 1 << 20)
            assert some, "the browser is gone"
            self._rest += some
        text, _, self._rest = self._rest.partition(b"\0")
        answer = json.loads(text)
        if "method" in answer:
            self.events.append(answer)
        return answer


# Ratios as WCAG 2 defines them, of whatever is drawn: [least ratio asked, ratio found, what].
FAINT = """JSON.stringify((() => {
  const parsed = (text) => {
    const parts = text.match(/[\\d.]+/g);
    return parts ? [...parts.slice(0, 3).map(Number), parts[3] === undefined ? 1 : +parts[3]]
      : null;
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[3] * top[i] + (1 - top[3]) * below[i]);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      if (one.namespaceURI.endsWith("svg")) continue;
      const found = parsed(getComputedStyle(one).backgroundColor);
      if (found && found[3] === 1) return found;
    }
    return parsed(getComputedStyle(document.body).backgroundColor);
  };
  const luminance = (colour) => colour.slice(0, 3).map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ratio = (element, colour) => {
    const below = behind(element);
    let opacity = colour[3];
    for (let one = element; one; one = one.parentElement) {
      opacity *= Number(getComputedStyle(one).opacity);
    }
    const seen = over([...colour.slice(0, 3), opacity], below);
    const [high, low] = [luminance(seen), luminance(below)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const found = [];
  let looked = 0;
  const look = (element, property, least) => {
    const colour = parsed(getComputedStyle(element)[property]);
    if (!colour) return;
    looked += 1;
    const seen = ratio(element, colour);
    if (seen < least) {
      found.push([least, seen, `${element.tagName}.${element.getAttribute("class")}`]);
    }
  };
  const shown = (element) => element.getClientRects().length > 0;
  for (const element of document.body.querySelectorAll("*")) {
    const text = [...element.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
    const skipped = ["TITLE", "DESC", "SCRIPT"].includes(element.tagName.toUpperCase());
    if (!text || skipped || !shown(element)) continue;
    look(element, element.tagName === "text" ? "fill" : "color", 4.5);
  }
  return { looked, found };
})())"""

"""A monitor takes rows over HTTP."""

import json
import re
import subprocess
import sys
import urllib.request

import numpy as np

import shiftcal as sc

rng = np.random.default_rng(0)
labels = rng.integers(0, 3, 600)
logits = 4 * (rng.standard_normal((600, 3)) + 2 * np.eye(3)[labels])
sc.SurrogateBank.from_arrays([logits, logits / 2], labels).save("bank")
command = [sys.executable, "-m", "shiftcal", "monitor", "bank", "--listen", "127.0.0.1:0"]
options = ["--method", "sac", "--estimator", "none", "--window", "100", "--state", "state"]
pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
with subprocess.Popen([*command, *options], **pipes) as program:
    told = b""
    while not (found := re.search(rb"rows are taken at (\S+)", told)):
        line = program.stderr.readline()
        if not line:
            sys.exit(told.decode())
        told += line
    # No server stands between this program and itself.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    body = json.dumps(logits[:150].tolist()).encode()
    request = urllib.request.Request(found[1].decode(), body, {"Content-Type": "application/json"})
    with opener.open(request) as answer:
        assert len(json.loads(answer.read())["confidence"]) == 150
    program.terminate()
    assert b"Traceback" not in program.stderr.read()

"""A monitor that is fed serves its metrics to Prometheus."""

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
command = [sys.executable, "-m", "shiftcal", "monitor", "bank", "--metrics-port", "0"]
options = ["--method", "sac", "--estimator", "none", "--window", "100"]
pipes = {name: subprocess.PIPE for name in ("stdin", "stderr")}
with subprocess.Popen([*command, *options], **pipes, stdout=subprocess.DEVNULL) as program:
    told = b""
    while not (found := re.search(rb"metrics are at (\S+)", told)):
        line = program.stderr.readline()
        if not line:
            sys.exit(told.decode())
        told += line
    # No server stands between this program and itself.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(found[1].decode()) as answer:
        assert b"shiftcal_rows_total" in answer.read()
    program.stdin.close()

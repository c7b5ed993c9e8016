"""What is released: the sdist and the wheel that is built of it."""

from __future__ import annotations

import email
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from clean_environment import PROJECT, ROOT, run

# Of the tree, what only those need who change it and send it somewhere.
NOT_RELEASED = re.compile(r"\.(ci|github)/|\.pre-commit-config\.yaml$|\.gitattributes$")


def in_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {i.filename: archive.read(i) for i in archive.infolist() if not i.is_dir()}


def in_tree():
    """Files under version control."""
    listed = ["git", "ls-files", "-z"]
    try:
        done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs a clone made by git: it knows which files are the project's")
    return {name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()}


def test_the_wheel_has_every_file_of_the_package_and_no_test(built):
    names = {
        name for name in in_wheel(built.wheel) if not name.split("/")[0].endswith(".dist-info")
    }
    package = {
        name.removeprefix("src/")
        for name in in_tree()
        if name.startswith("src/") and "/_native/" not in name
    }
    assert package <= names
    assert {name.split("/")[0] for name in names} == {"shiftcal"}
    # Not only what Python imports: the mark of a typed package, pages and plans.
    assert "shiftcal/py.typed" in names
    for folder, suffix in (("report/templates", ".html.j2"), ("studies/plans", ".toml")):
        assert any(n.startswith(f"shiftcal/{folder}/") and n.endswith(suffix) for n in names)
    assert any(re.fullmatch(r"shiftcal/_kernels\..*(so|pyd)", name) for name in names)


def test_the_sdist_has_the_whole_tree(built):
    """With the tests and what they read: they can be run from it."""
    with tarfile.open(built.sdist) as archive:
        names = {m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()}
    want = {name for name in in_tree() if not NOT_RELEASED.match(name)}
    assert want <= names
    assert not [name for name in names if name.startswith((".venv", "site/", "dist/"))]


def test_the_metadata_say_what_the_project_says(built):
    (name,) = (n for n in in_wheel(built.wheel) if n.endswith(".dist-info/METADATA"))
    metadata = email.message_from_bytes(in_wheel(built.wheel)[name])
    assert (metadata["Name"], metadata["Version"]) == (PROJECT["name"], PROJECT["version"])
    assert metadata["Requires-Python"] == PROJECT["requires-python"]
    assert set(metadata.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    assert metadata["License-Expression"] == PROJECT["license"]
    assert metadata.get_payload().strip() == (ROOT / "README.md").read_text("utf-8").strip()


def test_an_index_would_take_them(built):
    run(sys.executable, "-m", "twine", "check", "--strict", built.sdist, built.wheel, cwd=Path("/"))

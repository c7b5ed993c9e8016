"""The conda recipe and the citation say what pyproject.toml says, in the form readers want."""

from __future__ import annotations

import datetime
import importlib.util
import json
import re
import tomllib
from pathlib import Path

import jinja2
import jsonschema
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))


def rendered(node, names):
    """A recipe with its ``${{ }}`` filled in, as rattler-build does."""
    if isinstance(node, dict):
        return {key: rendered(value, names) for key, value in node.items()}
    if isinstance(node, list):
        return [rendered(value, names) for value in node]
    marks = jinja2.Environment(
        variable_start_string="${{", undefined=jinja2.StrictUndefined, autoescape=False
    )
    return marks.from_string(node).render(**names) if isinstance(node, str) else node


def test_the_conda_recipe_asks_for_what_the_project_asks_for():
    raw = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text("utf-8"))
    names = {"PYTHON": "python", "compiler": lambda x: f"{x}-compiler", "stdlib": lambda x: x}
    recipe = rendered(raw, raw["context"] | names)
    assert recipe["package"] == {"name": PROJECT["name"], "version": PROJECT["version"]}
    run = {line.replace(" ", "") for line in recipe["requirements"]["run"]}
    assert run == {*PROJECT["dependencies"], "python"}
    assert raw["build"]["skip"] == ['match(python, "<3.11")']
    assert PROJECT["requires-python"] == ">=3.11"
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    assert {*build, "pip"} <= {line.replace(" ", "") for line in recipe["requirements"]["host"]}
    about = recipe["about"]
    assert (about["summary"], about["license"]) == (PROJECT["description"], PROJECT["license"])
    assert (ROOT / "conda" / recipe["source"]["path"] / about["license_file"]).exists()
    for test in recipe["tests"]:
        for module in test.get("python", {}).get("imports", ()):
            assert importlib.util.find_spec(module)


def test_the_citation_names_the_software_and_the_paper():
    assert (CITATION["type"], CITATION["version"]) == ("software", PROJECT["version"])
    paper = CITATION["preferred-citation"]
    assert paper in [{**one, "identifiers": None} for one in CITATION["references"]] or all(
        paper[key] == CITATION["references"][0][key] for key in ("title", "authors", "url", "year")
    )
    assert paper["url"] == PROJECT["urls"]["Paper"]


def test_the_citation_is_valid_by_its_schema():
    found = importlib.util.find_spec("cffconvert")
    if found is None:
        pytest.skip("cffconvert is not installed: make integrations")
    (folder,) = found.submodule_search_locations
    schema = json.loads(Path(folder, "schemas", "1.2.0", "schema.json").read_text("utf-8"))
    plain = json.loads(json.dumps(CITATION, default=datetime.date.isoformat))
    jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker()).validate(plain)
    assert re.fullmatch(r"1\.2\.0", CITATION["cff-version"])

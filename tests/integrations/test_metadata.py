"""The conda recipe and the citation say what pyproject.toml says, in the form readers want."""

from __future__ import annotations

import datetime
import importlib.util
import json
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))


@pytest.mark.parametrize("platform", ["linux-64", "osx-arm64", "win-64"])
def test_rattler_reads_the_conda_recipe_which_asks_for_what_the_project_asks_for(platform):
    rattler = pytest.importorskip("rattler_build", reason="make integrations has rattler-build")
    where = rattler.PlatformConfig(target_platform=platform)
    variants = rattler.VariantConfig.from_file_with_context(
        ROOT / "conda" / "variants.yaml", rattler.JinjaConfig(platform=where)
    )
    recipe = rattler.Stage0Recipe.from_file(ROOT / "conda" / "recipe.yaml")
    (made,) = recipe.render(variants, rattler.RenderConfig(platform=where))
    recipe = made.recipe.to_dict()
    assert recipe["package"] == {"name": PROJECT["name"], "version": PROJECT["version"]}
    run = {line.replace(" ", "") for line in recipe["requirements"]["run"]}
    assert run == {*PROJECT["dependencies"], "python"}
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    assert {*build, "pip"} <= {line.replace(" ", "") for line in recipe["requirements"]["host"]}
    about = recipe["about"]
    assert (about["summary"], about["license"]) == (PROJECT["description"], PROJECT["license"])
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

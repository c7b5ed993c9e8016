"""Facts in, one page of HTML out: no number is computed here, and nothing is fetched."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

from shiftcal._files import atomic_write
from shiftcal._optional import require
from shiftcal.report.html import _words
from shiftcal.report.html.charts.densities import densities
from shiftcal.report.html.charts.errors import errors
from shiftcal.report.html.charts.ladder import ladder
from shiftcal.report.html.charts.overview import overview
from shiftcal.report.html.charts.reliability import reliability
from shiftcal.report.html.facts import ReportFacts

# Rows of tables that are shown; the JSON in the page has more.
MOST_SHOWN = 100
_TEMPLATES = "templates"
_TONES = {
    "over": "bad",
    "under": "bad",
    "uneven": "bad",
    "worse": "bad",
    "fine": "good",
    "outside": "open",
    "unclear": "open",
    "few": "open",
}


def render(facts: ReportFacts) -> str:
    """The page as text: complete in itself, for any browser, with or without scripts.

    Raises:
        MissingExtra: If jinja2 is not installed.
    """
    document = facts.to_dict()
    style, script = _text("page.css"), _text("page.js")
    page = _environment().get_template("page.html.j2")
    return page.render(
        facts=facts,
        at=lambda path: _at(document, path),
        style=style,
        script=script,
        policy=_policy(style, script),
        document=_json(document),
        tone=_TONES[facts.verdict.kind],
        charts=_charts(facts),
        shown_sets=_nearest(facts),
        most=MOST_SHOWN,
    )


def write_report(facts: ReportFacts, path: str | os.PathLike[str]) -> Path:
    """Write the page, whole or not at all, and give back where.

    Raises:
        FileError: If the file cannot be written.
        MissingExtra: If jinja2 is not installed.
    """
    content = render(facts).encode("utf-8")
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)
    return Path(path)


def _charts(facts: ReportFacts) -> dict[str, Any]:
    before = facts.of("vanilla")
    after = sorted(facts.methods, key=lambda one: one.name != facts.method)
    return {
        "overview": overview(facts),
        "before": reliability(before, facts.shown, css="before"),
        "after": [
            (one, reliability(one, facts.shown, css="after"))
            for one in after
            if one.name != "vanilla" or facts.method == "vanilla"
        ],
        "errors": errors(facts),
        "ladder": ladder(facts),
        "densities": densities(facts),
    }


def _nearest(facts: ReportFacts) -> list[int]:
    """Positions of the sets that a table shows: all in order, or the nearest ones in order."""
    ranked = sorted(
        range(len(facts.sets)),
        key=lambda j: (not facts.sets[j].chosen, not facts.sets[j].nearest, facts.sets[j].distance),
    )
    return sorted(ranked[:MOST_SHOWN])


def _environment() -> Any:
    jinja2 = require("jinja2", extra="report", needed_by="a report in HTML")
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.filters.update(
        percent=_words.percent,
        number=_words.number,
        hundredths=lambda fraction: f"{100 * fraction:.1f}",
        points=lambda fraction: f"{100 * fraction:.2f}",
        count=lambda n: f"{n:,}",
        fixed=lambda value: f"{value:.4f}",
        rows=lambda n: _words.counted(n, "row"),
    )
    return made


def _text(name: str) -> str:
    return files("shiftcal.report.html").joinpath(_TEMPLATES, name).read_text("utf-8")


def _policy(style: str, script: str) -> str:
    """What the page may do: show itself, run its one script, and nothing else."""
    return (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; "
        f"script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _json(document: dict[str, Any]) -> str:
    """JSON that nothing in it can lead out of its element."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _at(document: dict[str, Any], path: str) -> Any:
    """A value by its place, such as ``methods.0.ece.value``; ``None`` below nothing."""
    found: Any = document
    for key in path.split("."):
        if found is None:
            return None
        found = found[int(key)] if isinstance(found, (list, tuple)) else found[key]
    return found

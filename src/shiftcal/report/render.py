"""Reports from facts: one offline HTML page, a Markdown text, or JSON. No number is computed here.

:func:`make_facts` computes the facts, :func:`write_report` writes them in the format of the suffix.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
from collections.abc import Iterable
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from shiftcal.errors import FileError, require
from shiftcal.files import atomic_write
from shiftcal.markup import code, heading, inline, paragraphs, table_cell
from shiftcal.report.charts import densities, errors, ladder, overview, reliability
from shiftcal.report.facts import ReportFacts, make_facts
from shiftcal.report.verdict import percent, ranged

__all__ = ["make_facts", "render", "to_markdown", "write_report"]

SUFFIXES = (".html", ".htm", ".md", ".json")
# Rows of tables on the page; the JSON in it has all.
MOST_SHOWN = 100
_TONES = {"fine": "good", "outside": "open", "unclear": "open", "few": "open"}


def write_report(facts: ReportFacts, path: str | os.PathLike[str]) -> Path:
    """Write the report atomically, in the format of the suffix: ``.html``, ``.md`` or ``.json``.

    Raises:
        FileError: If the suffix is another one, or the file cannot be written.
        MissingExtra: If it is HTML and jinja2 is not installed.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise FileError(f"{path} must end in .html, .md or .json, which chooses the format.")
    if suffix == ".json":
        text = json.dumps(facts.to_dict(), indent=1, allow_nan=False) + "\n"
    else:
        text = to_markdown(facts) if suffix == ".md" else render(facts)
    with atomic_write(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))
    return Path(path)


def to_markdown(facts: ReportFacts) -> str:
    """The report as Markdown: verdict, facts, methods, limits, and how to repeat it."""
    target, choice, provenance = facts.target, facts.choice, facts.provenance
    clean = facts.sets[0]
    about = {
        "Target": f"{target.name}: {target.n:,} rows, {target.n_classes} classes",
        "Bank": f"{len(facts.sets)} sets; calibration set {clean.name}, {clean.n:,} rows",
        "Method": f"{choice.method}: {choice.text}",
        "Mean confidence": percent(target.mean_confidence),
        "After calibration": percent(facts.of(facts.method).mean_confidence),
        "Accuracy by the labels (%)": ranged(target.accuracy),
        "Estimated accuracy (%)": ranged(facts.estimate),
        "Model": provenance.model or "unknown",
        "Date": provenance.date,
        "Versions": ", ".join(f"{name} {v}" for name, v in provenance.versions.items()),
    }
    accuracy = "estimated accuracy" if target.accuracy is None else "accuracy"
    rows = [
        f"| Method | T | mean confidence (%) | ECE (points) | confidence - {accuracy} (points) |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for one in facts.methods:
        mean = f"{100 * one.mean_confidence:.2f}"
        mean = f"**{mean}**" if one.name == facts.method else mean
        temperature = "–" if one.temperature is None else f"{one.temperature:.2f}"
        errors = f"{ranged(one.ece, 2)} | {ranged(one.gap, 2)}"
        rows.append(f"| {table_cell(one.name)} | {temperature} | {mean} | {errors} |")
    flags = [
        f"**{flag.code}** ({', '.join(flag.by)}): {inline(flag.meaning)} {inline(flag.todo)}"
        for flag in facts.warnings
        if flag.serious
    ]
    blocks = [
        heading(facts.title, level=1),
        f"**{inline(facts.verdict.headline)}**",
        paragraphs(facts.verdict.reason),
        _bullets(map(inline, facts.verdict.advice)),
        heading("Facts", level=2),
        _bullets(f"{name}: {inline(value)}" for name, value in about.items()),
        heading("Methods", level=2),
        "\n".join(rows),
        _bullets(f"{name}: missing. {inline(why)}" for name, why in facts.missing.items()),
        heading("Limits", level=2),
        _bullets(flags) or "Nothing was flagged.",
        heading("Repeat it", level=2),
        code(provenance.command, provenance.usage, language="sh"),
        _bullets(f"{inline(name)}: `{d}` (SHA-256)" for name, d in provenance.files.items()),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def render(facts: ReportFacts) -> str:
    """The HTML page: complete in itself, for any browser, with or without scripts.

    Raises:
        MissingExtra: If jinja2 or matplotlib is not installed.
    """
    jinja2 = require("jinja2", extra="report", needed_by="a report in HTML")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    from markupsafe import Markup  # comes with jinja2

    environment.filters["data"] = lambda value, form: Markup(_number(value, form))
    style, script = _template("page.css"), _template("page.js")
    others = [one for one in facts.methods if one.name not in ("vanilla", facts.method)]
    # The nearest sets, in the order of the bank.
    ranked = sorted(
        range(len(facts.sets)),
        key=lambda j: (not facts.sets[j].chosen, not facts.sets[j].nearest, facts.sets[j].distance),
    )
    page: str = environment.get_template("page.html.j2").render(
        facts=facts,
        style=style,
        script=script,
        # The page may show itself and run its own script, and nothing else.
        policy=(
            f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; style-src-attr "
            f"'unsafe-inline'; script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
        ),
        document=_script_json(facts.to_dict()),
        tone=_TONES.get(facts.verdict.kind, "bad"),
        level=f"{100 * facts.judging.level:g}",
        version=version("shiftcal"),
        charts={
            "overview": overview(facts),
            "before": reliability(facts.of("vanilla"), facts.shown, colour="before"),
            "after": [
                (one, reliability(one, facts.shown, colour="after"))
                for one in (facts.of(facts.method), *others)
            ],
            "errors": errors(facts),
            "ladder": ladder(facts),
            "densities": densities(facts),
        },
        shown_sets=sorted(ranked[:MOST_SHOWN]),
        most=MOST_SHOWN,
    )
    return page


def _number(value: float | None, form: str) -> str:
    """A number as HTML that tables sort by; a dash for none."""
    if value is None or not math.isfinite(value):
        return "–"
    text = {
        "percent": f"{100 * value:.1f}\u00a0%",
        "hundredths": f"{100 * value:.1f}",
        "points": f"{100 * value:.2f}",
        "count": f"{value:,}",
        "fixed": f"{value:.4f}",
        "number": f"{value:.3g}",
    }[form]
    return f'<data value="{value}">{text}</data>'


def _template(name: str) -> str:
    return files("shiftcal.report").joinpath("templates", name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _script_json(document: dict[str, Any]) -> str:
    """JSON that cannot end the script element it is in."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    return text.translate({ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&"})

"""What the demo says at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shiftcal.cli import _tables
from shiftcal.cli._called import pasted

if TYPE_CHECKING:
    from shiftcal.demo import Found, Met
    from shiftcal.report.html.evidence import MethodFacts

_HEADER = ("method", "T", "confidence", "ECE", "95% interval")


def text_of(found: Found) -> str:
    """All of it: the model, the bank, a table for each target, and where to go from here."""
    return "\n".join(_lines(found))


def _lines(found: Found) -> Iterator[str]:
    yield (
        f"The model: {found.made}. On the {found.n_calibration:,} {found.things} it is calibrated "
        f"with: accuracy {found.clean_accuracy:.4f}, mean confidence {found.clean_confidence:.4f}."
    )
    yield (
        f"The bank: {found.n_sets} sets, which are those {found.things} as they are, and with "
        f"{', '.join(found.corruptions)}, each at five severities."
    )
    for met in found.met:
        yield ""
        yield from _target(met)
    yield ""
    yield (
        "vanilla is the model as it is. A good row has its confidence near the true accuracy, and "
        "a small ECE. All are fractions, not percent."
    )
    yield (
        "Labels of the new data were used for the true accuracies, the verdicts and ECE; no method "
        "and no estimate saw them."
    )
    yield (
        f"{found.remark} When to use which method, and when none: page 'Choose a method' of the "
        "docs (docs/choose.md in a clone)."
    )
    yield ""
    yield from _where(found)
    yield ""
    yield "Next, with the files just made:"
    for words in found.next:
        yield f"  {pasted(words)}"
    yield ""
    yield f"({found.seconds:.0f} s)"


def _where(found: Found) -> Iterator[str]:
    if found.report is None:
        yield f"No report was written: {found.no_report}"
    else:
        yield f"The report: {found.report}"
        yield f"  to open it: {found.report.resolve().as_uri()}"


def _target(met: Met) -> Iterator[str]:
    facts = met.facts
    title = met.target.title
    yield f"{title[:1].upper()}{title[1:]} ({met.scores}, {facts.target.n:,} rows)"
    accuracy, estimate = facts.target.accuracy, facts.estimate
    assert accuracy is not None  # all targets of a demonstration have labels
    told = f"  true accuracy {accuracy.value:.4f}"
    if estimate is not None:
        ends = f"{estimate.low:.4f} to {estimate.high:.4f}"
        told += f"; estimated without labels: {estimate.value:.4f} ({ends})"
    yield told
    yield f"  {facts.verdict.headline}"
    rows = [_row(one) for one in facts.methods]
    for line in _tables.table(_HEADER, rows, right=_HEADER[1:]).splitlines():
        yield f"  {line}"


def _row(method: MethodFacts) -> list[str]:
    error = method.ece
    assert error is not None
    ends = (
        "-" if error.low is None or error.high is None else f"{error.low:.4f} to {error.high:.4f}"
    )
    return [
        method.name,
        _tables.temperature(method.temperature),
        _tables.fraction(method.mean_confidence),
        _tables.fraction(error.value),
        ends,
    ]

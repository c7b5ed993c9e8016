"""``shiftcal demo``: the whole job on data that everybody has."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shiftcal.cli.options import Json
from shiftcal.cli.output import (
    Report,
    complain,
    fraction,
    pasted,
    progress,
    stdout_kept_for_results,
    table,
    temperature,
)
from shiftcal.cli.scoring import reporting

if TYPE_CHECKING:
    from shiftcal.demo import DemoResult, TargetResult


def demo(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder for the files: a new one, or its own."
        ),
    ] = Path("shiftcal-demo"),
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Use CIFAR-10 and a ResNet-20 in this folder instead of scikit-learn's digits; "
            "needs torch.",
        ),
    ] = None,
    as_json: Json = False,
) -> Report:
    """See it work in a minute: model, shift, methods, report."""
    words = ["shiftcal", "demo", "-o", str(output)]
    words += [] if data is None else ["--data", str(data)]
    steps = count(1)
    with stdout_kept_for_results():
        from shiftcal.demo import STEPS, cifar_subject, digits_subject, run_demo

        @contextmanager
        def step(description: str, *, own_bar: bool = False) -> Iterator[None]:
            complain("progress", f"{next(steps)} of {STEPS}: {description}")
            if own_bar:
                yield
            else:
                with progress(f"{description} ..."):
                    yield

        try:
            result = run_demo(
                digits_subject if data is None else partial(cifar_subject, data.expanduser()),
                "digits" if data is None else "cifar10",
                output,
                step=step,
                reporting=reporting(),
                command=shlex.join(words),
            )
        except KeyboardInterrupt:
            complain("note", "the same command resumes where this one stopped.")
            raise
    return Report("demo", result.to_dict(), "\n".join(_lines(result)), as_json)


def _lines(result: DemoResult) -> Iterator[str]:
    subject = result.subject
    yield (
        f"The model: {subject.made}. On its {result.n_calibration:,} calibration {subject.things}: "
        f"accuracy {result.clean_accuracy:.4f}, mean confidence {result.clean_confidence:.4f}."
    )
    yield (
        f"The bank: {result.n_sets} sets, which are those {subject.things} as they are, and with "
        f"{', '.join(subject.corruptions)}, each at five severities."
    )
    for one in result.targets:
        yield ""
        yield from _target_lines(one)
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
        f"{subject.remark} When to use which method, and when none: page 'Choose a method' of the "
        "docs (docs/choose.md in a clone)."
    )
    yield ""
    if result.report is None:
        yield f"No report was written: {result.no_report}"
    else:
        yield f"The report: {result.report}"
        yield f"  to open it: {result.report.resolve().as_uri()}"
    yield "\nNext, with the files just made:"
    for words in result.next:
        yield f"  {pasted(words)}"
    yield f"\n({result.seconds:.0f} s)"


def _target_lines(one: TargetResult) -> Iterator[str]:
    facts, title = one.facts, one.target.title
    yield f"{title[:1].upper()}{title[1:]} ({one.scores}, {facts.target.n:,} rows)"
    accuracy, estimate = facts.target.accuracy, facts.estimate
    assert accuracy is not None  # all targets of the demo have labels
    text = f"  true accuracy {accuracy.value:.4f}"
    if estimate is not None:
        ends = f"{estimate.low:.4f} to {estimate.high:.4f}"
        text += f"; estimated without labels: {estimate.value:.4f} ({ends})"
    yield text
    yield f"  {facts.verdict.headline}"
    rows = []
    for method in facts.methods:
        error = method.ece
        assert error is not None
        ends = "-" if error.low is None else f"{error.low:.4f} to {error.high:.4f}"
        means = (temperature(method.temperature), fraction(method.mean_confidence))
        rows.append([method.name, *means, fraction(error.value), ends])
    header = ("method", "T", "confidence", "ECE", "95% interval")
    for line in table(header, rows, right=header[1:]).splitlines():
        yield f"  {line}"

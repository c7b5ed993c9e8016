"""``shiftcal demo``: the whole job on data that everybody has."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from shiftcal.cli import inputs, options
from shiftcal.cli.output import (
    Report,
    between,
    complain,
    pasted,
    stdout_kept_for_results,
    table,
)


def demo(output: options.OutputFolder = Path("shiftcal-demo")) -> Report:
    """See it work in a minute: model, shift, methods, report.

    Example:
        shiftcal demo

    Args:
        output: Folder for the files: a new one, or that of an earlier demo.
    """
    steps = count(1)
    with stdout_kept_for_results():
        from shiftcal.demo import STEPS, run_demo

        @contextmanager
        def step(description: str, **_: object) -> Iterator[None]:
            complain("progress", f"{next(steps)} of {STEPS}: {description}")
            yield

        command = shlex.join(["shiftcal", "demo", "-o", str(output)])
        try:
            result = run_demo(output, step=step, reporting=inputs.reporting(), command=command)
        except KeyboardInterrupt:
            complain("note", "the same command resumes where this one stopped.")
            raise
    return Report(result, "\n".join(_lines(result)))


def _lines(result: dict[str, Any]) -> Iterator[str]:
    yield (
        f"The model: {result['model']}. On its {result['n_calibration']:,} calibration digits: "
        f"accuracy {result['clean_accuracy']:.4f}, "
        f"mean confidence {result['clean_confidence']:.4f}."
    )
    yield (
        f"The bank: {result['n_sets']} sets, which are those digits as they are, and with "
        f"{', '.join(result['corruptions'])}, each at five severities."
    )
    header = ("method", "T", "confidence", "ECE", "95% interval")
    for target in result["targets"]:
        title, about, estimate = target["title"], target["target"], target["estimate"]
        yield f"\n{title[:1].upper()}{title[1:]} ({target['scores']}, {about['n']:,} rows)"
        ends = between(estimate["low"], estimate["high"])
        yield (
            f"  true accuracy {about['accuracy']['value']:.4f}; estimated without labels: "
            f"{estimate['value']:.4f} ({ends})"
        )
        yield f"  {target['verdict']['headline']}"
        rows = []
        for one in target["methods"]:
            ece, ends = one["ece"]["value"], between(one["ece"]["low"], one["ece"]["high"])
            chosen = one["selection"]["temperature"]
            rows.append([one["name"], chosen, one["mean_confidence"], ece, ends])
        for line in table(header, rows).splitlines():
            yield f"  {line}"
    yield (
        "\nvanilla is the model as it is. A good row has its confidence near the true accuracy, "
        "and a small ECE. All are fractions, not percent.\n"
        "Labels of the new data were used for the true accuracies, the verdicts and ECE; no method "
        "and no estimate saw them.\n"
        "An example, not a measurement: bank and targets were picked with labels in sight. When to "
        "use which method, and when none: page 'Choose a method' of the docs (docs/how-to/choose.md "
        "in a clone).\n"
    )
    yield f"The report: {result['report']}"
    yield f"  to open it: {Path(result['report']).resolve().as_uri()}"
    yield "\nNext, with the files just made:"
    for words in result["next"]:
        yield f"  {pasted(words)}"
    yield f"\n({result['seconds']:.0f} s)"

"""``shiftcal demo``: what calibration does to a real network, and the whole job on digits."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from textwrap import fill
from typing import Any

from shiftcal.cli import inputs, options
from shiftcal.cli.output import (
    Report,
    between,
    complain,
    pasted,
    progress,
    stdout_kept_for_results,
    table,
)

# Of lines of text.
_WIDTH = 88


def demo(output: options.MaybeOutputFolder = None, digits: bool = False) -> Report:
    """See the effect on a real network under nine shifts. Needs no data.

    Example:
        shiftcal demo

    Args:
        output: Folder for the files: a new one, or that of an earlier demo; default:
            shiftcal-demo, or shiftcal-digits.
        digits: Do the whole job instead, on scikit-learn's digits: train a network, corrupt images,
            build a bank, calibrate, report.
    """
    if digits:
        return _digits(output or Path("shiftcal-digits"))
    from shiftcal.demo import run_demo

    with progress("calibrating a ResNet-20 under nine shifts"):
        result = run_demo(output or Path("shiftcal-demo"))
    return Report(result, "\n".join(_example_lines(result)))


def _example_lines(result: dict[str, Any]) -> Iterator[str]:
    from shiftcal.demo import MAIN, SHOWN

    names, targets = result["methods"], result["targets"]
    main = names[MAIN]
    yield fill(
        f"ResNet-20 on {len(targets)} sets of {targets[0]['n']:,} CIFAR-10 test images. The bank "
        f"has {result['n_calibration']:,} other images with labels, clean and under "
        f"{len(result['corruptions'])} other corruptions. No method sees a label of a target.",
        _WIDTH,
    )
    yield ""
    shares = ("accuracy", "realigned")
    rows = [
        [
            one["target"],
            *(100 * one[key] for key in shares),
            *(100 * e for e in one["ece"].values()),
        ]
        for one in [*targets, {"target": "mean", **result["mean"]}]
    ]
    raw, *others = names.values()
    header = ["in percent", "accuracy", "after Realign", f"ECE: {raw}", *others]
    yield table(header, rows, number=".1f")
    best, *_, worst = sorted(targets, key=lambda one: float(one["ece"][MAIN]))
    yield (
        f"\n{main}, best case: {best['target']}, {_effect(best, MAIN)}; worst case: "
        f"{worst['target']}, {_effect(worst, MAIN)}."
    )
    shown = next(one for one in targets if one["target"] == SHOWN)
    before, after = (_percent(shown["mean_confidence"][name]) for name in ("vanilla", MAIN))
    estimate = shown["estimated_accuracy"]
    low, high = (f"{100 * estimate[end]:.0f}" for end in ("low", "high"))
    yield fill(
        f"In {SHOWN} the model is {before} confident and {_percent(shown['accuracy'])} accurate. "
        f"After {main} it is {after} confident; the accuracy estimated without labels is "
        f"{_percent(estimate['value'])} ({low} to {high}).",
        _WIDTH,
    )
    name, hurt = max(
        ((name, one) for one in targets for name in names if name != "vanilla"),
        key=lambda pair: float(pair[1]["ece"][pair[0]] - pair[1]["ece"]["vanilla"]),
    )
    if hurt["ece"][name] > hurt["ece"]["vanilla"]:
        yield (
            f"Known failure: {names[name]} makes the {hurt['target']} target worse, "
            f"{_effect(hurt, name)}."
        )
    yield f"\nThe report: {result['report']}\nNext:"
    for words in result["next"]:
        yield f"  {pasted(words)}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _effect(target: dict[str, Any], method: str) -> str:
    return f"{100 * target['ece']['vanilla']:.1f} to {100 * target['ece'][method]:.1f}"


def _digits(output: Path) -> Report:
    steps = count(1)
    with stdout_kept_for_results():
        from shiftcal.demo import STEPS, run_digits

        @contextmanager
        def step(description: str, **_: object) -> Iterator[None]:
            complain("progress", f"{next(steps)} of {STEPS}: {description}")
            yield

        command = shlex.join(["shiftcal", "demo", "--digits", "-o", str(output)])
        try:
            result = run_digits(output, step=step, reporting=inputs.reporting(), command=command)
        except KeyboardInterrupt:
            complain("note", "the same command resumes where this one stopped.")
            raise
    return Report(result, "\n".join(_digits_lines(result)))


def _digits_lines(result: dict[str, Any]) -> Iterator[str]:
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
        "\nvanilla is the model as it is. A good row has its confidence near the true accuracy and "
        "a small ECE; all are fractions.\n"
        "Labels of the new digits are used only to measure: no method sees them. Bank and "
        "targets were picked with labels in sight: an example, not a measurement.\n"
    )
    yield f"The report: {result['report']}"
    yield f"  to open it: {Path(result['report']).resolve().as_uri()}"
    yield "\nNext, with the files just made:"
    for words in result["next"]:
        yield f"  {pasted(words)}"
    yield f"\n({result['seconds']:.0f} s)"

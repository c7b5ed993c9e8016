"""A calibration card as a page of markdown, section by section."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from shiftcal._markdown_text import heading, inline, paragraphs
from shiftcal.cards._measured_tables import on_bank, on_target
from shiftcal.cards._text import (
    NONE,
    cell,
    code,
    count,
    facts,
    fenced,
    fraction,
    table,
    temperature,
)
from shiftcal.cards.parts import Calibration, Model, Target

if TYPE_CHECKING:
    from shiftcal.cards.card import CalibrationCard
    from shiftcal.methods._selection import Selection

# More classes than these are told by their rarest and their most frequent.
_MOST_CLASSES = 30
_BELONGS = {
    "here": "fitted on this bank for the card",
    "same-ladder": "came fitted; its sets are those of this bank",
    "same-answer": "came fitted; a fit on this bank gives the same confidences",
    "not-checked": "came fitted; that it was on this bank could not be checked",
}


def page(card: CalibrationCard) -> str:
    """The whole page."""
    sections = {
        "": _in_short(card),
        "What was calibrated": _model(card.model),
        "Data": _data(card),
        "Bank": _bank(card),
        "Method": _method(card),
        "Choice for the target": _choice(card),
        "Measured on the bank": on_bank(card),
        "Measured on the target": on_target(card),
        "Accuracy estimated without labels": _estimate(card),
        "Limits": _limits(card),
        "How to make it again": _again(card),
    }
    parts = [heading(card.title, level=1), paragraphs(card.notes)]
    for name, content in sections.items():
        told = [part for part in content if part]
        if told:
            parts += [f"## {name}" if name else "", *told]
    return "\n\n".join(part for part in parts if part) + "\n"


def _in_short(card: CalibrationCard) -> Iterator[str]:
    lines = [f"Method: {code(card.method.name)}, on a bank of {count(len(card.bank), 'set')}."]
    if card.choice is not None:
        lines.append(f"Chosen: {_chosen(card.choice)}.")
        flags = [code(flag.code) for flag in card.choice.flags]
        lines.append(f"Flags: {', '.join(flags) if flags else 'none'}.")
    if card.on_target is not None and card.on_target.after is not None:
        before, after = card.on_target.before["ece"], card.on_target.after["ece"]
        lines.append(
            f"ECE on the target: {fraction(before.value)} before, {fraction(after.value)} after."
        )
    elif card.estimate is not None:
        lines.append(
            f"Accuracy on the target, estimated: {fraction(card.estimate.value)} "
            f"({fraction(card.estimate.low)} to {fraction(card.estimate.high)})."
        )
    yield "\n".join(f"- {line}" for line in lines)
    yield "Accuracy, confidence and ECE are fractions, not percent."


def _chosen(choice: Selection) -> str:
    parts = []
    if choice.set_name is not None:
        parts.append(f"set {inline(choice.set_name)}")
    if choice.temperature is not None:
        told = f"T = {temperature(choice.temperature)}"
        if (interval := choice.temperature_interval) is not None:
            told += f" ({temperature(interval.low)} to {temperature(interval.high)})"
        parts.append(told)
    return ", ".join(parts) or "a map that is no single temperature"


def _model(model: Model) -> Iterator[str]:
    preprocessing = None
    if model.preprocessing is not None:
        preprocessing = json.dumps(model.preprocessing, sort_keys=True)
    yield facts(
        [
            ("model", cell(model.spec)),
            ("fingerprint of its weights", cell(model.fingerprint)),
            ("preprocessing", cell(preprocessing)),
            ("digest of both", cell(model.digest)),
            ("gives", cell(model.input)),
            ("classes", str(model.n_classes)),
        ]
    )


def _data(card: CalibrationCard) -> Iterator[str]:
    calibration, target = card.calibration, card.target
    header = ["", "calibration (clean set)", "target"]
    rows = [
        ["rows", f"{calibration.n:,}", NONE if target is None else f"{target.n:,}"],
        ["labelled", "yes", _labelled(target)],
        ["from", cell(calibration.images), NONE if target is None else cell(target.source)],
        ["SHA-256", code(calibration.digest), NONE if target is None else code(target.digest)],
    ]
    yield table(header, rows, left=3)
    if calibration.images_digest is not None:
        yield f"Digest of the calibration images: {code(calibration.images_digest)}"
    yield _class_table(card.model, calibration, target)


def _labelled(target: Target | None) -> str:
    if target is None:
        return NONE
    return "no" if target.label_counts is None else "yes"


def _class_table(model: Model, calibration: Calibration, target: Target | None) -> str:
    names = model.classes or tuple(str(c) for c in range(model.n_classes))
    counts = calibration.label_counts
    if len(names) > _MOST_CLASSES:
        return (
            f"{len(names)} classes; the rarest has {count(min(counts))} in the calibration set, "
            f"the most frequent {count(max(counts))}. The counts are in the JSON."
        )
    theirs = None if target is None else target.label_counts
    header = ["class", "calibration rows", "share"]
    rows = [
        [cell(name), f"{n:,}", _share(n, calibration.n)]
        for name, n in zip(names, counts, strict=True)
    ]
    if target is not None and theirs is not None:
        header += ["target rows", "share in target"]
        rows = [[*row, f"{n:,}", _share(n, target.n)] for row, n in zip(rows, theirs, strict=True)]
    return table(header, rows)


def _share(n: int, of: int) -> str:
    return fraction(n / of)


def _bank(card: CalibrationCard) -> Iterator[str]:
    header = ["set", "corruption", "severity", "rows", "accuracy", "mean confidence", "T"]
    yield table(
        header,
        [
            [
                cell(s.name),
                cell(s.corruption),
                NONE if s.severity is None else str(s.severity),
                f"{s.n:,}",
                fraction(s.accuracy),
                fraction(s.mean_confidence),
                temperature(s.temperature) + ("" if s.converged else " (end of range)"),
            ]
            for s in card.bank
        ],
        left=2,
    )
    yield "T is the temperature of least NLL on all rows of the set."


def _method(card: CalibrationCard) -> Iterator[str]:
    method = card.method
    yield paragraphs(f"{method.name}: {method.summary}")
    settings = [(cell(name), cell(json.dumps(value))) for name, value in method.settings.items()]
    yield facts([*settings, ("fitted", cell(_BELONGS.get(method.fitted, method.fitted)))])


def _choice(card: CalibrationCard) -> Iterator[str]:
    choice = card.choice
    if choice is None:
        yield "No target was given, so nothing was chosen."
        return
    known = [
        ("set", cell(choice.set_name)),
        ("T", temperature(choice.temperature)),
        ("interval of T", _interval_of_t(choice)),
        ("target rows looked at", NONE if choice.n_target is None else f"{choice.n_target:,}"),
        ("mean raw confidence", fraction(choice.mean_confidence)),
        ("chosen by the distance", cell(choice.distance)),
        ("margin to the next set", fraction(choice.margin)),
        *((cell(name), temperature(value)) for name, value in choice.details.items()),
    ]
    yield facts([(name, value) for name, value in known if value != NONE])
    if choice.distances and len(choice.distances) == len(card.bank):
        pairs = zip(card.bank, choice.distances, strict=True)
        yield table(["set", "distance"], [[cell(s.name), fraction(d)] for s, d in pairs])
    if choice.flags:
        rows = [[cell(flag.code), cell(flag.message)] for flag in choice.flags]
        yield table(["flag", "what it means"], rows, left=2)
    else:
        yield "No flag was raised."


def _interval_of_t(choice: Selection) -> str:
    interval = choice.temperature_interval
    if interval is None:
        return NONE
    ends = f"{temperature(interval.low)} to {temperature(interval.high)}"
    return f"{ends} (level {interval.level:g})"


def _estimate(card: CalibrationCard) -> Iterator[str]:
    found = card.estimate
    if found is None:
        return
    measured = None if card.on_target is None else card.on_target.before["accuracy"].value
    yield facts(
        [
            ("estimator", cell(found.estimator)),
            ("accuracy", fraction(found.value)),
            ("interval", f"{fraction(found.low)} to {fraction(found.high)}"),
            ("level", f"{found.level:g}"),
            ("accuracy by the labels", fraction(measured)),
        ]
    )
    if found.flags:
        rows = [[cell(flag.code), cell(flag.message)] for flag in found.flags]
        yield table(["flag", "what it means"], rows, left=2)


def _limits(card: CalibrationCard) -> Iterator[str]:
    yield "\n".join(f"- **{inline(one.code)}.** {inline(one.message)}" for one in card.limits)


def _again(card: CalibrationCard) -> Iterator[str]:
    told, judging = card.provenance, card.judging
    if told.command:
        yield fenced(told.command)
    yield facts(
        [
            ("date", cell(told.date)),
            ("seed of folds and bootstrap", str(judging.seed)),
            *((cell(name), cell(number)) for name, number in told.versions.items()),
        ]
    )
    if told.files:
        rows = [[cell(name), cell(digest)] for name, digest in told.files.items()]
        yield table(["file", "SHA-256"], rows, left=2)
    yield "The JSON beside this page has the same facts, with all digits."

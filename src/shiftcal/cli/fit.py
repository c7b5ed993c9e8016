"""``shiftcal fit``: surrogate sets in, a fitted method out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli import output as _tables
from shiftcal.cli.inputs import NEEDS_MIXED, check_output, lacking_features, read_bank
from shiftcal.cli.options import (
    Bank,
    BankPlace,
    Json,
    Normalize,
    SourceTrain,
    Surrogates,
    choose_settings,
    named,
    shown_settings,
)
from shiftcal.cli.output import Report, printable, progress
from shiftcal.errors import FileError, InputError

if TYPE_CHECKING:
    from shiftcal.methods import Method
    from shiftcal.surrogates import SurrogateBank


def fit(
    method: Annotated[
        str, typer.Option(metavar="NAME", help="Method to fit; `shiftcal list` lists them.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write the fitted method."),
    ],
    bank_place: BankPlace = None,
    surrogate: Surrogates = None,
    bank: Bank = None,
    source_train: SourceTrain = None,
    map_: Annotated[
        str | None,
        typer.Option("--map", metavar="NAME", help="Calibration map inside sts and sac, by name."),
    ] = None,
    distance: Annotated[
        str | None,
        typer.Option(
            metavar="mean|ks|wasserstein|atc|atc-entropy",
            help="How sac compares target and surrogate sets.",
        ),
    ] = None,
    peek: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Let sac look at N random target rows only."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Seed of whatever the method draws at random."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any other setting of the method, such as reading=free (transcal), or of its map "
            "after 'map.', such as map.n_bins=7 (--map histogram). Repeatable.",
        ),
    ] = None,
    normalize: Normalize = False,
    as_json: Json = False,
) -> Report:
    """Fit a method on labelled surrogate sets and save it."""
    from shiftcal import methods

    cls = methods.get(method)
    if cls.uses_mixed:
        raise InputError(f"{cls.name} {NEEDS_MIXED}")
    options = {"map": map_, "distance": distance, "peek": peek, "seed": seed}
    settings = choose_settings(cls, options, set_ or [])
    if source_train is not None and not cls.uses_features:
        raise InputError(f"{cls.name} uses no features. Leave --source-train out.")
    files = named((bank_place,), bank=bank, surrogates=surrogate, source_train=source_train)
    check_output(output, inputs=files.all())
    if output.suffix.lower() != ".json":
        raise FileError(
            f"{output} must end in .json: that is what a fitted method is written as. "
            f"Name it {output.with_suffix('.json')}."
        )
    from shiftcal.scores import read_features

    sets = read_bank(files.bank, files.surrogates, normalize=normalize)
    features = None if source_train is None else read_features(source_train)
    lacking = lacking_features(source=features, clean=sets.clean.features)
    if cls.uses_features and lacking:
        raise InputError(f"{cls.name} needs {lacking}. Later it needs those of the target too.")
    fitted: Method = cls(input=sets.input, **settings)
    with progress(f"fitting {method}"):
        fitted.fit(sets, source_features=features)
    fitted.save(output)
    document = _document(fitted, sets, output)
    return Report("fit", document, _text(printable(document)), as_json)


def _document(fitted: Method, sets: SurrogateBank, output: Path) -> dict[str, Any]:
    from shiftcal.methods.method import temperature_of

    own = getattr(fitted, "map_", None)
    return {
        "method": fitted.name,
        "output": output,
        "input": fitted.input,
        "n_classes": fitted.n_classes_,
        "classes": fitted.class_names_,
        "settings": shown_settings(fitted),
        "first_set_only": not fitted.uses_bank,
        "temperature": None if own is None else temperature_of(own),
        "sets": [
            {
                "name": s.name,
                "corruption": s.corruption,
                "severity": s.severity,
                "n": s.n,
                "mean_confidence": s.mean_confidence,
                "accuracy": s.accuracy,
                "temperature": t,
            }
            for s, t in zip(sets.summaries(), _temperatures(fitted, len(sets)), strict=True)
        ],
    }


def _temperatures(fitted: Method, n_sets: int) -> Sequence[float | None]:
    """That of every set, where the method has calibrated each by itself."""
    from shiftcal.methods.method import temperature_of

    known: Sequence[float] | None = getattr(fitted, "temperatures_", None)
    if known is not None:
        return known
    maps = getattr(fitted, "maps_", None)
    return [None] * n_sets if maps is None else [temperature_of(m) for m in maps]


def _text(document: dict[str, Any]) -> str:
    rows = [
        [
            str(position),
            s["name"],
            f"{s['n']:,}",
            _tables.fraction(s["mean_confidence"]),
            _tables.fraction(s["accuracy"]),
            _tables.temperature(s["temperature"]),
        ]
        for position, s in enumerate(document["sets"], start=1)
    ]
    used = 1 if document["first_set_only"] else len(rows)
    header = ["set", "name", "rows", "mean confidence", "accuracy", "T"]
    lines = [
        _tables.table(header, rows, right=[h for h in header if h != "name"]),
        "",
        f"{document['method']} fitted on {used} set{'s' * (used > 1)} of "
        f"{document['n_classes']} classes ({document['input']}), written to {document['output']}",
    ]
    if document["temperature"] is not None:
        lines.insert(-1, f"T = {_tables.temperature(document['temperature'])}")
    if used < len(rows):
        lines.insert(-1, f"{document['method']} uses the first set only ({rows[0][1]})")
    return "\n".join(lines)

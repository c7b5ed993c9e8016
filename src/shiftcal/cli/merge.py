"""``shiftcal merge``: the parts of a job in, one scores file or its statistics out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli import output as _tables
from shiftcal.cli.inputs import check_output, check_replaced
from shiftcal.cli.options import Json
from shiftcal.cli.output import Report, printable, progress
from shiftcal.errors import InputError

if TYPE_CHECKING:
    from shiftcal.scoring.statistics import ScoreStatistics


def merge(
    parts: Annotated[
        list[Path],
        typer.Argument(
            metavar="PART...",
            help="All parts of one job, in any order: scores files that `shiftcal score --shard "
            "i/n` wrote, or statistics files.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write: .npz for all scores in the order of the images, .json for "
            "their statistics only.",
        ),
    ],
    statistics: Annotated[
        bool,
        typer.Option(
            "--statistics",
            "--statistics-only",
            help="Write statistics only, whatever FILE ends in.",
        ),
    ] = False,
    as_json: Json = False,
) -> Report:
    """Merge what was scored in shards, and judge the whole."""
    only = statistics or output.suffix.lower() == ".json"
    _check_suffix(output, only=only)
    check_output(output, inputs=parts)
    check_replaced(output, holds="statistics" if only else "scores")
    with progress(f"merging {_tables.count_of(len(parts), 'part')}"):
        from shiftcal.scoring.merge import find_parts, merge_scores, merge_statistics

        found = find_parts(parts)
        if only:
            total = merge_statistics(found)
            total.write(output)
        else:
            total = merge_scores(found, output)
    document = {
        "output": output,
        "holds": "statistics" if only else "scores",
        "n_parts": len(found),
        "n_images": found[0].part.n_images,
        "n": total.n,
        "n_classes": total.k,
        "mean_confidence": total.mean_confidence,
        "metrics": _metrics(total),
    }
    return Report("merge", document, _text(printable(document)), as_json)


def _check_suffix(output: Path, *, only: bool) -> None:
    suffix = output.suffix.lower()
    if only and suffix in (".npz", ".npy", ".csv", ".parquet", ".safetensors"):
        raise InputError(
            f"--statistics writes JSON, and {output} is named as a scores file. "
            "Name one that ends in .json, or leave --statistics out."
        )
    if not only and suffix != ".npz":
        raise InputError(
            f"{output} must end in .npz for scores or in .json for statistics; got "
            f"{output.suffix!r}."
        )


def _metrics(total: ScoreStatistics) -> dict[str, Any] | None:
    """What labels tell; ``None`` without them."""
    if not total.labelled:
        return None
    fit = total.temperature_fit()
    return {
        "accuracy": total.accuracy(),
        "ece": total.ece(),
        "nll": total.nll(),
        "brier": total.brier(),
        "temperature": fit.temperature,
        "temperature_status": fit.status.code,
    }


def _text(document: dict[str, Any]) -> str:
    pairs = [
        ("parts", f"{document['n_parts']:,}"),
        ("rows", _rows(document)),
        ("classes", f"{document['n_classes']:,}"),
        ("mean confidence", _tables.fraction(document["mean_confidence"])),
    ]
    found = document["metrics"]
    if found is not None:
        pairs += [(name, _tables.fraction(found[name])) for name in ("accuracy", "ece", "nll")]
        end = "" if found["temperature_status"] == "converged" else " (an end of its range)"
        pairs.append(("temperature", f"{_tables.temperature(found['temperature'])}{end}"))
    written = f"{document['holds']} written to {document['output']}"
    return f"{_tables.facts(pairs)}\n\n{written}"


def _rows(document: dict[str, Any]) -> str:
    n, images = document["n"], document["n_images"]
    others = "the other" if images - n == 1 else "the others"
    return f"{n:,}" if n == images else f"{n:,} of {images:,} images ({others} gave none)"

"""``shiftcal reproduce``: a plan in, tables and figures out."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli import output as _tables
from shiftcal.cli.inputs import refuse_inside, reporting
from shiftcal.cli.options import (
    Address,
    CacheFolder,
    CpusPerWorker,
    EngineName,
    GpusPerWorker,
    Workers,
)
from shiftcal.cli.output import Report, complain, complain_at_length, stdout_kept_for_results
from shiftcal.errors import FileError, InputError, MissingData

if TYPE_CHECKING:
    from shiftcal.report.tables import Cell, Column, Table
    from shiftcal.studies import Done
    from shiftcal.studies.plan import AnyPlan

_PAGE = "report.md"


def document_of(done: Done) -> dict[str, Any]:
    """A finished run for programs."""
    names = done.findings
    return {
        "folder": done.folder,
        "report": done.folder / _PAGE,
        "tables": [done.folder / "tables" / f"{name}.csv" for name in names.tables],
        "figures": [done.folder / "figures" / f"{name}.png" for name in names.figures],
        "images_scored": done.scored,
        **({} if done.trained is None else {"trained": done.trained}),
        "evaluated": done.evaluated,
        "records": done.records,
        "left_out": [each.strip() for each in done.missing],
        "seconds": done.seconds,
    }


def text_of(done: Done) -> str:
    """The same for people: the first table, and where the rest is."""
    blocks = []
    if done.findings.tables:
        blocks.append(table_text(next(iter(done.findings.tables.values()))))
    if done.missing:
        blocks.append("left out, because it is missing:\n" + "\n".join(done.missing))
    stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in done.seconds.items())
    trained = [] if done.trained is None else [("trained", f"{done.trained:,} in this run")]
    blocks.append(
        _tables.facts(
            [
                ("scored", f"{_tables.count_of(done.scored)} in this run"),
                *trained,
                ("evaluated", f"{done.evaluated:,} of {done.records:,} in this run"),
                ("seconds", stages),
                ("report", str(done.folder / _PAGE)),
            ]
        )
    )
    return "\n\n".join(block for block in blocks if block)


def table_text(table: Table) -> str:
    """A table of a study in aligned columns, with its title and its note."""
    header = [table.corner or "", *(_header(column) for column in table.columns)]
    rows = [
        [row.label, *(_cell(*pair) for pair in zip(row.cells, table.columns, strict=True))]
        for row in table.rows
    ]
    words = [name for i, name in enumerate(header[1:]) if not table.is_text(i)]
    grid = _tables.table(header, rows, right=words)
    return "\n".join(part for part in (table.title, grid, table.note) if part)


def _header(column: Column) -> str:
    return f"{column.group} {column.header}" if column.group else column.header


def _cell(cell: Cell, column: Column) -> str:
    from shiftcal.report.tables import half_width, printed

    if cell.value is None or isinstance(cell.value, str):
        return cell.value or "-"
    text = printed(cell.value, column.digits)
    if cell.low is None or cell.high is None:
        return text
    half = half_width(cell.value, cell.low, cell.high, digits=column.digits)
    ends = (printed(end, column.digits) for end in (cell.low, cell.high))
    return f"{text} [{', '.join(ends)}]" if half is None else f"{text} ± {half}"


_PLAN = "plan.toml"
# Folders of which a run has one as soon as it has begun.
_BEGUN = ("scores", "features", "trainings")


def reproduce(
    study: Annotated[
        str | None,
        typer.Argument(
            metavar="STUDY",
            help="A study by name (--list), your own plan (.toml), or the folder of a run, whose "
            "tables and figures are made again from its stored scores.",
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="What {data} stands for in the plan.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder of the run; default: runs/STUDY.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="The model, as for `shiftcal bank`, instead of the plan's; or the backbone, as "
            "for `shiftcal train`. Your own plan never loads a model that runs code or is "
            "downloaded: name such a model here.",
        ),
    ] = None,
    skip_missing: Annotated[
        bool,
        typer.Option(
            "--skip-missing",
            help="Run without natural targets, training images and domains that are missing.",
        ),
    ] = False,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
    cpus_per_worker: CpusPerWorker = None,
    gpus_per_worker: GpusPerWorker = None,
    cache: CacheFolder = None,
    list_studies: Annotated[
        bool, typer.Option("--list", help="List the studies that come with shiftcal, and stop.")
    ] = False,
    show_plan: Annotated[
        bool,
        typer.Option("--show-plan", help="Print the plan, to copy and edit, and stop."),
    ] = False,
) -> Report:
    """Run a study, from images to tables and figures. Run again, it resumes.

    Example:
        shiftcal reproduce synthetic --data data -o runs/synthetic
    """
    if list_studies:
        return _listed()
    if study is None:
        raise InputError(
            "STUDY must be the name of a study, a plan or the folder of a run. The names: "
            "shiftcal reproduce --list"
        )
    if show_plan:
        return _shown(study)
    from shiftcal import studies
    from shiftcal.numerics.jit import thread_count
    from shiftcal.scoring.engines import engine_of

    where = engine_of(
        engine,
        workers=workers,
        address=address,
        cpus_per_worker=cpus_per_worker,
        gpus_per_worker=gpus_per_worker,
    )
    means = studies.Means(engine=where, cache=cache, reporting=reporting())
    # Evaluation runs on this machine, whatever scores the images.
    processes = (workers if engine == "local" else None) or thread_count()
    if _is_folder(study):
        folder = Path(study)
        options = {
            "--data": data,
            "-o": output,
            "--model": model,
            "--cache": cache,
            "--skip-missing": skip_missing,
        }
        useless = [option for option, value in options.items() if value]
        if useless:
            raise InputError(
                f"{', '.join(useless)} must be left out: {folder} is the folder of a run, whose "
                "tables and figures are made again from what is stored there. To run its plan "
                f"again: shiftcal reproduce {folder / _PLAN} -o {folder}"
            )
        with _explained(), stdout_kept_for_results():
            done = studies.rebuild(folder, means=means, workers=processes)
        name = studies.Run(folder).plan.study
    else:
        text, origin = studies.plan_text(study)
        # Absolute: scores are known by where their images are, wherever this is run from.
        place = None if data is None else data.expanduser().absolute()
        plan = studies.read_plan(text, data=place, where=origin, model=model)
        folder, name = output or Path("runs", Path(study).stem), plan.study
        _check_place(study, plan, folder)
        with _explained(), stdout_kept_for_results():
            done = studies.reproduce(
                plan, folder, means=means, workers=processes, skip_missing=skip_missing
            )
    return Report({"study": name, **document_of(done)}, text_of(done))


def _is_folder(study: str) -> bool:
    from shiftcal import studies

    return study not in studies.names() and Path(study).is_dir()


def _listed() -> Report:
    from shiftcal import studies

    found = []
    for name in studies.names():
        plan = tomllib.loads(studies.plan_text(name)[0])
        found.append({"name": name, "study": plan["study"], "about": plan["about"]})
    text = _tables.table(["study", "what it does"], [[f["name"], f["about"]] for f in found])
    return Report({"studies": found}, text)


def _shown(study: str) -> Report:
    from shiftcal import studies

    text, _ = studies.plan_text(Path(study, _PLAN) if _is_folder(study) else study)
    return Report({"plan": text}, text.rstrip("\n"))


def _check_place(study: str, plan: AnyPlan, folder: Path) -> None:
    """Reject a folder where the run would overwrite its own plan or images."""
    own = Path(study)
    in_it = own.is_file() and own.resolve() == (folder / _PLAN).resolve()
    if in_it and not any((folder / name).is_dir() for name in _BEGUN):
        raise FileError(
            f"{folder} holds the plan itself, {study}, which the run would replace by a copy "
            "without its comments. Name another folder with -o."
        )
    for spec in _images_of(plan):
        refuse_inside(spec, [folder])


def _images_of(plan: AnyPlan) -> Iterator[str]:
    """Every text of images in it."""
    from shiftcal.studies.plan import AdaptationPlan

    if isinstance(plan, AdaptationPlan):
        for domain in plan.domains:
            for texts in domain.images:
                yield from texts
        return
    yield from plan.data.images
    yield from plan.data.train
    for each in plan.shifts.sets:
        yield from each.images


@contextmanager
def _explained() -> Iterator[None]:
    """Explain at length what data is missing, and after Ctrl-C how to resume."""
    try:
        yield
    except MissingData as error:
        complain_at_length(f"{error}\n")
        raise MissingData(
            "the study was not run: data that it needs is missing. See the lines above."
        ) from error
    except KeyboardInterrupt:
        complain("note", "the same command resumes where this one stopped.")
        raise

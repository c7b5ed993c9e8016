"""``shiftcal reproduce``: a plan in, tables and figures out."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from shiftcal.cli import options
from shiftcal.cli.inputs import refuse_inside, reporting
from shiftcal.cli.output import (
    Report,
    complain,
    complain_at_length,
    facts,
    stdout_kept_for_results,
    table,
)
from shiftcal.errors import FileError, InputError, MissingData

if TYPE_CHECKING:
    from shiftcal.report.tables import Cell, Column, Table
    from shiftcal.studies import Done
    from shiftcal.studies.plan import AnyPlan


def reproduce(
    study: Annotated[str | None, Argument(metavar="STUDY")] = None,
    *,
    data: options.Folder = None,
    output: options.MaybeOutputFolder = None,
    model: options.Spec = None,
    skip_missing: bool = False,
    list_: bool = False,
    show_plan: bool = False,
    work: options.Work,
) -> Report:
    """Run a study, from images to tables and figures. Resumes if run again.

    Example:
        shiftcal reproduce synthetic --data data -o runs/synthetic

    Args:
        study: A study by name (--list), your own plan (.toml), or the folder of a run, to
            rewrite its tables and figures from stored scores.
        data: What {data} stands for in the plan.
        output: Folder of the run; default: runs/STUDY.
        model: The model, as for `shiftcal bank`, instead of the plan's; or the backbone, as for
            `shiftcal train`. Your own plan never loads a model that runs code or is downloaded:
            name such a model here.
        skip_missing: Run without natural targets, training images and domains that are missing.
        list_: List the studies that come with shiftcal, and stop.
        show_plan: Print the plan, to copy and edit, and stop.
    """
    from shiftcal import studies

    if list_:
        found = []
        for name in studies.names():
            values = tomllib.loads(studies.plan_text(name)[0])
            found.append({"name": name, "study": values["study"], "about": values["about"]})
        text = table(["study", "what it does"], [[f["name"], f["about"]] for f in found])
        return Report({"studies": found}, text)
    if study is None:
        raise InputError(
            "STUDY must be the name of a study, a plan or the folder of a run. The names: "
            "shiftcal reproduce --list"
        )
    is_folder = study not in studies.names() and Path(study).is_dir()
    if show_plan:
        text, _ = studies.plan_text(Path(study, "plan.toml") if is_folder else study)
        return Report({"plan": text}, text.rstrip("\n"))
    from shiftcal.numerics.blocks import thread_count
    from shiftcal.studies.run import BEGUN

    means = studies.Means(engine=work.make_engine(), cache=work.cache, reporting=reporting())
    # Evaluation runs on this machine, whatever scores the images.
    processes = (work.workers if work.engine == "local" else None) or thread_count()
    if is_folder:
        folder = Path(study)
        if (folder / "plan.toml").is_file() and not any((folder / one).is_dir() for one in BEGUN):
            raise FileError(
                f"{folder} holds a plan and no scores to make tables and figures from. Run it "
                f"in another folder: shiftcal reproduce {folder / 'plan.toml'} --data DIR -o RUN"
            )
        if data or output or model or work.cache or skip_missing:
            raise InputError(
                f"{folder} is the folder of a run. Its tables and figures are rewritten from "
                "stored scores, so --data, -o, --model, --cache and --skip-missing must be left "
                f"out. To run its plan again: shiftcal reproduce {folder / 'plan.toml'} -o {folder}"
            )
        with _explained(), stdout_kept_for_results():
            done = studies.rebuild(folder, means=means, workers=processes)
        return _report(done, studies.Run(folder).plan.study)
    text, origin = studies.plan_text(study)
    # Absolute: scores are known by where their images are, wherever this is run from.
    place = None if data is None else data.expanduser().absolute()
    plan = studies.read_plan(text, data=place, where=origin, model=model)
    folder = output or Path("runs", Path(study).stem)
    _check_place(Path(study), plan, folder)
    with _explained(), stdout_kept_for_results():
        done = studies.reproduce(
            plan, folder, means=means, workers=processes, skip_missing=skip_missing
        )
    return _report(done, plan.study)


def _check_place(study: Path, plan: AnyPlan, folder: Path) -> None:
    """Reject a folder where the run would overwrite its own plan or images."""
    from shiftcal.studies.plan import image_specs
    from shiftcal.studies.run import BEGUN

    begun = any((folder / name).is_dir() for name in BEGUN)
    if study.is_file() and study.resolve() == (folder / "plan.toml").resolve() and not begun:
        raise FileError(
            f"{folder} holds the plan itself, {study}, which the run would replace by a copy "
            "without its comments. Name another folder with -o."
        )
    for spec in image_specs(plan):
        refuse_inside(spec, [folder])


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


def _report(done: Done, study: str) -> Report:
    """A finished run: for people the first table, and where the rest is."""
    page, found = done.folder / "report.md", done.findings
    document = {
        "study": study,
        "folder": done.folder,
        "report": page,
        "tables": [done.folder / "tables" / f"{name}.csv" for name in found.tables],
        "figures": [done.folder / "figures" / f"{name}.png" for name in found.figures],
        "images_scored": done.scored,
        **({} if done.trained is None else {"trained": done.trained}),
        "evaluated": done.evaluated,
        "records": done.records,
        "left_out": [each.strip() for each in done.missing],
        "seconds": done.seconds,
    }
    keys = ("images_scored", "trained", "evaluated", "records", "seconds", "report")
    blocks = [_table_text(first) for first in list(found.tables.values())[:1]]
    if done.missing:
        blocks.append("left out, because it is missing:\n" + "\n".join(done.missing))
    return Report(document, "\n\n".join([*blocks, facts(document, *keys)]))


def _table_text(shown: Table) -> str:
    """A table of a study in aligned columns, with its title and its note."""
    header = [f"{column.group} {column.header}".strip() for column in shown.columns]
    rows = [[row.label, *map(_cell, row.cells, shown.columns)] for row in shown.rows]
    grid = table([shown.corner, *header], rows)
    return "\n".join(part for part in (shown.title, grid, shown.note) if part)


def _cell(cell: Cell, column: Column) -> str:
    from shiftcal.report.tables import number_and_interval

    if cell.number is None:
        return str(cell.value or "-")
    return "".join(number_and_interval(cell, column.digits))

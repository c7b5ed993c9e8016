"""``shiftcal reproduce``: a plan in, tables and figures out."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli import _tables
from shiftcal.cli._options import Json
from shiftcal.cli._report import Report
from shiftcal.cli._scoring import (
    Address,
    CacheFolder,
    CpusPerWorker,
    EngineName,
    GpusPerWorker,
    Workers,
    refuse_inside,
    reporting,
)
from shiftcal.cli._streams import complain, complain_at_length, stdout_kept_for_results
from shiftcal.cli._study_plan import images_of, with_model
from shiftcal.cli._study_text import document_of, text_of
from shiftcal.errors import FileError, InputError, MissingData

if TYPE_CHECKING:
    from shiftcal.studies import Means
    from shiftcal.studies.adapting.plan import AnyPlan

_PLAN = "plan.toml"
# Folders of which a run has one as soon as it has begun.
_BEGUN = ("scores", "features", "trainings")


def reproduce(
    study: Annotated[
        str | None,
        typer.Argument(
            metavar="STUDY",
            help="A study by name (--list), a plan of your own (.toml), or the folder of a run, "
            "whose tables and figures are made again from its stored scores.",
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="What {data} stands for in the plan.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder of the run; runs/STUDY if left out."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="The model, as for `shiftcal bank`, for the plan's own; or the backbone, as for "
            "`shiftcal adapt`.",
        ),
    ] = None,
    skip_missing: Annotated[
        bool,
        typer.Option(
            "--skip-missing",
            help="Run without natural targets, training images and domains that are not there.",
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
        typer.Option("--show-plan", help="Print the plan, to be copied and edited, and stop."),
    ] = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say how long it will take, and stop.")
    ] = False,
    as_json: Json = False,
) -> Report:
    """Run a study, from images to tables and figures. Run again, it goes on."""
    if list_studies:
        return _listed(as_json)
    if study is None:
        raise InputError(
            "STUDY must be the name of a study, a plan or the folder of a run. The names: "
            "shiftcal reproduce --list"
        )
    if show_plan:
        return _shown(study, as_json)
    from shiftcal.scoring.engines import engine_of
    from shiftcal.studies import Means
    from shiftcal.studies.adapting.alone import check_alone

    check_alone()
    where = engine_of(
        engine,
        workers=workers,
        address=address,
        cpus_per_worker=cpus_per_worker,
        gpus_per_worker=gpus_per_worker,
    )
    how = _How(
        Means(engine=where, cache=cache, reporting=reporting()),
        _evaluating(workers if engine == "local" else None),
        skip_missing,
    )
    if _is_folder(study):
        given = {
            "--data": data,
            "-o": output,
            "--model": model,
            "--cache": cache,
            "--skip-missing": skip_missing,
            "--estimate": estimate,
        }
        return _rebuilt(Path(study), given, how, as_json)
    plan = _plan(study, data, model)
    folder = output or Path("runs", Path(study).stem)
    _check_place(study, plan, folder)
    run = _estimated if estimate else _reproduced
    return run(plan, folder, how, as_json)


@dataclass(frozen=True)
class _How:
    """By what means, in how many processes, and whether what is missing is left out."""

    means: Means
    workers: int
    skip_missing: bool

    @property
    def options(self) -> dict[str, Any]:
        return {
            "means": self.means,
            "workers": self.workers,
            "skip_missing": self.skip_missing,
        }


def _evaluating(workers: int | None) -> int:
    """Processes that evaluate; they are of this machine, whatever scores the images."""
    from shiftcal.numerics._threads import thread_count

    return workers or thread_count()


def _is_folder(study: str) -> bool:
    from shiftcal import studies

    return study not in studies.names() and Path(study).is_dir()


def _listed(as_json: bool) -> Report:
    from shiftcal import studies

    found = []
    for name in studies.names():
        told = tomllib.loads(studies.plan_text(name)[0])
        found.append({"name": name, "study": told["study"], "about": told["about"]})
    text = _tables.table(["study", "what it does"], [[f["name"], f["about"]] for f in found])
    return Report("reproduce", {"studies": found}, text, as_json)


def _shown(study: str, as_json: bool) -> Report:
    from shiftcal import studies

    text, _ = studies.plan_text(Path(study, _PLAN) if _is_folder(study) else study)
    return Report("reproduce", {"plan": text}, text.rstrip("\n"), as_json)


def _plan(study: str, data: Path | None, model: str | None) -> AnyPlan:
    from shiftcal import studies

    text, where = studies.plan_text(study)
    # Said from the root: scores are known by where their images are, wherever this is run from.
    given = None if data is None else data.expanduser().absolute()
    plan = studies.read_plan(text, data=given, where=where)
    return plan if model is None else with_model(plan, model)


def _check_place(study: str, plan: AnyPlan, folder: Path) -> None:
    """Refuse a folder where the run would spoil its own plan or images."""
    own = Path(study)
    in_it = own.is_file() and own.resolve() == (folder / _PLAN).resolve()
    if in_it and not any((folder / name).is_dir() for name in _BEGUN):
        raise FileError(
            f"{folder} holds the plan itself, {study}, which the run would replace by a copy "
            "without its comments. Name another folder with -o."
        )
    for spec in images_of(plan):
        refuse_inside(spec, [folder])


def _estimated(plan: AnyPlan, folder: Path, how: _How, as_json: bool) -> Report:
    from shiftcal import studies

    with _explained(), stdout_kept_for_results():
        found = studies.forecast(plan, folder, **how.options)
    document = {"folder": folder, "estimate": {**asdict(found), "seconds": found.seconds}}
    return Report("reproduce", document, str(found), as_json)


def _reproduced(plan: AnyPlan, folder: Path, how: _How, as_json: bool) -> Report:
    from shiftcal import studies

    with _explained(), stdout_kept_for_results():
        done = studies.reproduce(
            plan, folder, **how.options, announce=lambda found: complain("note", str(found))
        )
    return Report("reproduce", {"study": plan.study, **document_of(done)}, text_of(done), as_json)


def _rebuilt(folder: Path, given: dict[str, Any], how: _How, as_json: bool) -> Report:
    from shiftcal import studies

    useless = [option for option, value in given.items() if value]
    if useless:
        raise InputError(
            f"{', '.join(useless)} must be left out: {folder} is the folder of a run, of which "
            "tables and figures are made again from what is stored there. To run its plan again: "
            f"shiftcal reproduce {folder / _PLAN} -o {folder}"
        )
    with _explained(), stdout_kept_for_results():
        done = studies.rebuild(folder, means=how.means, workers=how.workers)
    study = studies.Run(folder).plan.study
    return Report("reproduce", {"study": study, **document_of(done)}, text_of(done), as_json)


@contextmanager
def _explained() -> Iterator[None]:
    """Say at length what data is missing, and after Ctrl-C how to go on."""
    try:
        yield
    except MissingData as error:
        complain_at_length(f"{error}\n")
        which = "what to get, and where to put it" if "To get it:" in str(error) else "what"
        raise MissingData(
            f"the study was not run: data that it needs is not there. The lines above say {which}."
        ) from error
    except KeyboardInterrupt:
        complain("note", "the same command goes on where this one stopped.")
        raise

"""``shiftcal report``: can confidences be trusted on a target? As HTML, Markdown or JSON."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from shiftcal.cli import inputs, options
from shiftcal.cli.output import Report, progress
from shiftcal.errors import InputWarning, require


def report(
    context: typer.Context,
    task: options.Task,
    output: options.OutputFile = Path("report.html"),
    method: Annotated[str, typer.Option(metavar="NAME")] = "rehearsal",
    set_: options.Settings = None,
    source_train: options.File = None,
    title: Annotated[str, typer.Option(metavar="TEXT")] = "",
    bins: options.Count = 15,
    level: options.Fraction = 0.95,
    resamples: Annotated[int, typer.Option(metavar="N", min=0)] = 400,
    seed: options.Seed = 0,
) -> Report:
    """Report whether confidences can be trusted, and what to do.

    Example:
        shiftcal report bank/ target.npz

    Args:
        output: Report to write, as .html, .md or .json.
        method: Method the report is about; others are compared to it.
        set_: A setting of --method, as for `shiftcal fit`.
        source_train: File with features of training samples, for cpcs and transcal.
        title: Title of the report.
        bins: Number of bins of ECE and of the diagrams.
        level: Coverage of intervals, strictly between 0 and 1.
        resamples: Bootstrap draws per interval of ECE; fewer than 39 give none at level 0.95.
        seed: Seed of the bootstrap, and of methods that draw.
    """
    inputs.check_suffix(output, ".html", ".md", ".json")
    if output.suffix.lower() == ".html":
        require("jinja2", extra="report", needed_by="shiftcal report")
        require("matplotlib", extra="report", needed_by="shiftcal report")
    from shiftcal import methods
    from shiftcal.files import sha256_of
    from shiftcal.report.facts import Judging, Provenance, make_facts
    from shiftcal.report.render import write_report
    from shiftcal.report.verdict import kept_words
    from shiftcal.scores import model_digest_of_file, read_features
    from shiftcal.scores_io import member_of

    cls = methods.get(method)
    inputs.check_needs(cls)
    # The method has the report's seed and level, where it has such settings.
    assigned, known = list(set_ or []), inputs.settings_of(cls)
    for name, value in (("seed", seed), ("level", level)):
        if value != known.get(name, value) and name not in inputs.parse_assignments(assigned):
            assigned.append(f"{name}={value}")
    settings = inputs.choose_settings(cls, {}, assigned)
    with progress(f"making a report of {task.path}"):
        sets, scores = task.read()
        read = [*task.files] if task.bank is None else [task.bank / "bank.json"]
        read += [member_of(one)[0] for one in (task.path, task.labels, source_train) if one]
        facts = make_facts(
            bank=sets,
            target=scores,
            source_features=None if source_train is None else read_features(source_train),
            target_model=model_digest_of_file(task.path),
            method=cls(**settings),
            title=title,
            judging=Judging(bins, level, resamples, seed),
            provenance=Provenance(
                command=shlex.join(["shiftcal", *context.obj]),
                usage=_usage(task, source_train, ["--method", method], assigned),
                files={str(file): sha256_of(file) for file in read},
            ),
        )
        for note in facts.warnings:
            if note.code == "another-model":
                text = f"{task.path}: {note.messages[0]}"
                warnings.warn(text, InputWarning, stacklevel=2)
        write_report(facts, output)
    verdict = facts.verdict
    lines = [verdict.headline, verdict.reason, *verdict.advice]
    lines.append(kept_words(facts.kept, verdict))
    for note in facts.warnings:
        if note.serious:
            lines += [f"flagged, {note.code}: {message}" for message in note.messages]
    text = "\n".join(line.replace("\u00a0", " ") for line in lines)
    document = {"output": output, "report": facts.to_dict()}
    return Report(document, f"{text}\n\nwritten to {output}")


def _usage(
    task: options.Task, source_train: Path | None, method: list[str], settings: list[str]
) -> str:
    """The commands that calibrate the target with the method."""
    named: dict[str, list[Any]] = {"--set": settings, "--surrogate": task.files}
    named |= {"--bank": [task.bank], "--source-train": [source_train]}
    given = [(name, str(one)) for name, values in named.items() for one in values if one]
    fit = ["fit", *method, *(word for pair in given for word in pair), "-o", "calibration.json"]
    apply = ["apply", "calibration.json", str(task.path), "-o", "calibrated.npz"]
    more = ["--normalize"] if task.normalize else []
    for name, value in task.columns.items():
        text = ",".join(value) if isinstance(value, list) else value
        more.append(f"--{name.replace('_', '-')}={text}")
    return "\n".join(shlex.join(["shiftcal", *words, *more]) for words in (fit, apply))

"""``shiftcal report``: can confidences be trusted on a target? As HTML, Markdown or JSON."""

from __future__ import annotations

import datetime
import os
import shlex
import time
import warnings
from pathlib import Path
from typing import Annotated

import typer

from shiftcal.cli import inputs, options
from shiftcal.cli.output import Report, progress
from shiftcal.errors import FileError, InputError, InputWarning, require


def report(
    context: typer.Context,
    output: options.OutputFile,
    bank_place: options.BankPlace = None,
    target_place: options.TargetPlace = None,
    target: options.TargetFile = None,
    bank: options.Bank = None,
    surrogate: options.Surrogates = None,
    labels: options.TargetLabels = None,
    method: Annotated[str, typer.Option(metavar="NAME")] = "rehearsal",
    set_: options.Settings = None,
    source_train: options.SourceTrain = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT")] = None,
    bins: options.Bins = 15,
    level: options.Level = 0.95,
    resamples: options.Resamples = 400,
    seed: options.BootstrapSeed = 0,
    normalize: options.Normalize = False,
) -> Report:
    """Report whether confidences can be trusted, and what to do.

    Example:
        shiftcal report bank/ target.npz -o report.html

    Args:
        output: Report to write: .html, .md or .json.
        method: Method the report is about; others are compared to it.
        set_: A setting of --method, as for `shiftcal fit`.
        title: Title of the report.
    """
    inputs.check_suffix(output, ".html", ".md", ".json")
    if output.suffix.lower() == ".html":
        require("jinja2", extra="report", needed_by="shiftcal report")
        require("matplotlib", extra="report", needed_by="shiftcal report")
    from shiftcal import methods
    from shiftcal.files import sha256_of
    from shiftcal.report.facts import Judging, Provenance, make_facts
    from shiftcal.report.render import write_report
    from shiftcal.scores import model_digest_of_file
    from shiftcal.scores_io import member_of

    cls = methods.get(method)
    inputs.check_needs(cls)
    # The method has the report's seed and level, where it has such settings.
    assigned, known = list(set_ or []), inputs.settings_of(cls)
    for name, value in (("seed", seed), ("level", level)):
        if value != known.get(name, value) and name not in inputs.parse_assignments(assigned):
            assigned.append(f"{name}={value}")
    settings = inputs.choose_settings(cls, {}, assigned)
    files = inputs.named(
        bank_place, target_place,
        bank=bank, surrogates=surrogate, target=target, source_train=source_train,
    )  # fmt: skip
    with progress(f"making a report of {files.target}"):
        path = files.must_have_target()
        usage = _usage(files, path, method, assigned, normalize=normalize)
        sets, scores, features = inputs.read_inputs(files, normalize=normalize, labels=labels)
        digested = [] if files.bank is None else [files.bank / "bank.json"]
        others = (path, labels, files.source_train)
        digested += [*files.surrogates, *(member_of(one)[0] for one in others if one)]
        try:
            digests = {str(file): sha256_of(file) for file in digested}
        except OSError as error:
            reason = error.strerror or error
            raise FileError(f"{error.filename} could not be read: {reason}.") from error
        facts = make_facts(
            bank=sets,
            target=scores,
            source_features=features,
            target_model=model_digest_of_file(path),
            method=cls(**settings),
            title=title or "",
            judging=Judging(bins, level, resamples, seed),
            provenance=Provenance(
                date=_today(),
                command=shlex.join(["shiftcal", *context.obj]),
                usage=usage,
                files=digests,
            ),
        )
        for note in facts.warnings:
            if note.code == "another-model":
                text = f"{files.target}: {note.messages[0]}"
                warnings.warn(text, InputWarning, stacklevel=2)
        write_report(facts, output)
    verdict = facts.verdict
    lines = [verdict.headline, verdict.reason, *verdict.advice]
    if serious := [note.code for note in facts.warnings if note.serious]:
        lines.append(f"flagged: {', '.join(serious)}")
    text = "\n".join(line.replace("\u00a0", " ") for line in lines)
    document = {"output": output, "report": facts.to_dict()}
    return Report(document, f"{text}\n\nwritten to {output}")


def _usage(
    files: inputs.Named, target: Path, method: str, settings: list[str], *, normalize: bool
) -> str:
    """The commands that calibrate the target with the method."""
    fit = ["fit", "--method", method, *(word for one in settings for word in ("--set", one))]
    fit += [] if files.bank is None else ["--bank", str(files.bank)]
    fit += [word for one in files.surrogates for word in ("--surrogate", str(one))]
    if files.source_train is not None:
        fit += ["--source-train", str(files.source_train)]
    apply = ["apply", "calibration.json", str(target), "-o", "calibrated.npz"]
    both = ([*fit, "-o", "calibration.json"], apply)
    more = ["--normalize"] if normalize else []
    return "\n".join(shlex.join(["shiftcal", *words, *more]) for words in both)


def _today() -> str:
    """Today's date in UTC, or that of SOURCE_DATE_EPOCH, for reproducible builds."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        seconds = time.time() if epoch is None else int(epoch)
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC).date().isoformat()
    except (ValueError, OverflowError, OSError) as error:
        raise InputError(f"SOURCE_DATE_EPOCH must be seconds since 1970; got {epoch!r}.") from error

"""``shiftcal report``: can confidences be trusted on a target? As HTML, Markdown or JSON."""

from __future__ import annotations

import datetime
import os
import shlex
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli.inputs import NEEDS_MIXED, check_output, files_of, read_bank, read_target
from shiftcal.cli.options import (
    Bank,
    BankPlace,
    Bins,
    BootstrapSeed,
    Json,
    Level,
    Named,
    Normalize,
    Resamples,
    SourceTrain,
    Surrogates,
    TargetFile,
    TargetLabels,
    TargetPlace,
    choose_settings,
    named,
    settings_of,
)
from shiftcal.cli.output import Report, printable, progress
from shiftcal.errors import FileError, InputError, InputWarning, require

if TYPE_CHECKING:
    from shiftcal.report.facts import ReportFacts


def report(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Report to write: .html, .md or .json."
        ),
    ],
    bank_place: BankPlace = None,
    target_place: TargetPlace = None,
    target: TargetFile = None,
    bank: Bank = None,
    surrogate: Surrogates = None,
    labels: TargetLabels = None,
    images: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="The images that were scored, as for `shiftcal score`; the page shows those whose "
            "confidence changed most.",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(metavar="NAME", help="Method the report is about; others are compared to it."),
    ] = "rehearsal",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A setting of --method, as for `shiftcal fit`."
        ),
    ] = None,
    source_train: SourceTrain = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the report.")] = None,
    bins: Bins = 15,
    level: Level = 0.95,
    resamples: Resamples = 400,
    seed: BootstrapSeed = 0,
    normalize: Normalize = False,
    as_json: Json = False,
) -> Report:
    """Report whether confidences can be trusted, and what to do."""
    if output.suffix.lower() not in (".html", ".htm", ".md", ".json"):
        raise FileError(f"{output} must end in .html, .md or .json, which chooses the format.")
    inputs = named(
        (bank_place, target_place),
        bank=bank, surrogates=surrogate, target=target, source_train=source_train,
    )  # fmt: skip
    only_files = {
        "--labels": labels,
        "--images": images,
        "--source-train": inputs.source_train,
        "--normalize": normalize or None,
    }
    usage, task = "", None
    if inputs.bank is not None and (inputs.bank / "plan.toml").is_file():
        from shiftcal.studies.run import task_of

        for name, value in only_files.items():
            if value is not None:
                raise InputError(
                    f"{name} is for scores in files, and {inputs.bank} is a study, which has its "
                    f"own. Leave {name} out."
                )
        task = task_of(inputs.bank, None if inputs.target is None else str(inputs.target))
        digested, words = list(task.files), [str(inputs.bank), str(inputs.target)]
        check_output(output, inputs=digested)
    else:
        target = inputs.must_have_target()
        sets: dict[str, Any] = {"--bank": inputs.bank, "--surrogate": inputs.surrogates}
        words = _words({"--target": target, **sets, **only_files})
        digested = [] if inputs.bank is None else [inputs.bank / "bank.json"]
        digested += inputs.surrogates or []
        digested += files_of(target, labels, inputs.source_train)
        image_file = [] if images is None else [Path(images)]
        check_output(output, inputs=[*inputs.all(), *digested, *image_file])
    if output.suffix.lower() in (".html", ".htm"):
        require("jinja2", extra="report", needed_by="shiftcal report")
    from shiftcal import methods
    from shiftcal.checks import check_fraction
    from shiftcal.report.facts import MOST_BINS, Judging, Provenance, make_facts
    from shiftcal.report.render import write_report
    from shiftcal.surrogates.folder import digest_of

    cls = methods.get(method)
    if cls.uses_mixed:
        raise InputError(f"{cls.name} {NEEDS_MIXED}")
    # The seed and level of the report are those of the method, where it has such settings.
    assigned, known = list(set_ or []), settings_of(cls)
    names = {text.partition("=")[0] for text in assigned}
    assigned += [
        f"{name}={shared}"
        for name, shared in (("seed", seed), ("level", level))
        if name in known and name not in names and shared != known[name]
    ]
    chosen = cls(**choose_settings(cls, {}, assigned))
    check_fraction(level, name="--level")
    if resamples == 1:
        raise InputError("--resamples must be 0 (no intervals) or at least 2; got 1.")
    if bins > MOST_BINS:
        raise InputError(f"--bins must be at most {MOST_BINS}; got {bins}.")
    options = {"-o": output, "--method": method, "--set": set_, "--title": title}
    numbers = {"--bins": bins, "--level": level, "--resamples": resamples, "--seed": seed}
    if task is None:
        files = {**sets, "--source-train": inputs.source_train, "--normalize": normalize or None}
        fit = _words({"--method": method, "--set": assigned, **files, "-o": "calibration.json"})
        apply = ["calibration.json", str(target), "-o", "calibrated.npz"]
        apply += ["--normalize"] * normalize
        usage = f"{_command('fit', *fit)}\n{_command('apply', *apply)}"
    with progress(f"making a report of {inputs.target}"):
        try:
            digests = {str(file): digest_of(file) for file in digested}
        except OSError as error:
            reason = error.strerror or error
            raise FileError(f"{error.filename} could not be read: {reason}.") from error
        facts = make_facts(
            **_read_files(inputs, labels, images, normalize=normalize)
            if task is None
            else {
                "bank": task.bank,
                "target": task.target,
                "source_features": task.source_features,
            },
            method=chosen,
            title=title or "",
            judging=Judging(bins, level, resamples, seed),
            provenance=Provenance(
                date=_today(),
                command=_command("report", *words, *_words({**options, **numbers})),
                usage=usage,
                files=digests,
            ),
        )
        for note in facts.warnings:
            if note.code == "another-model":
                text = f"{inputs.target}: {note.messages[0]}"
                warnings.warn(text, InputWarning, stacklevel=2)
        write_report(facts, output)
    document = {"output": output, "report": facts.to_dict()}
    return Report("report", document, _text(facts, output), as_json)


def _read_files(
    inputs: Named, labels: Path | None, images: str | None, *, normalize: bool
) -> dict[str, Any]:
    """Bank, target and what comes with them, as arguments of ``make_facts``."""
    from shiftcal.scores import model_digest_of_file, read_features

    target = inputs.must_have_target()
    bank = read_bank(inputs.bank, inputs.surrogates, normalize=normalize)
    source = inputs.source_train
    features = None if source is None else read_features(source)
    model = model_digest_of_file(target)
    scores = read_target(
        target, n_classes=bank.n_classes, classes=bank.classes, normalize=normalize, labels=labels
    )
    scores.logits()  # an unusable target is an error, not a reason to skip a method
    return {
        "bank": bank,
        "target": scores,
        "source_features": features,
        "images": images,
        "target_model": model,
    }


def _words(options: Mapping[str, Any]) -> list[str]:
    """Options as words of a command: lists repeat, ``True`` is a flag, ``None`` is left out."""
    words: list[str] = []
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None:
                words += [name] if one is True else [name, str(one)]
    return words


def _command(*words: str) -> str:
    return shlex.join(["shiftcal", *words])


def _text(facts: ReportFacts, output: Path) -> str:
    verdict = facts.verdict
    sentences = [verdict.headline, verdict.reason, *verdict.advice]
    if serious := [note.code for note in facts.warnings if note.serious]:
        sentences.append(f"flagged: {', '.join(serious)}")
    text = "\n".join(printable(one.replace("\u00a0", " ")) for one in sentences)
    return f"{text}\n\nwritten to {printable(output)}"


def _today() -> str:
    """Today's date in UTC, or that of SOURCE_DATE_EPOCH, for reproducible builds."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.datetime.now(datetime.UTC).date().isoformat()
    try:
        return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC).date().isoformat()
    except (ValueError, OverflowError, OSError) as error:
        raise InputError(
            f"SOURCE_DATE_EPOCH must be whole seconds since 1970; got {epoch!r}. Unset it for "
            "today's date."
        ) from error

"""``shiftcal fit``, ``apply`` and ``export``: from surrogate sets to calibrated confidences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

from shiftcal.cli import inputs, options
from shiftcal.cli.output import Report, facts, progress, sets_table
from shiftcal.errors import FileError, InputError, InputWarning
from shiftcal.files import naming

if TYPE_CHECKING:
    from shiftcal.estimates import Selective
    from shiftcal.grouping import GroupedSelection
    from shiftcal.methods import Method
    from shiftcal.methods.method import Selection
    from shiftcal.scores import Scores
    from shiftcal.scoring.engines import Engine
    from shiftcal.types import InputKind, Probs

_OF_SETS = ("name", "corruption", "severity", "n", "mean_confidence", "accuracy")


def fit(
    method: Annotated[str, Option(metavar="NAME")],
    output: options.OutputFile,
    sources: options.Sources,
    source_train: options.File = None,
    map_: options.Name = None,
    distance: options.Name = None,
    peek: options.MaybeCount = None,
    seed: Annotated[int | None, Option(metavar="N", min=0)] = None,
    set_: options.Settings = None,
) -> Report:
    """Fit a method on a bank and save it.

    Example:
        shiftcal fit --method sac --bank bank/ -o sac.json

    Args:
        method: Method to fit, by name; `shiftcal list methods` lists them.
        output: Where to write the fitted method, as .json.
        source_train: File with features of training samples, for cpcs and transcal: an .npz with
            'features', x_features.npy, or a scores file.
        map_: Calibration map inside sts and sac.
        distance: How sac compares target and surrogate sets: mean, ks, wasserstein, atc or
            atc-entropy.
        peek: Choose by N random target rows only (sac).
        seed: Seed of the method's random draws.
        set_: Any other setting of the method, such as reading=free (transcal), or of its map after
            'map.', such as map.n_bins=7 (--map histogram). Repeatable.
    """
    from shiftcal import methods
    from shiftcal.maps import Map
    from shiftcal.methods.method import temperature_of
    from shiftcal.methods.rehearsal import Rehearsal
    from shiftcal.scores import read_features

    cls = methods.get(method)
    inputs.check_needs(cls)
    asked = {"map": map_, "distance": distance, "peek": peek, "seed": seed}
    settings = inputs.choose_settings(cls, asked, set_)
    if source_train is not None and not cls.uses_features:
        raise InputError(f"{cls.name} uses no features. Leave --source-train out.")
    inputs.check_suffix(output, ".json")
    sets = sources.read_bank()
    features = None if source_train is None else read_features(source_train)
    inputs.check_needs(cls, source=features, clean=sets.clean.features)
    fitted: Method = cls(input=sets.input, **settings)
    with progress(f"fitting {method}"):
        fitted._fit_checked(sets, features)
    fitted.save(output)

    shown = fitted.get_params(deep=False)
    if isinstance(inner := shown.get("map"), Map):
        shown["map"] = inner.name
        shown |= {f"map.{name}": getattr(inner, name) for name in inputs.settings_of(type(inner))}
    own = getattr(fitted, "map_", None)
    summaries = sets.summaries()
    temperatures: list[float | None] = []
    if isinstance(fitted, Rehearsal):
        temperatures += fitted.temperatures_
    else:
        maps = getattr(fitted, "maps_", [None] * len(sets))
        temperatures += [None if one is None else temperature_of(one) for one in maps]
    document = {
        "method": fitted.name,
        "output": output,
        "input": fitted.input,
        "n_classes": fitted.n_classes_,
        "classes": fitted.class_names_,
        "settings": shown,
        "first_set_only": not fitted.uses_bank,
        "temperature": None if own is None else temperature_of(own),
        "sets": [
            {**{key: getattr(one, key) for key in _OF_SETS}, "temperature": t}
            for one, t in zip(summaries, temperatures, strict=True)
        ],
    }
    keys = ("method", "first_set_only", "temperature", "n_classes", "input", "output")
    text = f"{sets_table(summaries, temperatures)}\n\n{facts(document, *keys)}"
    return Report(document, text)


def apply(
    method: options.Method,
    target: options.Target,
    output: options.MaybeOutput = None,
    groups: Annotated[str | None, Option(metavar="FILE[:COLUMN]")] = None,
    save_adapted: options.File = None,
    target_accuracy: Annotated[float | None, Option(metavar="FRACTION")] = None,
    normalize: bool = False,
    *,
    work: options.Workers,
) -> Report:
    """Calibrate a target with a saved method.

    TARGET can be a folder of files. The method adapts to all of their rows; each file is written to
    the folder -o under its name, by several workers if asked.

    Example:
        shiftcal apply sac.json target.npz -o out.npz

    Args:
        method: A method that `shiftcal fit` saved.
        output: Where to write the calibrated scores: .npz, .csv or .parquet, or a folder if TARGET
            is one. Leave it out if TARGET is a .json file of statistics: what sac chooses for it is
            printed.
        groups: Group of every row (camera, site, batch); each is calibrated by itself. A .txt of
            one per line, .npy, .npz, or a column of a .csv or .parquet.
        save_adapted: Write the method as adapted to TARGET, as JSON, for `shiftcal export`.
        target_accuracy: Mark the most confident rows, as many as can be kept with this expected
            accuracy, in the column 'keep'; the others need a person.
        normalize: Rescale rounded probabilities or percentages to sum to 1, and divide one column
            of percentages by 100; logits do not change.
    """
    from shiftcal.checks import check_fraction

    if target_accuracy is not None:
        check_fraction(target_accuracy, name="--target-accuracy")
        if groups is not None:
            raise InputError(
                "--target-accuracy sets one threshold, and --groups calibrates each group by "
                "itself. Leave one out."
            )
    if groups is not None and save_adapted is not None:
        raise InputError(
            "--save-adapted writes one method, and --groups adapts one per group. Leave one out."
        )
    of_statistics = target.path.suffix.lower() == ".json"
    needs_rows = {"-o": output, "--groups": groups, "--target-accuracy": target_accuracy}
    if of_statistics and any(value is not None for value in needs_rows.values()):
        raise InputError(
            f"{target.path} holds statistics, and calibrated scores need rows. Leave -o, --groups "
            "and --target-accuracy out, or name a scores file."
        )
    if not of_statistics and output is None:
        raise InputError("-o must name a file for the calibrated scores.")
    many = target.path.is_dir()
    if many and (groups is not None or target_accuracy is not None):
        raise InputError("--groups and --target-accuracy need one file, and TARGET is a folder.")
    if not many and (work.engine != "local" or work.settings_of_engine()):
        raise InputError(f"--engine and --workers go with a folder; {target.path} is a file.")
    if output is not None and not many:
        inputs.check_output_file(output)
    fitted = inputs.load_method(method)
    grouped, kept = None, None
    with progress(f"calibrating {target.path}"):
        if output is None:
            numbers = _apply_to_statistics(fitted, target.path)
        elif many:
            read = partial(_read_for, fitted, method, normalize=normalize, columns=target.columns)
            numbers = _apply_to_folder(fitted, target.path, output, read, work.make_engine())
        else:
            columns = target.columns
            scores = _read_for(fitted, method, target.path, normalize=normalize, columns=columns)
            numbers, grouped, kept = _apply_to_rows(fitted, scores, groups, target_accuracy, output)
    if save_adapted is not None:
        fitted.save(save_adapted)
    selection = fitted.selection_
    assert selection is not None
    document: dict[str, Any] = {
        "method": fitted.name,
        "method_file": method,
        "target": target.path,
        "output": output,
        "adapted": save_adapted,
        **numbers,
        "selection": selection.to_dict(),
        "selective": None if kept is None else kept.to_dict(),
        "groups": None,
    }
    keys = ("n", "raw_mean_confidence", "mean_confidence", "n_predictions_changed", "n_files")
    shown = {key: document.get(key) for key in (*keys, "output", "adapted")}
    if grouped is not None:
        of_groups = grouped.to_dict().items()
        document["groups"] = {key: value for key, value in of_groups if key != "everything"}
        return Report(document, f"{grouped}\n\n{facts(shown)}")
    shown = {"method": fitted.name, "choice": str(selection), **selection.details, **shown}
    if kept is not None:
        shown["selective"] = str(kept)
    return Report(document, "\n".join([facts(shown), *_flag_lines(selection)]))


def _read_for(
    fitted: Method,
    method: Path,
    target: Path,
    *,
    normalize: bool,
    columns: dict[str, Any] | None = None,
) -> Scores:
    """The scores of a target for a fitted method."""
    classes = (fitted.n_classes_, fitted.class_names_)
    scores = inputs.read_target(target, *classes, normalize=normalize, columns=columns)
    inputs.warn_of_another_model(fitted, method, target)
    return scores


def _apply_to_rows(
    fitted: Method,
    scores: Scores,
    groups: str | None,
    target_accuracy: float | None,
    output: Path,
) -> tuple[dict[str, Any], GroupedSelection | None, Selective | None]:
    """Write the calibrated scores; returns numbers, the choices of groups and what is kept."""
    import numpy as np

    from shiftcal.grouping import GroupedCalibration
    from shiftcal.numerics.softmax import top_of_rows
    from shiftcal.scores import read_groups

    chosen, kept, n = None, None, scores.n
    taken = inputs.adapt_to(fitted, scores)
    raw_mean = _raw_mean(fitted, scores)
    calibrated: Callable[[], Iterable[tuple[slice, Probs]]] | None = None
    if groups is not None:
        file, column = inputs.file_of(groups)
        of_rows = read_groups(file, scores, column=column)
        grouped = GroupedCalibration(fitted)
        chosen = grouped.adapt(taken, of_rows)
        calibrated = lambda: [(slice(0, n), grouped.predict_proba(taken, of_rows))]  # noqa: E731
    if target_accuracy is not None:
        from shiftcal.estimates import accuracy_interval, selective

        interval = accuracy_interval(fitted, taken)
        if interval is None:
            warnings.warn(
                f"{fitted.name} gives no interval of its accuracy, so that of the kept rows covers "
                "chance only. Fit rehearsal, or realign without a prior.",
                InputWarning,
                stacklevel=2,
            )
        confidence = np.empty(n)
        for some, probs in fitted.in_blocks(taken):
            _, confidence[some] = top_of_rows(probs)
        confidence.sort()  # in place, for they may be many
        kept = selective(confidence, target_accuracy, accuracy=interval)
    _, total, changed = _write_calibrated(fitted, scores, taken, output, calibrated, kept)
    numbers = {
        "n": n,
        "mean_confidence": total / n,
        "raw_mean_confidence": raw_mean,
        "n_predictions_changed": changed,
    }
    return numbers, chosen, kept


def _raw_mean(fitted: Method, scores: Scores) -> float:
    """Mean p_max of the model's outputs, which most methods have seen."""
    from shiftcal.numerics.softmax import p_max

    seen = fitted.selection_
    if seen is not None and seen.n_target == scores.n and seen.mean_confidence is not None:
        return seen.mean_confidence
    return float(p_max(scores.logits()).mean())


def _write_calibrated(
    fitted: Method,
    scores: Scores,
    taken: Scores,
    output: Path,
    calibrated: Callable[[], Iterable[tuple[slice, Probs]]] | None = None,
    kept: Selective | None = None,
) -> tuple[int, float, int]:
    """Write scores calibrated by an adapted method.

    Args:
        fitted: The method.
        scores: What to calibrate.
        taken: The same of the kind that the method takes.
        output: Where to.
        calibrated: Gives rows and their probabilities; default: those of the method.
        kept: What is kept.

    Returns:
        The number of rows, the sum of their confidences, and how many predictions changed.
    """
    from shiftcal.numerics.softmax import top_of_rows
    from shiftcal.scores import write_pieces

    logits = taken.logits()
    bare = scores._with(
        input="probabilities", features=None, classes=scores.classes or fitted.class_names_
    )
    changed, total = 0, 0.0

    def pieces() -> Iterator[tuple[Scores, dict[str, Any]]]:
        nonlocal changed, total
        for some, probs in calibrated() if calibrated else fitted.in_blocks(taken):
            predicted, confidence = top_of_rows(probs)
            own, _ = top_of_rows(logits[some])
            total += float(confidence.sum())
            changed += int((predicted != own).sum())
            more: dict[str, Any] = {"confidence": confidence, "predicted": predicted}
            if fitted.corrects and calibrated is None:
                more["model_confidence"] = fitted._confidence(logits[some])
                more["model_predicted"] = own
            if kept is not None:
                more["keep"] = confidence >= kept.threshold
            per_row = {"labels": scores.labels, "ids": scores.ids}
            cut = {name: None if x is None else x[some] for name, x in per_row.items()}
            yield bare._with(values=probs, **cut), more

    write_pieces(output, pieces())
    return scores.n, total, changed


def _apply_to_folder(
    fitted: Method,
    folder: Path,
    output: Path,
    read: Callable[[Path], Scores],
    engine: Engine,
) -> dict[str, Any]:
    """Adapt to the rows of all files of a folder and calibrate each; returns numbers."""
    from shiftcal.files import make_folder
    from shiftcal.scores import Scores
    from shiftcal.scores_io import WRITABLE, Stack

    files = sorted(file.absolute() for file in folder.iterdir() if file.suffix.lower() in WRITABLE)
    if not files:
        raise FileError(f"{folder} has no file that ends in {', '.join(WRITABLE)}.")
    if output.resolve() == folder.resolve():
        raise FileError(f"{output} is read by this command. Name another folder.")
    kinds: set[tuple[InputKind, bool]] = set()
    with Stack() as values, Stack() as features:
        for file in files:
            scores = read(file)
            values.add(scores.values, file)
            kinds.add((scores.input, scores.features is None))
            if scores.features is not None:
                features.add(scores.features, file)
        if len(kinds) > 1:
            raise FileError(
                f"{folder}: its files must all hold logits or all probabilities, and features."
            )
        ((kind, bare),) = kinds
        everything = Scores(values.array(), kind, features=None if bare else features.array())
    inputs.adapt_to(fitted, everything)
    raw_mean = _raw_mean(fitted, everything)
    make_folder(output)
    tasks = [(file, output.absolute() / file.name) for file in files]
    done = list(engine.map_tasks(partial(_calibrate_file, fitted, read), tasks))
    return {
        "n": everything.n,
        "mean_confidence": sum(total for _, total, _ in sorted(done)) / everything.n,
        "raw_mean_confidence": raw_mean,
        "n_predictions_changed": sum(changed for *_, changed in done),
        "n_files": len(files),
    }


def _calibrate_file(
    fitted: Method, read: Callable[[Path], Scores], task: tuple[Path, Path]
) -> tuple[int, float, int]:
    scores, output = read(task[0]), task[1]
    return _write_calibrated(fitted, scores, scores.as_kind(fitted.input), output)  # type: ignore[arg-type]


def _apply_to_statistics(fitted: Method, target: Path) -> dict[str, Any]:
    """Numbers about a target of which only statistics are there; sac needs no more to choose."""
    from shiftcal.methods.sac import SAC
    from shiftcal.scoring.statistics import ScoreStatistics

    statistics = ScoreStatistics.read(target)
    if not isinstance(fitted, SAC):
        raise InputError(
            f"statistics of a target are enough for sac alone, not for {fitted.name}. Name a "
            "scores file of the target."
        )
    with naming(target):
        fitted.adapt_statistics(statistics)
    inputs.check_order(target, statistics.classes, fitted.class_names_)
    unknown = {"mean_confidence": None, "n_predictions_changed": None}
    return {"n": statistics.n, "raw_mean_confidence": statistics.mean_confidence, **unknown}


def _flag_lines(selection: Selection | None) -> list[str]:
    flags = () if selection is None else selection.flags
    return [f"flagged, {flag.code}: {flag.message}" for flag in flags]


def export(
    method: options.Method,
    onnx: Annotated[Path, Option("--model", "--onnx", metavar="FILE")],
    output: options.OutputFile,
    target: options.File = None,
    output_name: options.Name = None,
    input_: Annotated[Literal["logits", "probabilities"] | None, Option("--input")] = None,
    replace: bool = False,
    normalize: bool = False,
) -> Report:
    """Add a saved method to a network in an ONNX file.

    Example:
        shiftcal export sac.json --model model.onnx --target target.npz -o calibrated.onnx

    Args:
        method: A method that `shiftcal fit` saved.
        onnx: The network, an .onnx file.
        output: Where to write the calibrated network: .onnx.
        target: Scores file of the target, no labels needed, for a method that needs one and was
            not saved after it was adapted.
        output_name: Output of the network that holds the scores; required if several fit.
        input_: What that output holds; default: what the method was fitted on.
        replace: Export without the uncalibrated output.
        normalize: Rescale rounded probabilities to sum to 1; logits do not change.
    """
    from shiftcal.export import to_onnx

    inputs.check_suffix(output, ".onnx")
    fitted = inputs.load_method(method)
    if target is not None:
        inputs.adapt_to(fitted, _read_for(fitted, method, target, normalize=normalize))
    elif fitted.uses_target and fitted.selection_ is None:
        raise InputError(
            f"{method} holds {fitted.name!r}, which must be adapted to a target before it can be "
            "exported. Name its scores: --target SCORES."
        )
    with progress(f"exporting {onnx}"):
        made = to_onnx(fitted, onnx, output, output_name=output_name, input=input_, replace=replace)
    selection = fitted.selection_
    document = {
        **asdict(made),
        "method_file": method,
        "model": onnx,
        "target": target,
        "output": made.path,
        "n_classes": fitted.n_classes_,
        "selection": None if selection is None else selection.to_dict(),
    }
    del document["path"]
    keys = ("method", "map", "temperature", "source", "input", "outputs", "checked")
    more = {"difference": made.difference and f"{made.difference:.1g}", "output": made.path}
    text = facts({"choice": selection, **{key: document[key] for key in keys}, **more})
    return Report(document, "\n".join([text, *_flag_lines(selection)]))

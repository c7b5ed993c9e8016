"""``shiftcal fit``, ``apply`` and ``export``: from surrogate sets to calibrated confidences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

from shiftcal.cli import inputs, options
from shiftcal.cli.output import Report, facts, progress, sets_table
from shiftcal.errors import InputError, InputWarning
from shiftcal.files import naming

if TYPE_CHECKING:
    from shiftcal.estimates import Selective
    from shiftcal.grouping import GroupedSelection
    from shiftcal.methods import Method
    from shiftcal.methods.method import Selection
    from shiftcal.scores import Scores

# Probabilities that are written at one time.
_BLOCK = 1 << 20
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
        peek: Let sac look at N random target rows only.
        seed: Seed of the method's random draws.
        set_: Any other setting of the method, such as reading=free (transcal), or of its map after
            'map.', such as map.n_bins=7 (--map histogram). Repeatable.
    """
    from shiftcal import methods
    from shiftcal.maps import Map
    from shiftcal.methods.method import temperature_of
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
    temperatures = getattr(fitted, "temperatures_", None)
    if temperatures is None:
        maps = getattr(fitted, "maps_", [None] * len(sets))
        temperatures = [None if one is None else temperature_of(one) for one in maps]
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
    text = f"{sets_table(summaries, list(temperatures))}\n\n{facts(document, *keys)}"
    return Report(document, text)


def apply(
    method: options.Method,
    target: options.Target,
    output: options.MaybeOutputFile = None,
    groups: Annotated[str | None, Option(metavar="FILE[:COLUMN]")] = None,
    save_adapted: options.File = None,
    target_accuracy: Annotated[float | None, Option(metavar="FRACTION")] = None,
    normalize: bool = False,
) -> Report:
    """Calibrate a target with a saved method.

    Example:
        shiftcal apply sac.json target.npz -o out.npz

    Args:
        method: A method that `shiftcal fit` saved.
        output: Where to write the calibrated scores: .npz, .csv or .parquet. Leave it out if
            TARGET is a .json file of statistics: what sac chooses for it is printed.
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
    fitted = inputs.load_method(method)
    grouped, kept = None, None
    with progress(f"calibrating {target.path}"):
        if output is None:
            numbers = _apply_to_statistics(fitted, target.path)
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
    keys = ("n", "raw_mean_confidence", "mean_confidence", "n_predictions_changed", "output")
    shown = {key: document[key] for key in (*keys, "adapted")}
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
    from shiftcal.numerics.softmax import p_max
    from shiftcal.scores import read_groups, write_pieces

    chosen, kept, n = None, None, scores.n
    taken = inputs.adapt_to(fitted, scores)
    logits = scores.logits()
    raw_mean = p_max(logits).mean()
    if groups is None:
        values, rows = fitted._check_target(taken), max(1, _BLOCK // scores.k)
        calibrated = partial(_in_blocks, lambda some: fitted._apply(values[some]), n, rows)
    else:
        file, column = inputs.file_of(groups)
        of_rows = read_groups(file, scores, column=column)
        grouped = GroupedCalibration(fitted)
        chosen = grouped.adapt(taken, of_rows)
        calibrated = partial(_in_blocks, lambda _: grouped.predict_proba(taken, of_rows), n, n)
    confidence = np.empty(n)
    if target_accuracy is not None:
        from shiftcal.estimates import accuracy_interval, selective

        for some, probs in calibrated():
            confidence[some] = probs.max(axis=1)
        interval = accuracy_interval(fitted, taken)
        if interval is None:
            warnings.warn(
                f"{fitted.name} gives no interval of its accuracy, so that of the kept rows covers "
                "chance only. Fit rehearsal, or realign without a prior.",
                InputWarning,
                stacklevel=2,
            )
        kept = selective(confidence, target_accuracy, accuracy=interval)
    bare = scores._with(
        input="probabilities", features=None, classes=scores.classes or fitted.class_names_
    )
    changed = 0

    def pieces() -> Iterator[tuple[Scores, dict[str, Any]]]:
        nonlocal changed
        for some, probs in calibrated():
            predicted, own = probs.argmax(axis=1), logits[some].argmax(axis=1)
            confidence[some] = probs.max(axis=1)
            changed += int((predicted != own).sum())
            more: dict[str, Any] = {"confidence": confidence[some], "predicted": predicted}
            if fitted.corrects and groups is None:
                more["model_confidence"] = fitted._confidence(values[some])
                more["model_predicted"] = own
            if kept is not None:
                more["keep"] = confidence[some] >= kept.threshold
            per_row = {"labels": scores.labels, "ids": scores.ids}
            cut = {name: None if x is None else x[some] for name, x in per_row.items()}
            yield bare._with(values=probs, **cut), more

    write_pieces(output, pieces())
    numbers = {
        "n": n,
        "mean_confidence": confidence.mean(),
        "raw_mean_confidence": raw_mean,
        "n_predictions_changed": changed,
    }
    return numbers, chosen, kept


def _in_blocks(work: Callable[[slice], Any], n: int, rows: int) -> Iterator[tuple[slice, Any]]:
    """What ``work`` makes of every so many rows, with the rows."""
    for start in range(0, n, rows):
        some = slice(start, min(start + rows, n))
        yield some, work(some)


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
        replace: Leave the uncalibrated output out.
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

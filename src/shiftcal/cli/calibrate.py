"""``shiftcal fit``, ``apply`` and ``export``: from surrogate sets to calibrated confidences."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from shiftcal.cli import inputs, options
from shiftcal.cli.output import Report, count_of, facts, fraction, progress, table, temperature
from shiftcal.errors import FileError, InputError
from shiftcal.files import naming

if TYPE_CHECKING:
    from shiftcal.grouping import GroupedSelection
    from shiftcal.methods import Method

_OF_SETS = ("name", "corruption", "severity", "n", "mean_confidence", "accuracy")
# Groups printed; --json has all.
_SHOWN = 50


def fit(
    method: Annotated[str, Option(metavar="NAME")],
    output: options.OutputFile,
    bank_place: options.BankPlace = None,
    surrogate: options.Surrogates = None,
    bank: options.Bank = None,
    source_train: options.SourceTrain = None,
    map_: options.Name = None,
    distance: options.Name = None,
    peek: options.MaybeCount = None,
    seed: Annotated[int | None, Option(metavar="N", min=0)] = None,
    set_: options.Settings = None,
    normalize: options.Normalize = False,
) -> Report:
    """Fit a method on labelled surrogate sets and save it.

    Example:
        shiftcal fit --method sac --bank bank/ -o sac.json

    Args:
        method: Method to fit; `shiftcal list` lists them.
        output: Where to write the fitted method, as .json.
        map_: Calibration map inside sts and sac.
        distance: How sac compares target and surrogate sets: mean, ks, wasserstein, atc or
            atc-entropy.
        peek: Let sac look at N random target rows only.
        seed: Seed of whatever the method draws at random.
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
    files = inputs.named(bank_place, bank=bank, surrogates=surrogate, source_train=source_train)
    sets = inputs.read_bank(files, normalize=normalize)
    features = None if files.source_train is None else read_features(files.source_train)
    inputs.check_needs(cls, source=features, clean=sets.clean.features)
    fitted: Method = cls(input=sets.input, **settings)
    with progress(f"fitting {method}"):
        fitted.fit(sets, source_features=features if cls.uses_features else None)
    fitted.save(output)

    shown = fitted.get_params(deep=False)
    if isinstance(inner := shown.get("map"), Map):
        shown["map"] = inner.name
        shown |= {f"map.{name}": getattr(inner, name) for name in inputs.settings_of(type(inner))}
    own = getattr(fitted, "map_", None)
    temperatures: Any = getattr(fitted, "temperatures_", None)
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
            for one, t in zip(sets.summaries(), temperatures, strict=True)
        ],
    }
    return Report(document, _fit_text(document))


def _fit_text(document: dict[str, Any]) -> str:
    lines = [sets_table(document["sets"], temperatures=True), ""]
    used = 1 if document["first_set_only"] else len(document["sets"])
    if document["temperature"] is not None:
        lines.append(f"T = {temperature(document['temperature'])}")
    if used < len(document["sets"]):
        lines.append(f"{document['method']} uses the first set only")
    lines.append(
        f"{document['method']} fitted on {count_of(used, 'set')} of {document['n_classes']} "
        f"classes ({document['input']}), written to {document['output']}"
    )
    return "\n".join(lines)


def sets_table(sets: list[dict[str, Any]], *, temperatures: bool = False) -> str:
    """Rows, mean confidence and accuracy of every set of a bank."""
    header = ["set", "name", "rows", "mean confidence", "accuracy", "T"]
    rows = [
        [
            str(position),
            one["name"],
            f"{one['n']:,}",
            fraction(one["mean_confidence"]),
            fraction(one["accuracy"]),
            temperature(one.get("temperature")),
        ]
        for position, one in enumerate(sets, start=1)
    ]
    if not temperatures:
        header, rows = header[:-1], [row[:-1] for row in rows]
    return table(header, rows, right=[name for name in header if name != "name"])


def apply(
    method: Annotated[Path, Argument(metavar="METHOD")],
    place: Annotated[Path | None, Argument(metavar="TARGET", show_default=False)] = None,
    output: options.MaybeOutputFile = None,
    target_file: options.TargetFile = None,
    groups: Annotated[str | None, Option(metavar="FILE[:COLUMN]")] = None,
    save_adapted: options.File = None,
    normalize: options.Normalize = False,
) -> Report:
    """Calibrate a target, and say which surrogate set it resembles.

    Example:
        shiftcal apply sac.json target.npz -o out.npz

    Args:
        method: Fitted method, as `shiftcal fit` writes it.
        place: Scores file of the target, no labels needed; or a .json file of its statistics, for
            which sac says what it would choose. The same as --target.
        output: Where to write the calibrated scores: .npz, .csv or .parquet;
            required unless TARGET holds statistics.
        groups: Group of every row (camera, site, batch); each is calibrated by itself. A .txt of
            one per line, .npy, .npz, or a column of a .csv or .parquet.
        save_adapted: Write the method as adapted to TARGET, as JSON, for `shiftcal export`.
    """
    from shiftcal.numerics.softmax import p_max
    from shiftcal.scores import read_groups, write_scores
    from shiftcal.scores_io import READABLE

    target = inputs.one_target(place, target_file)
    if method.suffix.lower() in READABLE and target.suffix.lower() == ".json":
        raise InputError(
            f"METHOD and TARGET look swapped. Say: shiftcal apply {target} {method} -o "
            f"{output or 'FILE'}"
        )
    if groups is not None and save_adapted is not None:
        raise InputError(
            "--save-adapted writes one method, and --groups adapts one per group. Leave one out."
        )
    fitted = inputs.load_method(method)
    document: dict[str, Any] = {
        "method": fitted.name,
        "method_file": method,
        "target": target,
        "output": output,
        "adapted": save_adapted,
        "groups": None,
    }
    if target.suffix.lower() == ".json":
        if output is not None or groups is not None:
            raise InputError(
                f"{target} holds statistics, and calibrated scores need rows. Leave -o and "
                "--groups out to see what is chosen, or name a scores file."
            )
        document |= _apply_to_statistics(fitted, method, target)
    elif output is None:
        raise InputError("-o must name a file for the calibrated scores.")
    chosen: GroupedSelection | None = None
    if output is not None:
        with progress(f"calibrating {target}"):
            scores = inputs.read_target(
                target,
                n_classes=fitted.n_classes_,
                classes=fitted.class_names_,
                normalize=normalize,
            )
            inputs.warn_of_another_model(fitted, method, target)
            of_rows = None
            if groups is not None:
                file, column = inputs.file_of(groups)
                of_rows = read_groups(file, scores, column=column)
            logits = scores.logits()
            values = inputs.adapt_to(fitted, scores)
            if of_rows is None:
                probs = fitted.predict_proba(values)
            else:
                from shiftcal.grouping import GroupedCalibration

                grouped = GroupedCalibration(fitted)
                chosen = grouped.adapt(values, of_rows, scores.features)
                probs = grouped.predict_proba(values, of_rows)
                document["groups"] = {
                    key: value for key, value in chosen.to_dict().items() if key != "everything"
                }
            predicted, confidence = probs.argmax(axis=1), probs.max(axis=1)
            names = scores.classes or fitted.class_names_
            write_scores(
                output,
                replace(scores, values=probs, input="probabilities", features=None, classes=names),
                confidence=confidence,
                predicted=predicted,
            )
        assert fitted.selection_ is not None
        document |= {
            "n": scores.n,
            "mean_confidence": confidence.mean(),
            "raw_mean_confidence": p_max(logits).mean(),
            "n_predictions_changed": (predicted != logits.argmax(axis=1)).sum(),
            "selection": fitted.selection_.to_dict(),
        }
    if save_adapted is not None:
        fitted.save(save_adapted)
    return Report(document, _apply_text(document, chosen))


def _apply_to_statistics(fitted: Method, method: Path, target: Path) -> dict[str, Any]:
    """What a method chooses for a target of which only statistics are there."""
    from shiftcal.methods.sac import SAC
    from shiftcal.scoring.statistics import ScoreStatistics

    statistics = ScoreStatistics.read(target)
    if not isinstance(fitted, SAC):
        raise InputError(
            f"statistics of a target are enough for sac alone; {method} holds {fitted.name!r}. "
            "Name a scores file of the target."
        )
    with naming(target):
        selection = fitted.adapt_statistics(statistics)
    if statistics.classes is not None and fitted.class_names_ is not None:
        inputs.check_order(target, statistics.classes, tuple(fitted.class_names_))
    return {
        "n": statistics.n,
        "mean_confidence": None,
        "raw_mean_confidence": statistics.mean_confidence,
        "n_predictions_changed": None,
        "selection": selection.to_dict(),
    }


def _apply_text(document: dict[str, Any], chosen: GroupedSelection | None) -> str:
    selection, flags = document["selection"], document["selection"]["flags"]
    pairs: list[tuple[str, object]] = [("method", document["method"])]
    lines = []
    if chosen is None:
        pairs.append(("chosen set", chosen_set(selection)))
        text, interval = temperature(selection["temperature"]), selection["temperature_interval"]
        if interval is not None:
            level = f"{100 * interval['level']:g}% interval"
            text += f" ({interval['low']:.3f} to {interval['high']:.3f}, {level})"
        pairs.append(("temperature", text))
        details = selection["details"].items()
        pairs += [(name.replace("_", " "), f"{value:.4g}") for name, value in details]
    else:
        header, rows = chosen.table()
        lines.append(table(header, rows[:_SHOWN], right=("rows", "own T", "weight", "T")))
        if len(rows) > _SHOWN:
            lines.append(f"... and {len(rows) - _SHOWN:,} groups more (--json has all)")
        lines.append("")
        pairs.append(("all rows", chosen.everything))
        pairs.append(("outside the bank", ", ".join(chosen.outside[:_SHOWN])))
        flags = [{"code": flag.code, "message": flag.message} for flag in chosen.flags]
    before, after = document["raw_mean_confidence"], document["mean_confidence"]
    raw = f"{before:.4f} before" if after is None else f"{after:.4f} (before: {before:.4f})"
    pairs.append(("mean confidence", raw))
    if document["n_predictions_changed"]:
        changed = f"{document['n_predictions_changed']:,} of {document['n']:,}"
        pairs.append(("predicted class changed", changed))
    pairs.append(("flags", ", ".join(flag["code"] for flag in flags) or "none"))
    lines += [facts(pairs), *(f"  {flag['code']}: {flag['message']}" for flag in flags), ""]
    rows_text, file = count_of(document["n"], "row"), document["output"]
    lines.append(
        f"{rows_text} " + ("known by statistics" if file is None else f"written to {file}")
    )
    if document["adapted"] is not None:
        lines.append(f"adapted method written to {document['adapted']}")
    return "\n".join(lines)


def chosen_set(selection: dict[str, Any] | None) -> str:
    """Which set a method chose; empty if it chooses none."""
    if selection is None or selection["index"] is None:
        return ""
    return f"{selection['index'] + 1} of {selection['n_sets']} ({selection['set_name']})"


def export(
    method: Annotated[Path, Argument(metavar="METHOD")],
    onnx: Annotated[Path, Option("--onnx", "--model", metavar="FILE")],
    output: options.OutputFile,
    target: options.File = None,
    output_name: options.Name = None,
    input_: Annotated[Literal["logits", "probabilities"] | None, Option("--input")] = None,
    replace: bool = False,
    normalize: options.Normalize = False,
) -> Report:
    """Append a fitted calibration to a network in an ONNX file.

    Example:
        shiftcal export sac.json --onnx model.onnx --target target.npz -o calibrated.onnx

    Args:
        method: Fitted method, as `shiftcal fit` writes it; or a saved map.
        onnx: The network, an .onnx file.
        output: Where to write the calibrated network: .onnx.
        target: Scores file of the target, no labels needed, for a method that needs one and was
            not saved after it was adapted.
        output_name: Output of the network that holds the scores; required if several fit.
        input_: What that output holds; default: what the method was fitted on.
        replace: Leave the uncalibrated output out.
    """
    from shiftcal.export import to_onnx
    from shiftcal.maps import Map
    from shiftcal.methods import Method
    from shiftcal.persistence import load

    inputs.check_suffix(output, ".onnx")
    fitted = load(method)
    if not isinstance(fitted, Method | Map):
        raise FileError(
            f"{method} holds the {fitted.kind} {fitted.name!r}, which calibrates nothing. Write a "
            "method with `shiftcal fit`."
        )
    if target is not None:
        if isinstance(fitted, Map):
            raise InputError(f"{method} holds a map, which needs no target. Leave --target out.")
        scores = inputs.read_target(
            target, n_classes=fitted.n_classes_, classes=fitted.class_names_, normalize=normalize
        )
        inputs.warn_of_another_model(fitted, method, target)
        scores.logits()
        inputs.adapt_to(fitted, scores)
    elif isinstance(fitted, Method) and fitted.uses_target and fitted.selection_ is None:
        raise InputError(
            f"{method} holds {fitted.name!r}, which must be adapted to a target before it can be "
            "exported. Name its scores: --target SCORES."
        )
    with progress(f"exporting {onnx}"):
        made = to_onnx(fitted, onnx, output, output_name=output_name, input=input_, replace=replace)
    selection = getattr(fitted, "selection_", None)
    document = {
        **{field.name: getattr(made, field.name) for field in fields(made) if field.name != "path"},
        "method_file": method,
        "model": onnx,
        "target": target,
        "output": made.path,
        "n_classes": fitted.n_classes_,
        "selection": None if selection is None else selection.to_dict(),
    }
    return Report(document, _export_text(document))


def _export_text(document: dict[str, Any]) -> str:
    selection = document["selection"]
    checked = "no: onnxruntime did not run it"
    if document["checked"] is not None:
        part = "the network" if document["checked"] == "network" else "the calibration alone"
        checked = f"{part}, run by onnxruntime; largest difference {document['difference']:.1g}"
    flags = [] if selection is None else selection["flags"]
    lines = [
        facts(
            [
                ("method", document["method"]),
                ("chosen set", chosen_set(selection)),
                ("map", document["map"]),
                ("temperature", temperature(document["temperature"])),
                ("calibrated", f"{document['source']} ({document['input']})"),
                ("outputs", ", ".join(document["outputs"])),
                ("checked", checked),
                ("flags", ", ".join(flag["code"] for flag in flags) or "none"),
            ]
        ),
        *(f"  {flag['code']}: {flag['message']}" for flag in flags),
        "",
        f"written to {document['output']}",
    ]
    return "\n".join(lines)

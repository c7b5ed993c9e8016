"""Plots: numbers in, a matplotlib ``Axes`` out.

Each draws on ``ax``, or on a new figure, and returns the ``Axes``. Fonts, sizes and background are
the user's; no setting of matplotlib is changed. matplotlib comes with ``shiftcal[plot]`` and is
imported when something is drawn. :func:`errors_by_severity` computes what :func:`ece_by_severity`
draws.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from shiftcal import charts, errors, metrics
from shiftcal.checks import (
    check_choice,
    check_confidence,
    check_count,
    check_fraction,
    check_scores,
    to_array,
)
from shiftcal.errors import InputError, require
from shiftcal.estimates import check_interval, falling, kept_rows, selective
from shiftcal.methods import Method
from shiftcal.methods.method import Selection, temperature_of
from shiftcal.metrics import Binning, BinTable, check_top1
from shiftcal.numerics.samples import DIGITS, exact_intervals, mean_interval, stretch
from shiftcal.numerics.softmax import p_max
from shiftcal.scores import Scores
from shiftcal.surrogates import SurrogateBank
from shiftcal.types import Confidence, Correct, Floats, InputKind

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "confidence_density",
    "ece_by_severity",
    "errors_by_severity",
    "reliability",
    "risk_coverage",
    "selection",
]

# Beyond this many rows a bootstrap takes seconds, and its interval is as wide as the line.
_MOST_ROWS, _RESAMPLES = 50_000, 200
# More sets and corruptions than these cannot be distinguished by their colours.
_MOST_SETS, _MOST_CORRUPTIONS = 8, 5
# Points of a curve.
_MOST_POINTS = 2000
# Sets drawn by their distance.
_MOST_DISTANCES = 30


def reliability(
    confidence: object,
    correct: object = None,
    *,
    ax: Axes | None = None,
    label: str = "",
    n_bins: int = 15,
    binning: Binning = "size",
    level: float = 0.95,
    n_resamples: int | None = None,
    seed: int = 0,
    input: InputKind = "logits",
    color: Any = None,
) -> Axes:
    """Accuracy of every bin over its mean confidence; a calibrated model is on the diagonal.

    The bins are those of :func:`shiftcal.bin_table`, the vertical bars Clopper and Pearson's
    intervals of the accuracies. The legend has ECE, with its interval by
    :func:`shiftcal.bootstrap`, and the number of rows; the strip at the bottom shows where the rows
    lie. A second call with the same ``ax`` adds a curve.

    Args:
        confidence: ``(n,)`` probability of the predicted class; or ``(n, k)`` logits or
            probabilities, or labelled :class:`~shiftcal.Scores`. Or a
            :class:`~shiftcal.metrics.BinTable`, such as that of a
            :class:`~shiftcal.ScoreStatistics`; it has no interval of ECE, and no strip.
        correct: ``(n,)`` whether each is correct; for rows and scores the labels.
        ax: Where to draw; default: a new figure.
        label: Name of the curve. A method's name brings its colour and marker, unless a curve on
            ``ax`` has that colour.
        n_bins: Number of bins.
        binning: ``"size"`` for bins of equally many rows, ``"width"`` for bins of equal width.
        level: Coverage of all intervals.
        n_resamples: Draws behind the interval of ECE; 0 for none. Default: 200 for up to 50,000
            rows, none for more.
        seed: Of those draws.
        input: What rows ``(n, k)`` are: ``"logits"`` or ``"probabilities"``.
        color: Any colour of matplotlib's; default: the next of a fixed cycle.

    Returns:
        ``ax``, or the axes of the new figure.

    Raises:
        InputError: If the arrays cannot be used.
        MissingExtra: If matplotlib is not installed.
    """
    _check_axes(ax, plot="reliability")
    check_fraction(level, name="level")
    c, error = None, None
    if isinstance(confidence, BinTable):
        if correct is not None:
            raise InputError("a BinTable has its accuracies; leave correct out.")
        table = confidence
    else:
        c, r = _top1(confidence, correct, input=input)
        bins: dict[str, Any] = {"n_bins": n_bins, "binning": binning}
        table = metrics.bin_table(c, r, **bins)
        if n_resamples is None:
            n_resamples = _RESAMPLES if len(c) <= _MOST_ROWS else 0
        check_count(n_resamples, name="n_resamples", least=0)
        if n_resamples and len(c) > 1:
            draws: dict[str, Any] = {"n_resamples": n_resamples, "level": level, "seed": seed}
            error = metrics.bootstrap(metrics.ece, c, r, **draws, **bins)
    axes = _axes_for(ax, size=(4.8, 4.8))
    look = charts.next_look(axes, str(label))
    if color is not None:
        look = look._replace(colour=color)
    filled = table.count > 0
    x, y, n = table.confidence[filled], table.accuracy[filled], table.count[filled]
    low, high = exact_intervals(y * n, n, level=level)
    text = f"n = {int(table.count.sum()):,}\nECE "
    text += f"{table.ece:.4f}" if error is None else str(error)
    text = f"{label}, {text}" if label else text
    charts.draw_bins(axes, x, y, low, high, look, label=text)
    if c is not None:
        charts.draw_strip(axes, *np.histogram(c, bins=50, range=(0, 1)), look.colour)
    _name_axes(axes, x="confidence", y="accuracy")
    _show_legend(axes)
    return axes


def risk_coverage(
    confidence: object,
    correct: object = None,
    *,
    accuracy: tuple[float, float] | None = None,
    target_accuracy: float | None = None,
    level: float = 0.95,
    ax: Axes | None = None,
    label: str = "",
    color: Any = None,
) -> Axes:
    """Error rate of the rows that are kept, over the share that is kept, most confident first.

    The solid line is the expected error rate, with its interval, from the confidences alone; see
    :func:`shiftcal.selective`. With ``correct``, the dashed line is the true one.

    Args:
        confidence: ``(n,)`` calibrated probability that each prediction is correct; or calibrated
            :class:`~shiftcal.Scores`.
        correct: ``(n,)`` whether it is; of scores the labels, if not their own.
        accuracy: Interval of the accuracy of all rows, as :func:`shiftcal.selective` takes it.
        target_accuracy: Mark how many rows can be kept at this accuracy.
        level: Coverage of the interval.
        ax: Where to draw; default: a new figure.
        label: Name of the curve. A method's name brings its colour.
        color: Any colour of matplotlib's; default: the next of a fixed cycle.

    Returns:
        ``ax``, or the axes of the new figure.

    Raises:
        InputError: If the arrays cannot be used.
        MissingExtra: If matplotlib is not installed.
    """
    _check_axes(ax, plot="risk_coverage")
    if target_accuracy is not None:
        check_fraction(target_accuracy, name="target_accuracy")
    right: Correct | None = None
    labelled = isinstance(confidence, Scores) and confidence.labels is not None
    if correct is not None or labelled:
        c, right = _top1(confidence, correct, input="probabilities")
    else:
        c = _confidences(confidence, input="probabilities", name="confidence")
    sorted_c = falling(c)
    ends = np.append(np.flatnonzero(np.diff(sorted_c)), len(c) - 1) + 1
    ends = ends[np.unique(np.linspace(0, len(ends) - 1, _MOST_POINTS).astype(np.intp))]
    level = check_fraction(level, name="level")
    kept = kept_rows(sorted_c, ends, check_interval(accuracy), level)
    axes = _axes_for(ax, size=(6.4, 4.0))
    top = 1.2 * (1 - float(kept.low[-1]))  # what a few rows may be wrong goes further
    top = max(top, axes.get_ylim()[1]) if axes.has_data() else top
    colour = color or charts.next_look(axes, str(label)).colour
    x, name = kept.rows / len(c), f"{label}, " if label else ""
    axes.plot(x, 1 - kept.accuracy, color=colour, label=f"{name}expected")
    axes.fill_between(x, 1 - kept.high, 1 - kept.low, color=colour, alpha=0.2, linewidth=0)
    if right is not None:
        wrong = ~right[np.argsort(-c, kind="stable")]
        rate = np.cumsum(wrong)[kept.rows - 1] / kept.rows
        axes.plot(x, rate, "--", color=colour, label=f"{name}measured")
    if target_accuracy is not None:
        share = selective(c, target_accuracy).coverage
        words = f"{name}{100 * share:.0f} % kept at {100 * target_accuracy:g} % accuracy"
        axes.plot([share], [1 - target_accuracy], "o", color=colour, label=words, zorder=4)
    axes.set(xlim=(0, 1.02), ylim=(0, top))
    _name_axes(axes, x="share of rows kept", y="error rate of kept rows")
    _show_legend(axes, where="upper left")
    return axes


def confidence_density(
    target: object,
    sets: SurrogateBank | Mapping[str, object] | None = None,
    *,
    ax: Axes | None = None,
    label: str = "target",
    chosen: Selection | str | None = None,
    stretched: bool = False,
    input: str = "logits",
) -> Axes:
    """Density of the confidences of a target, and of every surrogate set.

    Gaussian kernels with Scott's bandwidth, folded back at 1/K (0 if K is not known) and at 1,
    between which the highest of K probabilities lies, so that every density has the area 1. Dotted
    lines are the means, which SAC compares. Of more than eight sets only the chosen one is named.

    Args:
        target: ``(n, k)`` logits or probabilities, or :class:`~shiftcal.Scores`; or ``(n,)``
            confidences.
        sets: A bank, or name to scores or confidences, of the same kinds as the target.
        ax: Where to draw; default: a new figure.
        label: Name of the target.
        chosen: The set to draw bold: what a method chose, or its name.
        stretched: Whether equal distances are equal factors of ``1 - confidence``: a network that
            is confident in most rows has all of them in the last hundredth of a plain axis.
            Densities are then per factor of 10.
        input: What rows ``(n, k)`` are: ``"logits"`` or ``"probabilities"``.

    Returns:
        ``ax``, or the axes of the new figure.

    Raises:
        InputError: If the arrays cannot be used, or have different classes.
        MissingExtra: If matplotlib is not installed.
    """
    _check_axes(ax, plot="confidence_density")
    if isinstance(sets, SurrogateBank):
        pairs: list[tuple[str, object]] = [(one.name, Scores(one.logits)) for one in sets]
    elif isinstance(sets, Mapping | None):
        pairs = [(str(name), one) for name, one in (sets or {}).items()]
    else:
        found = type(sets).__name__
        raise InputError(f"sets must be a SurrogateBank or arrays by name; got {found}.")
    given = [("target", target), *((f"the set {name!r}", one) for name, one in pairs)]
    classes = {k for _, one in given if (k := _columns(one)) is not None}
    if len(classes) > 1:
        raise InputError(f"target and sets must have the same classes; they have {classes}.")
    ours, *others = (_confidences(one, input=input, name=name) for name, one in given)
    names = [name for name, _ in pairs]
    bold = _position(chosen, names)
    axes = _axes_for(ax, size=(6.4, 4.0))
    low = 1 / classes.pop() if classes else 0.0
    ends = (float(stretch(np.array(low))), DIGITS) if stretched else (low, 1.0)
    x: Floats = np.linspace(ends[0], ends[1], 401)

    def draw(name: str, confidence: Floats, colour: Any, suffix: str = "", **style: Any) -> None:
        grid = 1 - 10**-x if stretched else x
        y = charts.kernel_density(confidence, grid, least=low, stretched=stretched, cells=2000)
        beyond = float((stretch(confidence) > DIGITS).mean()) if stretched else 0.0
        further = f", {100 * beyond:.0f}% beyond" if beyond >= 0.005 else ""
        mean = float(confidence.mean())
        text = f"{name}: mean {mean:.3f}{further}{suffix}"
        place = float(stretch(np.array(mean))) if stretched else mean
        charts.draw_density(axes, x, y, place, colour, **{"label": text, **style})

    draw(str(label), ours, charts.next_look(axes, first=1).colour, fill=True, linewidth=2.0)
    many = len(others) > _MOST_SETS
    rest = f"{len(others) - (bold is not None)} {'other ' if bold is not None else ''}sets"
    colours = charts.ramp(len(others), axes)
    for j, (name, values) in enumerate(zip(names, others, strict=True)):
        if j == bold:
            draw(name, values, colours[j], ", chosen", linewidth=2.4, zorder=3.5)
        elif many:  # the first stands for all
            faint: dict[str, Any] = {"label": rest, "alpha": 0.25, "linewidth": 0.6}
            draw(name, values, charts.ink(axes), with_mean=False, **faint)
            rest = "_"
        else:
            draw(name, values, colours[j], linewidth=1.2)
    axes.set_ylim(bottom=0)
    axes.set_xlim(x[0], x[-1])
    if stretched:
        # Curves fill the whole width here, so the legend goes above them.
        entries = len(axes.get_legend_handles_labels()[1])
        axes.set_ylim(top=axes.dataLim.ymax / max(1 - 0.07 * entries, 0.4))
        ticks = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
        charts.mark_stretched(axes, [tick for tick in ticks if tick >= low])
    _name_axes(axes, x="confidence", y=f"density{' per factor of 10' if stretched else ''}")
    _show_legend(axes)
    return axes


def _position(chosen: Selection | str | None, names: list[str]) -> int | None:
    """Which of the sets was chosen; ``None`` for a method that chooses no set."""
    name = chosen.set_name if isinstance(chosen, Selection) else chosen
    if name is None:
        return None
    if name not in names:
        raise InputError(
            f"chosen must be the name of a set, or a selection of one; got {name!r}, and the sets "
            f"are {', '.join(map(repr, names[:8])) or 'none'}."
        )
    return names.index(name)


def ece_by_severity(
    ece: Any,
    *,
    ax: Axes | None = None,
    spread: Literal["interval", "range"] = "interval",
    level: float = 0.95,
) -> Axes:
    """A line per method: its ECE over the severity of the corruption, with bars for the spread.

    Args:
        ece: Label to severity to one or more ECE, fractions, as :func:`errors_by_severity` returns
            them; or a :class:`shiftcal.studies.Run`, or some of its ``records``. A method's name
            brings its colour and marker.
        ax: Where to draw; default: a new figure.
        spread: What the bars are: ``"interval"``, Student's interval of the mean, or ``"range"``,
            from the smallest to the largest. A single number has no bar.
        level: Coverage of the interval.

    Returns:
        ``ax``, or the axes of the new figure.

    Raises:
        InputError: If there is no number, or one is not within [0, 1].
        MissingExtra: If matplotlib is not installed.
    """
    _check_axes(ax, plot="ece_by_severity")
    check_choice(spread, ("interval", "range"), name="spread")
    check_fraction(level, name="level")
    numbers = _numbers(ece)
    axes = _axes_for(ax, size=(6.4, 4.0))
    every = sorted({severity for of in numbers.values() for severity in of})
    style = charts.looks(numbers)
    for index, (label, of) in enumerate(numbers.items()):
        places = charts.shifted(every, index, len(numbers), spread=0.34, log=False)
        x = places[[every.index(severity) for severity in of]]
        y, low, high = np.array([_ends(values, spread, level) for values in of.values()]).T
        look = style[label]._replace(colour=charts.visible(style[label].colour, axes))
        charts.draw_series(axes, x, y, low, high, look, label=label)
    axes.set_ylim(bottom=0)
    if all(float(x).is_integer() for x in every) and len(every) <= 12:
        axes.set_xticks(every, [f"{x:g}" for x in every])
    _name_axes(axes, x="severity", y="ECE")
    _show_legend(axes, where="upper left")  # most errors rise to the right
    return axes


def _numbers(ece: Any) -> dict[str, dict[float, Floats]]:
    """Label to severity, rising, to numbers."""
    try:
        if not isinstance(ece, Mapping):
            records, ece = list(getattr(ece, "records", ece)), {}
            for one in records:
                if one.severity is not None:
                    ece.setdefault(one.label, {}).setdefault(one.severity, []).append(one.ece)
        numbers = {
            str(label): {float(at): np.atleast_1d(np.asarray(of[at], float)) for at in sorted(of)}
            for label, of in ece.items()
        }
        values = np.concatenate([one for of in numbers.values() for one in of.values()])
        if not all(numbers.values()) or not ((values >= 0) & (values <= 1)).all():  # also NaN
            raise ValueError("they must be within [0, 1]: 0.05, not 5")
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(
            'ece must have numbers by label and severity, such as {"SAC": {1: 0.02, 2: 0.03}} or '
            "what plot.errors_by_severity returns, or records of a study; "
            f"{error}. Got {ece!r:.60}."
        ) from error
    return numbers


def _ends(values: Floats, spread: str, level: float) -> tuple[float, float, float]:
    """The mean, and the lower and upper end of the bar."""
    interval = mean_interval(values.tolist(), level=level)
    if spread == "range":
        return interval.mean, float(values.min()), float(values.max())
    if interval.low is None or interval.high is None:
        return interval.mean, interval.mean, interval.mean
    return interval.mean, max(interval.low, 0.0), min(interval.high, 1.0)


def errors_by_severity(
    methods: Mapping[str, Method] | Iterable[Method],
    targets: SurrogateBank,
    *,
    n_bins: int = 15,
    binning: Binning = "size",
) -> dict[str, dict[int, tuple[float, ...]]]:
    """ECE of every method on every set, by severity: what :func:`ece_by_severity` draws.

    Every set is a target that each method adapts to without its labels; corruptions of one
    severity are its repetitions. The methods themselves are not changed.

    Args:
        methods: Fitted methods by label; or methods, labelled by their names.
        targets: Labelled sets with known severities. Sets that a method was fitted on flatter it:
            make a bank of samples and corruptions that it has not seen.
        n_bins: Of ECE.
        binning: Of ECE.

    Returns:
        Label to severity, rising, to one ECE per set of that severity.

    Raises:
        InputError: If the sets have no severities, or a method needs more than their logits.
        NotFittedError: If a method is not fitted.
    """
    if not isinstance(targets, SurrogateBank):
        raise InputError(f"targets must be a SurrogateBank; got {type(targets).__name__}.")
    if any(one.severity is None for one in targets):
        raise InputError("targets must have severities. Make the bank with severities=.")
    if not isinstance(methods, Mapping):
        methods = {method.name: method for method in methods}
    errors: dict[str, dict[int, tuple[float, ...]]] = {}
    for label, method in methods.items():
        errors[label] = {}
        for one in sorted(targets, key=lambda each: each.severity or 0):
            adapted, severity = copy.copy(method), one.severity or 0
            scores = Scores(one.logits, features=one.features)
            if adapted.uses_target:
                adapted.adapt(scores)
            probs = adapted.predict_proba(scores)
            correct = probs.argmax(axis=1) == one.labels
            error = metrics.ece(probs.max(axis=1), correct, n_bins=n_bins, binning=binning)
            errors[label][severity] = (*errors[label].get(severity, ()), error)
    return errors


def selection(
    method: Method,
    *,
    ax: Axes | None = None,
    show: Literal["distances", "temperatures"] | None = None,
) -> Axes:
    """What a method chose for a target, and how near the next choice was.

    ``"distances"``, of a method that chooses one set: the distance of the target to every set, the
    chosen one marked, and the margin to the runner-up. Of more than thirty sets the thirty nearest
    are drawn.

    ``"temperatures"``: the temperature of every set over its mean raw confidence, a line for every
    corruption, and the target among them with its temperature and interval.

    Args:
        method: An adapted method.
        ax: Where to draw; default: a new figure.
        show: Which of the two; default: distances, where the method has them.

    Returns:
        ``ax``, or the axes of the new figure.

    Raises:
        InputError: If the method chose between no sets.
        NotFittedError: If the method is not adapted.
        MissingExtra: If matplotlib is not installed.
    """
    _check_axes(ax, plot="selection")
    if show is not None:
        check_choice(show, ("distances", "temperatures"), name="show")
    if not isinstance(method, Method):
        raise InputError(f"method must be an adapted method; got {type(method).__name__}.")
    choice: Selection | None = getattr(method, "selection_", None)
    if choice is None:
        raise errors.NotFittedError(f"this {method.name} has chosen nothing yet; call adapt first.")
    if show == "temperatures" or (show is None and not choice.distances):
        return _draw_temperatures(ax, method, choice)
    if not choice.distances or choice.index is None:
        raise InputError(
            f"{choice.method} chose between no sets, so there are no distances to draw. "
            "SAC has them; Rehearsal has temperatures."
        )
    return _draw_distances(ax, method, choice, choice.index)


def _draw_distances(ax: Any, method: Any, choice: Selection, index: int) -> Any:
    distances, names = choice.distances, [one.name for one in method.ladder_]
    others = sorted((j for j in range(len(distances)) if j != index), key=distances.__getitem__)
    drawn = sorted([index, *others[: _MOST_DISTANCES - 1]])
    axes = _axes_for(ax, size=(6.4, 1.3 + 0.24 * max(len(drawn), 4)))
    accent = charts.visible(charts.METHODS["sac"].colour, axes)
    for row, j in enumerate(drawn):
        colour, size = (accent, 8) if j == index else (charts.ink(axes), 5)
        axes.hlines(row, 0, distances[j], color=colour, alpha=0.5, linewidth=1.2)
        axes.plot([distances[j]], [row], "o", color=colour, markersize=size, zorder=3)
    axes.set_yticks(range(len(drawn)), [names[j] for j in drawn], parse_math=False)
    axes.get_yticklabels()[drawn.index(index)].set_fontweight("bold")
    most = max(distances[j] for j in drawn)
    axes.set(ylim=(len(drawn) - 0.4, -0.6), xlim=(0, 1.12 * most or 1.0))  # the first set on top
    if others and choice.margin is not None:
        ends = float(distances[index]), float(distances[others[0]])
        axes.axvspan(*ends, color=accent, alpha=0.12, linewidth=0, zorder=0)
        if not any(axes.get_title(loc=side) for side in ("left", "center", "right")):
            words = f"{names[index]}, by a margin of {choice.margin:.2g}"
            axes.set_title(words, loc="left", parse_math=False)
    some = f"; {len(drawn)} nearest of {len(distances)} sets" if len(drawn) < len(distances) else ""
    _name_axes(axes, x=f"{choice.distance} distance to the target{some}", y="")
    return axes


def _draw_temperatures(ax: Any, method: object, choice: Selection) -> Any:
    ladder = getattr(method, "ladder_", ())
    temperatures: Any = getattr(method, "temperatures_", None)
    if temperatures is None:
        temperatures = [temperature_of(one) for one in getattr(method, "maps_", ())]
    if len(temperatures) == 0 or None in temperatures:
        raise InputError(
            f"{choice.method} must have a temperature for every set: take Rehearsal, or SAC with "
            "temperatures as maps."
        )
    assert choice.temperature is not None
    assert choice.mean_confidence is not None
    axes = _axes_for(ax, size=(6.4, 4.4))
    # Every corruption begins at the clean set.
    corruptions: dict[str, list[int]] = {}
    for j, one in enumerate(ladder[1:], start=1):
        corruptions.setdefault(one.corruption or "surrogate sets", [0]).append(j)
    corruptions = corruptions or {"clean set": [0]}
    many = len(corruptions) > _MOST_CORRUPTIONS
    label, alpha = f"{len(corruptions)} corruptions", 0.4 if many else 1.0
    for name, steps in corruptions.items():
        x = [ladder[j].mean_confidence for j in steps]
        y = [temperatures[j] for j in steps]
        colour = charts.ink(axes) if many else charts.next_look(axes, first=1).colour
        style = {"linewidth": 1.0, "markersize": 4, "alpha": alpha}
        axes.plot(x, y, "o-", color=colour, label=label if many else name, **style)
        label = "_"  # of many, the first stands for all
    around, more = choice.temperature_interval, ""
    if around is not None:
        more += f" ({around.low:.3g} to {around.high:.3g})"
    if choice.index is not None:
        more += f", that of {ladder[choice.index].name}"
    colour = charts.visible(charts.METHODS["sac"].colour, axes)
    charts.draw_target(axes, choice, choice.mean_confidence, colour, more=more)
    charts.mark_temperatures(axes)
    _name_axes(axes, x="mean raw confidence", y="temperature")
    _show_legend(axes)
    return axes


def _check_axes(ax: object, *, plot: str) -> None:
    """Check ``ax`` before anything is computed.

    Raises:
        MissingExtra: If matplotlib is not installed.
        InputError: If ``ax`` is neither a matplotlib ``Axes`` nor ``None``.
    """
    axes = require("matplotlib.axes", extra="plot", needed_by=f"plot.{plot}")
    if not isinstance(ax, axes.Axes | None):
        raise InputError(f"ax must be a matplotlib Axes, one of them; got {type(ax).__name__}.")


def _axes_for(ax: Any, *, size: tuple[float, float]) -> Any:
    """``ax`` itself, or the axes of a new figure of pyplot's, which notebooks show."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.figure(figsize=size, layout="constrained").add_subplot()


def _name_axes(axes: Any, *, x: str, y: str) -> None:
    """Label the axes, where the user has not."""
    if not axes.get_xlabel():
        axes.set_xlabel(x)
    if not axes.get_ylabel():
        axes.set_ylabel(y)


def _show_legend(axes: Any, *, where: str = "best") -> None:
    """The legend of everything on the axes that has a label; a dollar in a label is a dollar."""
    handles, labels = axes.get_legend_handles_labels()
    legend = axes.legend(handles, labels, loc=where)
    legend.set_in_layout(False)  # a long one must not press small axes to nothing
    for text in legend.get_texts():
        text.set_parse_math(False)


def _top1(values: object, truth: object, *, input: InputKind) -> tuple[Confidence, Correct]:
    """Confidence and correctness ``(n,)`` of confidences, of rows with labels, or of scores."""
    if isinstance(values, Scores):
        scores = values if truth is None else replace(values, labels=truth)  # type: ignore[arg-type]
    elif truth is None:
        raise InputError("confidence must come with correct; only labelled Scores have it.")
    elif _columns(values) is None:
        return check_top1(values, truth)
    else:
        scores = Scores(values, input=input, labels=truth)  # type: ignore[arg-type]
    if scores.labels is None:
        raise InputError("scores must have labels; see plot.confidence_density for others.")
    logits = scores.logits()
    return p_max(logits), logits.argmax(axis=1) == scores.labels


def _confidences(values: object, *, input: str, name: str) -> Floats:
    """Confidences ``(n,)`` of confidences, logits or probabilities ``(n, k)``, or scores."""
    if isinstance(values, Scores):
        return p_max(values.logits())
    if _columns(values) is not None:
        return p_max(check_scores(values, input=input))
    return check_confidence(values, name=name).astype(np.float64)


def _columns(values: object) -> int | None:
    """The number of classes of scores and of rows; ``None`` for confidences."""
    if isinstance(values, Scores):
        return values.k
    shape = to_array(values, name="confidence").shape
    return int(shape[1]) if len(shape) == 2 and shape[1] > 1 else None

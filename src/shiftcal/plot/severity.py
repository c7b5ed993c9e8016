"""ECE over the severity of a corruption."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from shiftcal.checks import check_choice, check_fraction
from shiftcal.errors import InputError
from shiftcal.methods import Method
from shiftcal.metrics import Binning
from shiftcal.metrics import ece as expected_calibration_error
from shiftcal.numerics.samples import mean_interval
from shiftcal.plot.style import (
    axes_for,
    check_axes,
    draw_series,
    legend_text,
    looks,
    name_axes,
    shifted,
    show_legend,
    visible,
)
from shiftcal.scores import Scores
from shiftcal.surrogates import SurrogateBank

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# How much of the way to the next severity the bars of one take together.
_TOGETHER = 0.34


def ece_by_severity(
    ece: Mapping[str, object],
    *,
    ax: Axes | None = None,
    severities: Sequence[float] | None = None,
    spread: Literal["interval", "quartiles", "range"] = "interval",
    level: float = 0.95,
) -> Axes:
    """A line per method: its ECE over the severity of the corruption, with bars for the spread.

    Args:
        ece: Label to numbers, as :func:`errors_by_severity` returns them: severity to one or more
            ECE, fractions. Or, in the order of ``severities``, one number or several for each. A
            method's name brings its colour and marker.
        ax: Where to draw; default: a new figure.
        severities: For numbers without them; default: 1, 2, ...
        spread: What the bars are: ``"interval"``, Student's interval of the mean, with a line
            through the means; ``"quartiles"``, with a line through the medians; or ``"range"``,
            from the smallest to the largest, with a line through the means. A single number has
            no bar.
        level: Coverage of the interval.

    Returns:
        ``ax``, or the axes of the new figure.

    Raises:
        InputError: If there is no number, or one is not within [0, 1].
        MissingExtra: If matplotlib is not installed.
    """
    check_axes(ax, plot="ece_by_severity")
    check_choice(spread, ("interval", "quartiles", "range"), name="spread")
    check_fraction(level, name="level")
    if not isinstance(ece, Mapping) or not ece:
        raise InputError(
            'ece must have numbers by label, such as {"SAC": [0.02, 0.03, 0.05]} or what '
            f"plot.errors_by_severity returns; got {ece!r:.60}."
        )
    numbers = {str(label): _numbers(str(label), of, severities) for label, of in ece.items()}
    axes = axes_for(ax, size=(6.4, 4.0))
    every = sorted({severity for of in numbers.values() for severity in of})
    style = looks(numbers)
    for index, (label, of) in enumerate(numbers.items()):
        places = shifted(every, index, len(numbers), spread=_TOGETHER, log=False)
        x = places[[every.index(severity) for severity in of]]
        y, low, high = np.array([_ends(values, spread, level) for values in of.values()]).T
        look = style[label]._replace(colour=visible(style[label].colour, axes))
        draw_series(axes, x, y, low, high, look, label=legend_text(label))
    axes.set_ylim(bottom=0)
    if all(float(x).is_integer() for x in every) and len(every) <= 12:
        axes.set_xticks(every, [f"{x:g}" for x in every])
    name_axes(axes, x="severity", y=f"{'median ' if spread == 'quartiles' else ''}ECE")
    show_legend(axes, where="upper left")  # most errors rise to the right
    return axes


def _numbers(label: str, given: Any, severities: Any) -> dict[float, list[float]]:
    """Severity, rising, to numbers."""
    try:
        if isinstance(given, Mapping):
            pairs = list(given.items())
        else:
            levels = range(1, len(given) + 1) if severities is None else severities
            pairs = list(zip(levels, given, strict=True))
        numbers = {float(at): np.atleast_1d(np.asarray(of, np.float64)) for at, of in pairs}
    except (TypeError, ValueError) as error:
        raise InputError(
            f"ece of {label!r} must be numbers, one or several for each severity; {error}."
        ) from error
    if not numbers or len(numbers) < len(pairs):
        raise InputError(f"ece of {label!r} must have numbers, and each severity once.")
    for severity, values in numbers.items():
        # Also false for NaN.
        if values.ndim != 1 or not values.size or not ((values >= 0) & (values <= 1)).all():
            raise InputError(
                f"ece of {label!r} at severity {severity:g} must be one number or several within "
                f"[0, 1]; got {values.tolist()!r:.80}. They are fractions: 0.05, not 5."
            )
    return {severity: numbers[severity].tolist() for severity in sorted(numbers)}


def _ends(values: Sequence[float], spread: str, level: float) -> tuple[float, float, float]:
    """Where the line goes, and the lower and upper end of the bar."""
    if spread == "quartiles":
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
        return middle, low, high
    interval = mean_interval(values, level=level)
    if spread == "range":
        return interval.mean, min(values), max(values)
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
    unknown = [one.name for one in targets if one.severity is None]
    if unknown:
        raise InputError(
            f"targets must have severities; that of {unknown[0]!r} is unknown. Make the bank with "
            "severities=, or with SurrogateBank.synthesize."
        )
    errors: dict[str, dict[int, tuple[float, ...]]] = {}
    for label, method in _labelled(methods):
        errors[label] = {}
        for one in sorted(targets, key=lambda each: each.severity or 0):
            adapted = copy.copy(method)
            scores = Scores(one.logits, features=one.features)
            if adapted.uses_target:
                adapted.adapt(scores)
            probs = adapted.predict_proba(scores)
            correct = probs.argmax(axis=1) == one.labels
            error = expected_calibration_error(
                probs.max(axis=1), correct, n_bins=n_bins, binning=binning
            )
            severity = one.severity or 0
            errors[label][severity] = (*errors[label].get(severity, ()), error)
    return errors


def _labelled(methods: Any) -> list[tuple[str, Method]]:
    if isinstance(methods, Mapping):
        pairs = [(str(label), method) for label, method in methods.items()]
    else:
        listed = [methods] if isinstance(methods, Method) or not np.iterable(methods) else methods
        pairs = [(getattr(each, "name", ""), each) for each in listed]
    labels = {label for label, _ in pairs}
    fitted = all(isinstance(method, Method) for _, method in pairs)
    if not pairs or not fitted or len(labels) < len(pairs):
        raise InputError(
            'methods must be fitted methods, at least one, with different labels, such as {"SAC": '
            f"sc.SAC().fit(bank)}}; got {methods!r:.80}."
        )
    return pairs

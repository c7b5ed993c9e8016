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
    background,
    beside,
    check_axes,
    legend_text,
    name_axes,
    series_looks,
    show_legend,
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
        got = "nothing" if isinstance(ece, Mapping) else type(ece).__name__
        raise InputError(
            'ece must have numbers by label, such as {"SAC": [0.02, 0.03, 0.05]} or what '
            f"plot.errors_by_severity returns; got {got}."
        )
    numbers = {str(label): _numbers(str(label), of, severities) for label, of in ece.items()}
    axes = axes_for(ax, size=(6.4, 4.0))
    every = sorted({severity for of in numbers.values() for severity in of})
    looks = series_looks(axes, list(numbers))
    for index, (label, of) in enumerate(numbers.items()):
        share = _TOGETHER * (index - (len(numbers) - 1) / 2) / len(numbers)
        moved = dict(zip(every, beside(every, share, log=False), strict=True))
        ends = [_ends(values, spread=spread, level=level) for values in of.values()]
        y, low, high = np.array(ends).T
        look = looks[label]
        axes.errorbar(
            np.array([moved[severity] for severity in of]),
            y,
            yerr=np.maximum([y - low, high - y], 0.0),  # rounding may make them negative
            label=legend_text(label),
            color=look.colour,
            marker=look.marker,
            linestyle=look.dashes,
            markeredgecolor=background(axes),
            markeredgewidth=0.6,
            markersize=10 if look.marker == "*" else 6,
            linewidth=1.4,
            elinewidth=1.1,
        )
    axes.set_ylim(bottom=0)
    if all(float(x).is_integer() for x in every) and len(every) <= 12:
        axes.set_xticks(every, [f"{x:g}" for x in every])
    name_axes(axes, x="severity", y=f"{'median ' if spread == 'quartiles' else ''}ECE")
    show_legend(axes, where="upper left")  # most errors rise to the right
    return axes


def _numbers(label: str, given: Any, severities: Any) -> dict[float, list[float]]:
    """Severity, rising, to numbers."""
    if isinstance(given, str) or not hasattr(given, "__len__"):
        raise InputError(
            f"ece of {label!r} must be numbers, one or several for each severity; "
            f"got {given!r:.60}."
        )
    if not isinstance(given, Mapping):
        levels = range(1, len(given) + 1) if severities is None else list(severities)
        if len(levels) != len(given) or len(set(levels)) < len(levels):
            raise InputError(
                f"severities must be as many as the numbers of {label!r}, each once: "
                f"{len(given)} numbers; got {levels}."
            )
        given = dict(zip(levels, given, strict=True))
    if not given:
        raise InputError(f"ece of {label!r} must have at least one number; got none.")
    numbers = {}
    for severity, values in given.items():
        if not isinstance(severity, int | float | np.number) or not np.isfinite(severity):
            raise InputError(f"severities of {label!r} must be numbers; got {severity!r}.")
        try:
            array = np.atleast_1d(np.asarray(values))
        except ValueError:  # lists of different lengths
            array = np.empty(0)
        usable = array.dtype.kind in "iuf" and array.ndim == 1 and array.size
        if not usable or not ((array >= 0) & (array <= 1)).all():  # not of NaN either
            raise InputError(
                f"ece of {label!r} at severity {severity} must be one number or several within "
                f"[0, 1]; got {values!r:.80}. They are fractions: 0.05, not 5."
            )
        numbers[float(severity)] = [float(value) for value in array]
    return dict(sorted(numbers.items()))


def _ends(values: Sequence[float], *, spread: str, level: float) -> tuple[float, float, float]:
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
            f"targets must have severities; that of {unknown[0]!r} is not known. Make the bank "
            "with severities=, or with SurrogateBank.synthesize."
        )
    errors: dict[str, dict[int, tuple[float, ...]]] = {}
    for label, method in _labelled(methods):
        errors[label] = {}
        if method.uses_mixed:
            raise InputError(
                f"{method.name} needs mixed images of every target, which a bank has not. Adapt it "
                "to each target yourself, and pass the numbers to ece_by_severity."
            )
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
    if isinstance(methods, Method):
        methods = [methods]
    if isinstance(methods, Mapping):
        pairs = [(str(label), method) for label, method in methods.items()]
    else:
        listed = list(methods) if isinstance(methods, Iterable) else []
        pairs = [(getattr(each, "name", ""), each) for each in listed]
    wrong = [method for _, method in pairs if not isinstance(method, Method)]
    if not pairs or wrong:
        raise InputError(
            'methods must be fitted methods, at least one, such as {"SAC": sc.SAC().fit(bank)}; '
            f"got {type(wrong[0] if wrong else methods).__name__}."
        )
    labels = [label for label, _ in pairs]
    if len(set(labels)) < len(labels):
        raise InputError(
            f"methods must have different labels; got {labels}. Name them: "
            '{"SAC, mean": ..., "SAC, ks": ...}.'
        )
    return pairs

"""Settings of a monitor, checked: method, estimator, window, false alarms; and the clock."""

from __future__ import annotations

import math
from contextlib import suppress
from numbers import Real

from sklearn.base import clone

from shiftcal import estimates, methods
from shiftcal._checks import check_positive
from shiftcal.errors import InputError
from shiftcal.estimates import AccuracyEstimator
from shiftcal.estimates.rehearsed import Rehearsed
from shiftcal.methods import Method
from shiftcal.methods.rehearsal import Rehearsal
from shiftcal.monitoring._windows import Sliding, Window
from shiftcal.surrogates import SurrogateBank

FEWEST_ALARMS, MOST_ALARMS = 0.001, 100.0
_SUITABLE = "Take rehearsal, sac (distance='mean'), ace, sts, ts or vanilla."


def given_method(method: object, input: str | None, *, seed: int) -> Method:
    """An unfitted copy of the method, if its choice can be had from sums.

    Args:
        method: Name, or a method.
        input: What the model gives; ``None`` if the method says it.
        seed: Of a method given by name, if it has one.

    Raises:
        InputError: If it is none, is for other input, or needs the rows.
    """
    if isinstance(method, str):
        cls = methods.get(method)
        seeded = {"seed": seed} if "seed" in cls().get_params() else {}
        made: Method = cls(**seeded, input=input or "logits")
    elif isinstance(method, Method):
        made = clone(method)
    else:
        given = f"the class {method.__name__}" if isinstance(method, type) else repr(method)
        raise InputError(
            f"method must be the name of a method or a method; got {given}. {_SUITABLE}"
        )
    if input is not None and made.input != input:
        raise InputError(
            f"the method was made for {made.input} and this monitor expects {input}. "
            "Make both with the same input=, or leave that of the monitor out."
        )
    if (why := _needs_more(made)) is not None:
        raise InputError(
            f"a monitor keeps sums over rows, not the rows, and {made.name()} cannot choose by "
            f"them: {why}. {_SUITABLE}"
        )
    return made


def given_estimator(
    estimator: object, method: Method, bank: SurrogateBank, *, seed: int
) -> AccuracyEstimator | None:
    """The estimator, copied and fitted on the bank; ``None`` if none is wanted.

    Raises:
        InputError: If it is none, is for other input, or needs the rows.
    """
    if estimator is None or estimator is False:
        return None
    if isinstance(estimator, str):
        cls = estimates.get(estimator)
        seeded = {"seed": seed} if "seed" in cls().get_params() else {}
        made: AccuracyEstimator = cls(**seeded, input=method.input)
    elif isinstance(estimator, AccuracyEstimator):
        made = clone(estimator)
    else:
        raise InputError(
            "estimator must be the name of an accuracy estimator, an estimator, or None; got "
            f"{estimator!r}. Take rehearsed or surrogate-curve."
        )
    if made.input != method.input:
        raise InputError(
            f"the estimator was made for {made.input} and the method for {method.input}. "
            "Make both with the same input=."
        )
    if (why := made.needs_rows()) is not None:
        raise InputError(
            f"a monitor keeps sums over rows, not the rows, and {made.name()} cannot estimate "
            f"from them: {why}. Take rehearsed or surrogate-curve, or None."
        )
    if isinstance(made, Rehearsed) and isinstance(method, Rehearsal) and made.seed == method.seed:
        return Rehearsed.of(method)  # what took the time was learnt already
    return made.fit(bank)


def given_window(window: object) -> Window:
    """The window, whose settings were checked; the default for ``None``.

    Raises:
        InputError: If it is none, or a setting cannot be used.
    """
    if window is None:
        return Sliding()
    if not isinstance(window, Window):
        raise InputError(
            f"window must be Sliding(rows=...) or Exponential(half_life=...); got {window!r}."
        )
    window.plan()
    return clone(window)


def check_false_alarms(value: object) -> float:
    """False alarms per 100,000 rows, within what simulated streams can tell."""
    number = check_positive(value, name="false_alarms")
    if FEWEST_ALARMS <= number <= MOST_ALARMS:
        return number
    raise InputError(
        f"false_alarms must lie between {FEWEST_ALARMS:g} and {MOST_ALARMS:g} per 100,000 rows; "
        f"got {value!r}."
    )


def check_clock(at: object) -> float:
    """Seconds of a clock, finite."""
    with suppress(OverflowError):  # of a whole number larger than any float
        if isinstance(at, Real) and not isinstance(at, bool) and math.isfinite(at):
            return float(at)
    raise InputError(f"at must be a finite number of seconds, or None; got {at!r}.")


def _needs_more(method: Method) -> str | None:
    if method.uses_features:
        return "it needs features of the target"
    if method.uses_mixed:
        return "it needs scores of mixed images of the target"
    return method.needs_rows()

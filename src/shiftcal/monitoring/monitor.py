"""A monitor: logits in, confidences and events out."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
import threading
import warnings
from collections.abc import Mapping
from contextlib import suppress
from numbers import Real
from typing import Any, ClassVar, Self, final

import numpy as np
from sklearn.base import clone

from shiftcal import estimates, methods
from shiftcal import persistence as _persistence
from shiftcal.checks import check_count, check_flag, check_fraction, check_positive
from shiftcal.errors import InputError
from shiftcal.estimates import AccuracyEstimator, Rehearsed
from shiftcal.methods import Method
from shiftcal.methods.method import given_bank, given_logits
from shiftcal.methods.rehearsal import Rehearsal
from shiftcal.monitoring.detector import Detector, learn, scales_of
from shiftcal.monitoring.stream import (
    FORMAT,
    VERSION,
    Live,
    Running,
    State,
    Update,
    chooser_of,
    from_plain,
    plainly_logits,
)
from shiftcal.monitoring.windows import Sliding, Window
from shiftcal.persistence import Arrays, Estimator, encode
from shiftcal.surrogates import SetSummary, SurrogateBank
from shiftcal.types import Logits

# --------------------------------------------------------------------------------------
# Settings of a monitor, checked: method, estimator, window, false alarms; and the clock.
# --------------------------------------------------------------------------------------

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
            f"a monitor keeps sums over rows, not the rows, and {made.name} cannot choose by "
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
            f"a monitor keeps sums over rows, not the rows, and {made.name} cannot estimate "
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


# --------------------------------------------------------------------------------------
# Which monitor a running state belongs to.
# --------------------------------------------------------------------------------------


def digest(fitted: Any) -> str:
    """A digest of all values, to the last bit."""
    arrays: Arrays = {}
    text = json.dumps(encode(fitted, arrays), sort_keys=True)
    made = hashlib.sha256(text.encode())
    for array in arrays.values():
        made.update(f"{array.dtype.str}{array.shape}".encode())
        made.update(np.ascontiguousarray(array).tobytes())
    return made.hexdigest()


def unpacked(state: object, monitor: str) -> Running:
    """The running state in what ``state_dict`` gave; not checked yet to fit the window.

    Args:
        state: From ``state_dict``, perhaps through JSON.
        monitor: Digest of the monitor that is to go on from it.

    Raises:
        InputError: If it is something else, newer, or of another monitor.
    """
    if not isinstance(state, Mapping) or state.get("format") != FORMAT:
        got = state.get("format") if isinstance(state, Mapping) else type(state).__name__
        raise InputError(
            f"a monitor's state must be what state_dict gave, of format {FORMAT!r}; got {got!r}."
        )
    if state.get("version") != VERSION:
        raise InputError(
            f"a monitor's state must be of version {VERSION}; this one has version "
            f"{state.get('version')!r}. Read it with the shiftcal that wrote it."
        )
    if state.get("monitor") != monitor:
        raise InputError(
            "this state is that of another monitor: of another bank, method, window or limits. "
            "Go on with the monitor that it was taken from, as save() keeps it, or begin anew."
        )
    return from_plain(state.get("running"))


# --------------------------------------------------------------------------------------
# A monitor: logits in, confidences and events out.
# --------------------------------------------------------------------------------------


@final
class Monitor(Estimator):
    """Calibrates a stream as it comes, estimates its accuracy, and tells when it has shifted.

    Rows are counted in blocks. Until the first 100 rows and the end of a block, confidences are
    those of the clean set; from then on the calibration is chosen anew at the end of every block,
    from the sums of the blocks in the window. For a full sliding window it is what the method's
    ``adapt`` chooses for the same rows, to 1e-9; Rehearsal's interval is drawn from blocks, not
    from random groups, and so is its temperature where the window is larger than all that was
    rehearsed. Nothing depends on how the rows are cut into batches.

    *A shift.* Of every row five features of the raw softmax: p_max, its square, entropy, ``Σ p²``
    and ``-log(1 - p_max)``. With ``d`` the difference of their means, of the last 1, 2, 4, ...
    blocks and of the window (n rows), from those of the m clean rows, over ``sqrt(1/n + 1/m)``, two
    statistics: ``a'd``, along the mean direction in which the sets of the bank lie from the clean
    one, and ``|W d|``, the Mahalanobis length of three of the features. Each has a limit at each
    scale; ``statistic`` is the largest ratio to them. The limits are those at which streams redrawn
    from the clean rows have ``false_alarms`` alarms per 100,000 rows, counting that the clean set
    is a sample itself.

    *States.* ``filling`` until the window is full, then ``normal``; ``shifted`` from a ratio of 1
    on (``shift-began``), until it has been at most ``lower``, which nine of ten clean looks keep
    to, ``patience`` looks in a row (``back-to-normal``). A shifted stream is ``outside-bank`` when
    ``outside`` has been 1 or more ``patience`` looks in a row, and ``back-inside`` after as many
    below: the distance from the rehearsals over their reach with Rehearsal; with others how far
    mean confidence lies beyond that of all sets, over three standard errors.

    Memory and time per row do not grow. One lock makes it safe for threads; ``save`` and
    ``state_dict`` give the state between two batches.

    Args:
        method: Name of a method, or a method with the settings wanted; it is copied. It must adapt
            to sums: Rehearsal, SAC by mean confidence, ACE, STS, TS, Vanilla.
        estimator: Name of an accuracy estimator, or one: Rehearsed or SurrogateCurve; ``None`` or
            ``False`` for none.
        window: :class:`Sliding` or :class:`Exponential`; the first, of 2,000 rows, by default.
        false_alarms: ``shift-began`` to be expected per 100,000 rows of a stream like the clean
            set, from 0.001 to 100.
        patience: Looks in a row that a return, or the way out of the bank, takes.
        level: Coverage of the interval of the accuracy.
        seed: Of the streams that limits are learnt from, and of what is given by name.
        input: What the model gives, ``"logits"`` or ``"probabilities"``; by default as the method
            says.

    Attributes:
        method_: The method, fitted.
        estimator_: The estimator, fitted.
        window_: The window.
        detector_: What a shift is seen by, with its limits.
        ladder_: Every set of the bank in numbers.
        patience_: Looks that a return takes.
        level_: Coverage of the interval of the accuracy.
        digest_: Of all that was learnt; a running state belongs to it.
        running_: The running state.
        n_classes_: Number of classes.
        class_names_: Their names, if the bank has them.
    """

    name: ClassVar[str] = "monitor"
    kind: ClassVar[str] = "monitor"

    method_: Method
    estimator_: AccuracyEstimator | None
    window_: Window
    detector_: Detector
    ladder_: tuple[SetSummary, ...]
    patience_: int
    level_: float
    digest_: str
    running_: Running
    n_classes_: int
    class_names_: tuple[str, ...] | None

    def __init__(
        self,
        method: str | Method = "rehearsal",
        *,
        estimator: str | AccuracyEstimator | bool | None = "rehearsed",
        window: Window | None = None,
        false_alarms: float = 1.0,
        patience: int = 3,
        level: float = 0.95,
        seed: int = 0,
        input: str | None = None,
    ) -> None:
        self.method = method
        self.estimator = estimator
        self.window = window
        self.false_alarms = false_alarms
        self.patience = patience
        self.level = level
        self.seed = seed
        self.input = input
        self._lock = threading.RLock()
        self._live: Live | None = None

    def fit(self, bank: object, labels: object = None) -> Self:
        """Fit method and estimator, and learn the limits on the clean rows; forgets any stream.

        Args:
            bank: A :class:`SurrogateBank`, or the folder of one; or logits ``(n, k)`` of a
                calibration set, with ``labels``.
            labels: ``(n,)``, only with logits.

        Raises:
            InputError: If the input or a setting cannot be used, or the method needs rows.
        """
        seed = check_count(self.seed, name="seed", least=0)
        patience = check_count(self.patience, name="patience", most=1000)
        level = check_fraction(self.level, name="level")
        false_alarms = check_false_alarms(self.false_alarms)
        window = given_window(self.window)
        scales = scales_of(window.plan())
        method = given_method(self.method, self.input, seed=seed)
        checked = given_bank(bank, labels, input=method.input, name=self.name)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            method.fit(checked)
            estimator = given_estimator(self.estimator, method, checked, seed=seed)
        for message, category in dict.fromkeys((str(w.message), w.category) for w in caught):
            warnings.warn(message, category, stacklevel=2)
        detector = learn(checked, scales, false_alarms=false_alarms, patience=patience, seed=seed)
        with self._lock:
            self.method_, self.estimator_, self.window_ = method, estimator, window
            self.detector_, self.ladder_ = detector, checked.summaries()
            self.patience_, self.level_ = patience, level
            self.class_names_, self.n_classes_ = checked.classes, checked.n_classes
            self.digest_ = self._digest()
            self._start()
        return self

    def feed(
        self, logits: object, at: float | None = None, *, probabilities: bool = False
    ) -> Update:
        """Calibrate the next rows of the stream, and look whether it has shifted.

        A batch that is refused, or broken off, changes nothing.

        Args:
            logits: ``(n, k)``, of the kind ``input`` says, or :class:`Scores`; one row or many.
            at: Seconds of the caller's clock, for events; no clock is read.
            probabilities: Whether ``probs`` are wanted.

        Raises:
            InputError: If the rows cannot be used.
        """
        check_flag(probabilities, name="probabilities")
        clock = None if at is None else check_clock(at)
        with self._lock:
            self._require_fitted()
            return self._feed_checked(self._check(logits), clock, probabilities=probabilities)

    def _feed_checked(
        self, logits: Logits, at: float | None, *, probabilities: bool = False
    ) -> Update:
        """The same for logits that are known to be good."""
        with self._lock:
            before = self.running_.copy()
            try:
                return self._at_work().feed(logits, at, probabilities=probabilities)
            except BaseException:  # Ctrl-C in the middle, or a map that fails
                self.running_, self._live = before, None
                raise

    @property
    def rows(self) -> int:
        """Rows of the stream so far."""
        self._require_fitted()
        return self.running_.rows

    @property
    def state(self) -> State:
        """Where the stream stands."""
        self._require_fitted()
        return self.running_.state

    def reset(self) -> None:
        """Forget the stream, as if nothing had been fed yet."""
        with self._lock:
            self._require_fitted()
            self._start()

    def state_dict(self) -> dict[str, Any]:
        """The running state alone, as plain values for JSON; a few kilobytes for ten classes."""
        with self._lock:
            self._require_fitted()
            running = self.running_.copy()
        about = {"format": FORMAT, "version": VERSION, "monitor": self.digest_}
        return {**about, "running": running.to_plain()}

    def load_state_dict(self, state: object) -> None:
        """Go on from a state that :meth:`state_dict` gave, to the same numbers.

        Raises:
            InputError: If it is none, is damaged, or is that of a monitor fitted otherwise.
        """
        with self._lock:
            self._require_fitted()
            running = unpacked(state, self.digest_)
            self._check_running(running)
            self.running_ = running
            self._live = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write monitor and running state to versioned JSON; ``shiftcal.load`` reads it back."""
        with self._lock:
            self._require_fitted()
            still = copy.copy(self)
            still.running_ = self.running_.copy()
        _persistence.save(still, path)

    def after_load(self) -> None:
        """Refuse a file whose parts do not belong together."""
        super().after_load()
        if not hasattr(self, "n_classes_"):
            return
        self.running_ = self.running_.copy()  # arrays from files cannot be written
        self._check_running(self.running_)
        if self.digest_ != self._digest():
            raise InputError("its parts are not those that its digest was made of")

    def _check(self, logits: object) -> Logits:
        if self.method_.input == "logits" and plainly_logits(logits, self.n_classes_):
            return logits  # type: ignore[return-value]
        return given_logits(
            logits, input=self.method_.input, k=self.n_classes_, classes=self.class_names_
        )

    def _start(self) -> None:
        start = chooser_of(self.method_, self.ladder_).start()
        self.running_ = Running.fresh(self.window_.plan().blocks, self.n_classes_, start)
        self._live = None

    def _at_work(self) -> Live:
        if self._live is None:
            self._live = Live(self)
        return self._live

    def _check_running(self, running: Running) -> None:
        plan = self.window_.plan()
        maps = len(getattr(self.method_, "maps_", ()))
        running.check(blocks=plan.blocks, block=plan.block, k=self.n_classes_, maps=maps)
        start = chooser_of(self.method_, self.ladder_).start()
        if (running.temperature is None) != (start.temperature is None):
            raise InputError("temperature of a monitor's state must be what its method gives.")

    def _digest(self) -> str:
        names = ("method_", "estimator_", "window_", "detector_", "ladder_", "patience_", "level_")
        return digest([getattr(self, name) for name in names])

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            state = dict(super().__getstate__())
            if "running_" in state:
                state["running_"] = self.running_.copy()
        for name in ("_lock", "_live"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._lock = threading.RLock()
        self._live = None

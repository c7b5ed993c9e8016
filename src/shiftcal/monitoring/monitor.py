"""A monitor: logits in, confidences and events out."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
import threading
from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, Self, final

import numpy as np
from sklearn.base import clone

from shiftcal import estimates, methods, persistence
from shiftcal.checks import check_count, check_flag, check_fraction, check_positive
from shiftcal.errors import InputError
from shiftcal.estimates import AccuracyEstimator, Rehearsed
from shiftcal.methods import Method
from shiftcal.methods.method import given_bank, given_logits
from shiftcal.methods.rehearsal import Rehearsal
from shiftcal.monitoring.detector import Detector, learn, scales_of
from shiftcal.monitoring.stream import Chooser, Running, Sliding, State, Stream, Update, Window
from shiftcal.persistence import Arrays, Estimator
from shiftcal.surrogates import SetSummary, SurrogateBank
from shiftcal.types import Logits

FORMAT, VERSION = "shiftcal-monitor-state", 1
FEWEST_ALARMS, MOST_ALARMS = 0.001, 100.0


@final
class Monitor(Estimator):
    """Calibrates a stream as it comes, estimates its accuracy, and reports when it has shifted.

    Rows are counted in blocks. Until the first 100 rows and the end of a block, confidences are
    those of the clean set; from then on the calibration is chosen at the end of every block, from
    the sums of the blocks in the window. For a full sliding window it is what the method's
    ``adapt`` chooses for the same rows, to 1e-9; Rehearsal's interval is drawn from blocks, not
    from random groups, and so is its temperature where the window is larger than all that was
    rehearsed. Nothing depends on how the rows are cut into batches.

    *A shift.* Of every row five features of the raw softmax: p_max, its square, entropy, ``Σ p²``
    and ``-log(1 - p_max)``. With ``d`` the difference of their means, of the last 1, 2, 4, ...
    blocks and of the window (n rows), from those of the m clean rows, over ``sqrt(1/n + 1/m)``, two
    statistics: ``a'd``, along the mean direction in which the sets of the bank lie from the clean
    one, and ``|W d|``, the Mahalanobis length of three of the features. Each has a limit at each
    scale; ``statistic`` is the largest ratio to them. The limits are those at which streams redrawn
    from the clean rows have ``false_alarms`` alarms per 100,000 rows; the clean set itself counts
    as a sample.

    *States.* ``filling`` until the window is full, then ``normal``; ``shifted`` from a ratio of 1
    on (``shift-began``), until it has been at most ``lower``, which nine of ten clean looks keep
    to, ``patience`` looks in a row (``back-to-normal``). A shifted stream is ``outside-bank`` when
    ``outside`` has been 1 or more ``patience`` looks in a row, and ``back-inside`` after as many
    below: the distance from the rehearsals over their reach with Rehearsal; with others how far
    mean confidence lies beyond that of all sets, over three standard errors.

    Memory and time per row do not grow. One lock makes it safe for threads; ``save`` and
    ``state_dict`` give the state between two batches.

    Args:
        method: Name of a method, or a method with its settings; it is copied. It must adapt to
            sums: Rehearsal, SAC by mean confidence, ACE, STS, TS, Vanilla.
        estimator: Name of an accuracy estimator, or one: Rehearsed or SurrogateCurve; ``None`` or
            ``False`` for none.
        window: :class:`Sliding` or :class:`Exponential`; default: the first, of 2,000 rows.
        false_alarms: Expected ``shift-began`` per 100,000 rows of a stream like the clean set, from
            0.001 to 100.
        patience: Looks in a row that a return, or the way out of the bank, takes.
        level: Coverage of the interval of the accuracy.
        seed: Of the simulated streams, and of a method or estimator given by name.
        input: What the model gives, ``"logits"`` or ``"probabilities"``; default: the method's.

    Attributes:
        method_: The method, fitted.
        estimator_: The estimator, fitted.
        window_: The window.
        detector_: The detector of shifts, with its limits.
        ladder_: Every set of the bank in numbers.
        patience_: Looks that a return takes.
        level_: Coverage of the interval of the accuracy.
        digest_: Of everything learnt; a running state belongs to it.
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
        self._stream: Stream | None = None

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
        false_alarms = check_positive(self.false_alarms, name="false_alarms")
        if not FEWEST_ALARMS <= false_alarms <= MOST_ALARMS:
            raise InputError(
                f"false_alarms must lie between {FEWEST_ALARMS:g} and {MOST_ALARMS:g} per 100,000 "
                f"rows; got {false_alarms!r}."
            )
        window = Sliding() if self.window is None else self.window
        if not isinstance(window, Window):
            raise InputError(
                f"window must be Sliding(rows=...) or Exponential(half_life=...); got {window!r}."
            )
        scales = scales_of(window.plan())
        method = self._make_method(seed)
        checked = given_bank(bank, labels, input=method.input, name=self.name)
        method.fit(checked)
        estimator = self._fit_estimator(method, checked, seed)
        detector = learn(checked, scales, false_alarms=false_alarms, patience=patience, seed=seed)
        with self._lock:
            self.method_, self.estimator_, self.window_ = method, estimator, clone(window)
            self.detector_, self.ladder_ = detector, checked.summaries()
            self.patience_, self.level_ = patience, level
            self.class_names_, self.n_classes_ = checked.classes, checked.n_classes
            self.digest_ = self._digest()
            self.reset()
        return self

    def feed(
        self, logits: object, at: float | None = None, *, probabilities: bool = False
    ) -> Update:
        """Calibrate the next rows of the stream, and check whether it has shifted.

        A batch that is rejected or interrupted changes nothing.

        Args:
            logits: ``(n, k)``, of the kind ``input`` says, or :class:`Scores`; one row or many.
            at: Seconds of the caller's clock, for events; no clock is read.
            probabilities: Whether ``probs`` are wanted.

        Raises:
            InputError: If the rows cannot be used.
        """
        check_flag(probabilities, name="probabilities")
        if at is not None and not (isinstance(at, Real) and abs(at) < math.inf):
            raise InputError(f"at must be a finite number of seconds, or None; got {at!r}.")
        self._require_fitted()
        kind, k = self.method_.input, self.n_classes_
        z = given_logits(logits, input=kind, k=k, classes=self.class_names_)
        return self._feed_checked(z, None if at is None else float(at), probabilities=probabilities)

    def _feed_checked(
        self, logits: Logits, at: float | None, *, probabilities: bool = False
    ) -> Update:
        """The same for checked logits."""
        with self._lock:
            before = self.running_.copy()
            self._stream = self._stream or Stream(self)
            try:
                return self._stream.feed(logits, at, probabilities=probabilities)
            except BaseException:  # Ctrl-C in the middle, or a map that fails
                self.running_, self._stream = before, None
                raise

    @property
    def rows(self) -> int:
        """Rows of the stream so far."""
        self._require_fitted()
        return self.running_.rows

    @property
    def state(self) -> State:
        """The state of the stream."""
        self._require_fitted()
        return self.running_.state

    def reset(self) -> None:
        """Forget the stream, as if nothing had been fed yet."""
        with self._lock:
            self._require_fitted()
            self.running_, self._stream = self._fresh(), None

    def state_dict(self) -> dict[str, Any]:
        """The running state alone, as plain values for JSON; a few kilobytes for ten classes."""
        with self._lock:
            self._require_fitted()
            run = self.running_
            running = {**vars(run), "ring": run.ring.tolist(), "partial": run.partial.tolist()}
        return {"format": FORMAT, "version": VERSION, "monitor": self.digest_, "running": running}

    def load_state_dict(self, state: object) -> None:
        """Resume from a state that :meth:`state_dict` gave, to the same numbers.

        Raises:
            InputError: If it is none, is damaged, or is that of another monitor.
        """
        self._require_fitted()
        given: Mapping[str, Any] = state if isinstance(state, Mapping) else {}
        if (given.get("format"), given.get("version")) != (FORMAT, VERSION):
            raise InputError(
                f"a monitor's state must be what state_dict gave, of format {FORMAT!r} and version "
                f"{VERSION}; got {given.get('format')!r}, version {given.get('version')!r}."
            )
        if given.get("monitor") != self.digest_:
            raise InputError(
                "this state is that of another monitor, with another bank, method, window or "
                "limits. Resume with the monitor that it was taken from, saved with save()."
            )
        try:
            parts = given["running"]
            arrays = {name: np.array(parts[name]) for name in ("ring", "partial")}
            running = Running(**{**parts, **arrays})
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"a monitor's state is damaged: {error}.") from error
        self._check_running(running)
        with self._lock:
            self.running_, self._stream = running, None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write monitor and running state to versioned JSON; ``shiftcal.load`` reads it back."""
        self._require_fitted()
        persistence.save(copy.copy(self), path)

    def after_load(self) -> None:
        """Reject a file whose parts do not belong together."""
        super().after_load()
        if not hasattr(self, "n_classes_"):
            return
        self.running_ = self.running_.copy()  # arrays from files are read-only
        self._check_running(self.running_)
        if self.digest_ != self._digest():
            raise InputError("its digest does not match its parts")

    def _make_method(self, seed: int) -> Method:
        """An unfitted copy of the method, if it can choose from sums."""
        suitable = "Take rehearsal, sac (distance='mean'), ace, sts, ts or vanilla."
        method: Method = _unfitted(self.method, Method, methods.get, self.input or "logits", seed)
        if self.input is not None and method.input != self.input:
            raise InputError(
                f"the method was made for {method.input} and this monitor expects {self.input}. "
                "Make both with the same input=, or leave that of the monitor out."
            )
        why = method.needs_rows()
        if method.uses_features:
            why = "it needs features of the target"
        if method.uses_mixed:
            why = "it needs scores of mixed images of the target"
        if why is not None:
            raise InputError(
                f"a monitor keeps sums over rows, not the rows, and {method.name} cannot choose by "
                f"them: {why}. {suitable}"
            )
        return method

    def _fit_estimator(
        self, method: Method, bank: SurrogateBank, seed: int
    ) -> AccuracyEstimator | None:
        """A copy of the estimator, fitted on the bank; ``None`` if none is wanted."""
        if self.estimator is None or self.estimator is False:
            return None
        made: AccuracyEstimator = _unfitted(
            self.estimator, AccuracyEstimator, estimates.get, method.input, seed
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
        if (
            isinstance(made, Rehearsed)
            and isinstance(method, Rehearsal)
            and made.seed == method.seed
        ):
            return Rehearsed.of(method)  # shares what the method has learnt
        return made.fit(bank)

    def _fresh(self) -> Running:
        start = Chooser(self.method_, self.ladder_).start()
        ring = np.zeros((self.window_.plan().blocks, 2 * self.n_classes_ + 4), np.int64)
        return Running(ring, ring[0].copy(), start.temperature, start.which)

    def _check_running(self, running: Running) -> None:
        running.check(self._fresh(), maps=len(getattr(self.method_, "maps_", ())))

    def _digest(self) -> str:
        names = ("method_", "estimator_", "window_", "detector_", "ladder_", "patience_", "level_")
        arrays: Arrays = {}
        learnt = persistence.encode([getattr(self, name) for name in names], arrays)
        digest = hashlib.sha256(json.dumps(learnt, sort_keys=True).encode())
        for array in arrays.values():
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            state = dict(super().__getstate__())
            if "running_" in state:
                state["running_"] = self.running_.copy()
        return {name: value for name, value in state.items() if name not in ("_lock", "_stream")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._lock = threading.RLock()
        self._stream = None


def _unfitted(given: Any, base: type, get: Any, input: str, seed: int) -> Any:
    """A method or estimator by name, or a copy of the one that is given."""
    if isinstance(given, str):
        cls = get(given)
        seeded = {"seed": seed} if "seed" in cls().get_params() else {}
        return cls(**seeded, input=input)
    if not isinstance(given, base):
        raise InputError(f"a monitor needs the name of a {base.__name__}, or one; got {given!r}.")
    return clone(given)

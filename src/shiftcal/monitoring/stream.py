"""A stream at work: rows into blocks, blocks into the window, a look at the end of every block."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import LARGEST_LOGIT, SUM_TOLERANCE
from shiftcal.errors import InputError
from shiftcal.estimates import AccuracyEstimate
from shiftcal.maps import Map
from shiftcal.methods import Method
from shiftcal.methods.method import FEW_ROWS, Selection, nearest_first, temperature_of
from shiftcal.methods.rehearsal import FixedSize, Grouped, Rehearsal
from shiftcal.methods.sac import SAC
from shiftcal.monitoring.detector import scales_of
from shiftcal.monitoring.windows import UNIT, Plan, features, n_columns
from shiftcal.numerics.jit import to_read
from shiftcal.surrogates import SetSummary
from shiftcal.types import Logits, Probs

if TYPE_CHECKING:
    from shiftcal.monitoring.monitor import Monitor

# --------------------------------------------------------------------------------------
# What a method chooses for a window, at the cost of microseconds: a temperature or a map.
#
# The whole :class:`Selection`, with its interval and flags, takes a thousand times as long and is
# worked out only when somebody asks for it.
# --------------------------------------------------------------------------------------

# Ratios are no larger: a window without any spread would be infinitely far.
_MOST = 1e6


class Choice(NamedTuple):
    """What is used from a look on.

    Attributes:
        temperature: What logits are divided by; ``None`` if the map is no temperature.
        which: Which map of several; ``None`` if there is one.
        outside: How far the window is from all that the bank has, over its reach.
    """

    temperature: float | None
    which: int | None = None
    outside: float = 0.0


class Seen(NamedTuple):
    """A window in sums.

    Attributes:
        means: ``(2 k + 3,)`` of p_max, entropy, ``p``, ``p²`` and p_max².
        n: Rows of an unweighted sample that is as noisy.
        groups: Blocks.
        whole: Gives the sums of every block.
    """

    means: NDArray[np.float64]
    n: int
    groups: int
    whole: Callable[[], Grouped]


class Chooser(ABC):
    """The choices of one fitted method.

    Args:
        method: Fitted.
        ladder: Every set of its bank in numbers.
    """

    def __init__(self, method: Method, ladder: Sequence[SetSummary]) -> None:
        self._method = method
        self._lowest = min(ladder, key=lambda s: s.mean_confidence)
        self._highest = max(ladder, key=lambda s: s.mean_confidence)

    @abstractmethod
    def start(self) -> Choice:
        """What is used before anything was seen: what the clean set gets."""

    @abstractmethod
    def choose(self, seen: Seen) -> Choice:
        """What is used after a window."""

    def map_of(self, which: int | None) -> Map:
        """The map in use, where it is no temperature."""
        method: Any = self._method
        return method.map_ if which is None else method.maps_[which]

    def beyond(self, seen: Seen) -> float:
        """How far mean confidence lies outside that of the sets, over three standard errors."""
        mean = float(seen.means[0])
        sd = math.sqrt(max(float(seen.means[-1]) - mean**2, 0.0))
        return max(
            _excess(self._lowest.mean_confidence - mean, self._lowest, sd, seen.n),
            _excess(mean - self._highest.mean_confidence, self._highest, sd, seen.n),
        )


class Fixed(Chooser):
    """Of methods that look at no target: always the same."""

    def start(self) -> Choice:
        """What the method has."""
        return Choice(self._temperature())

    def choose(self, seen: Seen) -> Choice:
        """The same."""
        return Choice(self._temperature(), outside=self.beyond(seen))

    def _temperature(self) -> float | None:
        map_ = getattr(self._method, "map_", None)
        return 1.0 if map_ is None else temperature_of(map_)


class BySums(Chooser):
    """Of any method that adapts to sums."""

    def start(self) -> Choice:
        """What it chooses for a target as sure as the surest set."""
        k = self._method.n_classes_
        sums = np.full((1, 2 + 2 * k), self._highest.mean_confidence)
        return Choice(self._method._adapt_moments(Grouped(sums, np.ones(1), 0.0)).temperature)

    def choose(self, seen: Seen) -> Choice:
        """The temperature of the selection."""
        chosen = self._method._adapt_moments(seen.whole())
        return Choice(chosen.temperature, outside=self.beyond(seen))


class ByMean(Chooser):
    """Of SAC: the set nearest in mean confidence."""

    def __init__(self, method: SAC, ladder: Sequence[SetSummary]) -> None:
        super().__init__(method, ladder)
        # In the order in which ties are decided: the first of the nearest is taken.
        self._order = nearest_first(ladder, [0.0] * len(ladder))
        self._means = np.array([ladder[j].mean_confidence for j in self._order])
        self._temperatures = [temperature_of(map_) for map_ in method.maps_]

    def start(self) -> Choice:
        """The clean set."""
        return Choice(self._temperatures[0], 0)

    def choose(self, seen: Seen) -> Choice:
        """The map of the nearest set."""
        nearest = self._order[int(np.abs(self._means - seen.means[0]).argmin())]
        return Choice(self._temperatures[nearest], nearest, self.beyond(seen))


class ByRehearsal(Chooser):
    """Of Rehearsal: the temperature that was right for outputs like these."""

    _method: Rehearsal

    def __init__(self, method: Rehearsal, ladder: Sequence[SetSummary]) -> None:
        super().__init__(method, ladder)
        self._ready: dict[tuple[int, int], FixedSize] = {}

    def start(self) -> Choice:
        """The temperature of the clean set."""
        return Choice(self._method.temperatures_[0])

    def choose(self, seen: Seen) -> Choice:
        """The temperature, and the distance from the rehearsals over their reach."""
        memory = self._method.memory_
        size = (seen.n, seen.groups)
        if size not in self._ready:
            # As many as the sizes of a window that fills; then one.
            self._ready[size] = FixedSize(
                memory, seen.n, groups=seen.groups, seed=self._method.seed_
            )
        answer = self._ready[size].answer(seen.means[:-1], seen.whole)
        decision = self._method.decide(answer, float(seen.means[0]))
        outside = 0.0 if decision.clean else min(float(answer.distance) / memory.reach, _MOST)
        return Choice(math.exp(decision.log_t), outside=outside)


def chooser_of(method: Method, ladder: Sequence[SetSummary]) -> Chooser:
    """The fastest chooser there is for a fitted method."""
    if isinstance(method, Rehearsal):
        return ByRehearsal(method, ladder)
    if isinstance(method, SAC):
        return ByMean(method, ladder)
    return BySums(method, ladder) if method.uses_target else Fixed(method, ladder)


def _excess(excess: float, end: SetSummary, sd: float, n: int) -> float:
    if excess <= 0:
        return 0.0
    noise = math.hypot(max(sd, end.sd_confidence) / math.sqrt(n), end.standard_error)
    return min(excess / (3 * noise), _MOST) if noise > 0 else _MOST


# --------------------------------------------------------------------------------------
# The blocks of a window, as methods and estimators take them.
# --------------------------------------------------------------------------------------


class Weights:
    """What blocks count in a window that has so many of them.

    They are scaled so that all blocks together weigh as much as an unweighted sample that is as
    noisy: ``n = (Σ w)² / Σ w²`` times the rows of a block.

    Args:
        plan: The window.
        filled: Blocks that are there.
    """

    def __init__(self, plan: Plan, filled: int) -> None:
        w = plan.weights[:filled]
        scaled = w * (w.sum() / (w**2).sum()) if filled else w
        self._ages = np.arange(1, filled + 1)
        self._counts = plan.block * scaled
        self._units = UNIT * scaled[:, None]

    def grouped(self, ring: NDArray[np.int64], head: int) -> Grouped:
        """The blocks as groups of rows, the newest first.

        Args:
            ring: ``(b, 2 k + 4)``.
            head: Place of the next block.
        """
        sums = ring[(head - self._ages) % len(ring)] * self._units
        return Grouped(sums[:, :-2], self._counts, float(sums[:, -2].sum()))


class Snapshot:
    """The window at a look; the choice and the estimate are computed on demand.

    Args:
        monitor: Fitted; its sums are copied.
        weights: What the blocks count.
    """

    def __init__(self, monitor: Monitor, weights: Weights) -> None:
        running = monitor.running_
        self._ring, self._head, self._weights = running.ring.copy(), running.head, weights
        self._method, self._estimator = monitor.method_, monitor.estimator_
        self._level = monitor.level_

    @cached_property
    def grouped(self) -> Grouped:
        """The blocks as groups of rows, the newest first."""
        return self._weights.grouped(self._ring, self._head)

    @cached_property
    def selection(self) -> Selection:
        """What the method chooses for the window."""
        return copy.copy(self._method).adapt_moments(self.grouped)

    @cached_property
    def estimate(self) -> AccuracyEstimate | None:
        """The accuracy on the window."""
        if self._estimator is None:
            return None
        return self._estimator.estimate_moments(self.grouped, level=self._level)


# --------------------------------------------------------------------------------------
# What a monitor says of a batch: confidences, where the stream stands, and events.
# --------------------------------------------------------------------------------------

State: TypeAlias = Literal["filling", "normal", "shifted", "outside-bank"]
Kind: TypeAlias = Literal["shift-began", "outside-bank", "back-inside", "back-to-normal"]
STATES: tuple[State, ...] = ("filling", "normal", "shifted", "outside-bank")
KINDS: tuple[Kind, ...] = ("shift-began", "outside-bank", "back-inside", "back-to-normal")


@dataclass(frozen=True)
class Event:
    """A change of state.

    Attributes:
        kind: ``"shift-began"``, ``"outside-bank"``, ``"back-inside"`` or ``"back-to-normal"``.
        row: Rows of the stream that had come when it was seen: always the end of a block.
        at: What the caller's clock said for the batch, in seconds; ``None`` if it said nothing.
        state: The state from then on.
        statistic: What was compared, see :class:`Monitor`.
        threshold: What it was compared with.
        message: The same in a sentence.
    """

    kind: Kind
    row: int
    at: float | None
    state: State
    statistic: float
    threshold: float
    message: str

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"row {self.row:,}: {self.kind}: {self.message}"


@dataclass(frozen=True, eq=False)
class Update:
    """What a monitor made of one batch.

    Attributes:
        confidence: ``(n,)`` calibrated probability of the predicted class.
        predicted: ``(n,)`` the predicted class.
        probs: ``(n, k)`` calibrated probabilities, if they were asked for.
        rows: Rows of the stream so far, with these.
        state: Where the stream stands after them.
        statistic: How far the last rows are from the clean set, as a share of what raises
            ``shift-began``; 0 before the first look.
        outside: How far they are from all that the bank has, as a share of its reach; from 1 on it
            is outside.
        temperature: What the next row will be divided by; ``None`` if the map is none.
        events: What happened, in order.
    """

    confidence: NDArray[np.float64]
    predicted: NDArray[np.intp]
    probs: Probs | None
    rows: int
    state: State
    statistic: float
    outside: float
    temperature: float | None
    events: tuple[Event, ...]
    _snapshot: Snapshot | None = field(repr=False)

    @property
    def selection(self) -> Selection | None:
        """What the method chose at the last look, with flags; ``None`` before the first.

        Worked out when it is first asked for.
        """
        return None if self._snapshot is None else self._snapshot.selection

    @property
    def estimate(self) -> AccuracyEstimate | None:
        """The accuracy on the window of the last look; ``None`` before it, or without estimator.

        Worked out when it is first asked for.
        """
        return None if self._snapshot is None else self._snapshot.estimate


# --------------------------------------------------------------------------------------
# The running state: all that has to be kept for a stream to go on as if nothing had happened.
# --------------------------------------------------------------------------------------

FORMAT = "shiftcal-monitor-state"
VERSION = 1
# No sum of a block is larger.
_LARGEST = 1 << 62


@dataclass
class Running:
    """Sums, counts and the state.

    Attributes:
        ring: ``(b, 2 k + 4)`` sums of the last blocks.
        partial: ``(2 k + 4,)`` of the block that is not full yet.
        rows: Rows that came, in all.
        head: Where in the ring the next block goes.
        filled: Blocks in the ring.
        pending: Rows in the block that is not full yet.
        state: The state.
        calm: See :class:`~shiftcal.monitoring.stream.Phase`.
        crossed: See there.
        statistic: Of the last look.
        temperature: In use; ``None`` if the map is no temperature.
        which: Number of the map in use, if there are several.
        outside: Of the last look.
    """

    ring: NDArray[np.int64]
    partial: NDArray[np.int64]
    rows: int
    head: int
    filled: int
    pending: int
    state: State
    calm: int
    crossed: int
    statistic: float
    temperature: float | None
    which: int | None
    outside: float

    @classmethod
    def fresh(cls, blocks: int, k: int, start: Choice) -> Self:
        """Before the first row."""
        columns = n_columns(k)
        return cls(
            ring=np.zeros((blocks, columns), np.int64),
            partial=np.zeros(columns, np.int64),
            rows=0,
            head=0,
            filled=0,
            pending=0,
            state="filling",
            calm=0,
            crossed=0,
            statistic=0.0,
            temperature=start.temperature,
            which=start.which,
            outside=0.0,
        )

    def copy(self) -> Self:
        """One that the stream does not change."""
        other = copy.copy(self)
        other.ring, other.partial = self.ring.copy(), self.partial.copy()
        return other

    def to_plain(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**values, "ring": self.ring.tolist(), "partial": self.partial.tolist()}

    def check(self, *, blocks: int, block: int, k: int, maps: int) -> None:
        """Refuse what no stream leads to.

        Args:
            blocks: Blocks of the window.
            block: Rows of each.
            k: Number of classes.
            maps: How many maps there are to choose from; 0 if there is no choice among maps.

        Raises:
            InputError: That names the part.
        """
        for name, shape in (("ring", (blocks, n_columns(k))), ("partial", (n_columns(k),))):
            array = getattr(self, name)
            if array.shape != shape or array.dtype != np.int64:
                raise _wrong(name, f"whole numbers of shape {shape}", array.shape)
            if array.min() < 0 or array.max() > _LARGEST:
                raise _wrong(name, "sums of a block, not negative", int(array.min()))
        most = {"head": blocks - 1, "filled": blocks, "pending": block - 1}
        for name in ("rows", "head", "filled", "pending", "calm", "crossed"):
            value = getattr(self, name)
            if type(value) is not int or not 0 <= value <= most.get(name, 1 << 62):
                raise _wrong(name, f"a whole number of 0 to {most.get(name, 'any')}", value)
        t, which, seen = self.temperature, self.which, self.rows // block
        is_map = which is None if not maps else type(which) is int and 0 <= which < maps
        for name, rule, good in (
            ("rows", f"those of {self.filled} blocks and {self.pending}",
             self.rows % block == self.pending and self.filled == min(seen, blocks)),
            ("head", f"that of {self.rows} rows", self.head == seen % blocks),
            ("state", f"one of {', '.join(STATES)}", self.state in STATES),
            ("statistic", "a number of at least 0", _is_number(self.statistic)),
            ("outside", "a number of at least 0", _is_number(self.outside)),
            ("temperature", "a number above 0", t is None or (_is_number(t) and t > 0)),
            ("which", f"one of {maps} maps" if maps else "None", is_map),
        ):  # fmt: skip
            if not good:
                raise _wrong(name, rule, getattr(self, name))


def _is_number(value: object) -> bool:
    return type(value) is float and 0 <= value < math.inf


def from_plain(values: object) -> Running:
    """A running state from plain values; :meth:`Running.check` has the rest to say.

    Raises:
        InputError: If parts are missing, or sums are not whole numbers.
    """
    names = [f.name for f in fields(Running)]
    if not isinstance(values, Mapping) or set(values) != set(names):
        raise InputError(
            f"a monitor's state must have the parts that state_dict gives: {', '.join(names)}; "
            f"got {', '.join(map(str, values)) if isinstance(values, Mapping) else values!r}."
        )
    arrays = {}
    for name in ("ring", "partial"):
        try:
            arrays[name] = np.array(values[name])
        except ValueError:
            raise _wrong(name, "rows of one length", "others") from None
    return Running(**{**values, **arrays})


def _wrong(name: str, rule: str, got: object) -> InputError:
    return InputError(
        f"{name} of a monitor's state must be {rule}; got {got}. "
        "The state is damaged, or that of another monitor."
    )


# --------------------------------------------------------------------------------------
# The rule that changes states, with hysteresis.
# --------------------------------------------------------------------------------------


class Phase(NamedTuple):
    """Where a stream stands.

    Attributes:
        state: The state.
        calm: Looks in a row at which a shifted stream kept to the lower limit.
        crossed: Looks in a row at which it was on the other side of the bank's reach.
    """

    state: State
    calm: int = 0
    crossed: int = 0


def next_phase(
    phase: Phase, ratio: float, outside: float, *, full: bool, lower: float, patience: int
) -> tuple[Phase, Kind | None]:
    """The phase after a look, and what happened, if anything did.

    Args:
        phase: Before it.
        ratio: Distance from the clean set over what raises an alarm.
        outside: Distance from the bank over its reach.
        full: Whether the window is full.
        lower: Ratio that a return to normal has to keep to.
        patience: Looks in a row that a return, or the way out of the bank, takes.
    """
    quiet: State = "normal" if full else "filling"
    if phase.state in ("filling", "normal"):
        return (Phase("shifted"), "shift-began") if ratio >= 1 else (Phase(quiet), None)
    calm = phase.calm + 1 if ratio <= lower else 0
    if calm >= patience:
        return Phase(quiet), "back-to-normal"
    inside = phase.state == "shifted"
    crossed = phase.crossed + 1 if (outside >= 1) == inside else 0
    if crossed < patience:
        return Phase(phase.state, calm, crossed), None
    return (
        (Phase("outside-bank", calm), "outside-bank")
        if inside
        else (Phase("shifted", calm), "back-inside")
    )


# --------------------------------------------------------------------------------------
# Events in words.
# --------------------------------------------------------------------------------------


def event(kind: Kind, running: Running, lower: float, at: float | None) -> Event:
    """An event with its numbers.

    Args:
        kind: What happened.
        running: The state after it.
        lower: Ratio that a return to normal has to keep to.
        at: The caller's clock.
    """
    about_clean = kind in ("shift-began", "back-to-normal")
    statistic = running.statistic if about_clean else running.outside
    threshold = lower if kind == "back-to-normal" else 1.0
    message = _MESSAGES[kind].format(statistic=statistic, threshold=threshold)
    return Event(kind, running.rows, at, running.state, statistic, threshold, message)


_MESSAGES: dict[Kind, str] = {
    "shift-began": (
        "the outputs of the last rows are {statistic:.2f} times as far from those of the clean set "
        "as chance takes them within the false alarms allowed."
    ),
    "outside-bank": (
        "the outputs of the window are {statistic:.2f} times the reach of the bank away: the shift "
        "is outside what was calibrated, and the confidences are a guess."
    ),
    "back-inside": (
        "the outputs of the window are {statistic:.2f} times the reach of the bank away: still "
        "shifted, and within what was calibrated."
    ),
    "back-to-normal": (
        "the outputs of the last rows have stayed near those of the clean set: {statistic:.2f} of "
        "the distance that raises an alarm, and {threshold:.2f} is near."
    ),
}


# --------------------------------------------------------------------------------------
# A stream at work: rows into blocks, blocks into the window, a look at the end of every block.
# --------------------------------------------------------------------------------------


class Live:
    """What moves the running state of a monitor on, in place. Not thread-safe.

    Args:
        monitor: Fitted; it has the lock.
    """

    def __init__(self, monitor: Monitor) -> None:
        self._monitor, self.running = monitor, monitor.running_
        self._chooser = chooser_of(monitor.method_, monitor.ladder_)
        self._plan = plan = monitor.window_.plan()
        detector, running = monitor.detector_, monitor.running_
        scales = scales_of(plan)
        spread = np.sqrt(1 / scales.rows + 1 / detector.n_clean)[:, None]
        arrays = (
            scales.weights / scales.totals[:, None] / spread,
            scales.needed,
            detector.reference / spread,
            detector.directions,
            detector.limits.squares,
        )
        self._scales = tuple(to_read(array) for array in arrays)
        # The fewest blocks that a choice is made by.
        self._least = min(-(-FEW_ROWS // plan.block), plan.blocks)
        self._means = np.empty(running.partial.shape[0] - 1)
        self._features = features(running.ring)
        self._weigh()
        self._applied = self._map_in_use()
        self._snapshot = self._look_back()

    def feed(self, logits: Logits, at: float | None, *, probabilities: bool) -> Update:
        """Take checked rows, the sums of which become part of the window."""
        run, block = self.running, self._plan.block
        z = to_read(logits)
        n, k = z.shape
        confidence = np.empty(n)
        predicted = np.empty(n, np.intp)
        probs = np.empty((n, k) if probabilities else (0, 0))
        events: list[Event] = []
        start = 0
        looked = False
        while start < n:
            stop = min(n, start + block - run.pending)
            piece = slice(start, stop)
            self._rows(z[piece], confidence[piece], predicted[piece], probs[piece])
            run.pending += stop - start
            run.rows += stop - start
            start = stop
            if run.pending == block:
                looked = True
                events += self._end_block(at)
        if looked:
            self._snapshot = self._look_back()
        return Update(
            confidence,
            predicted,
            probs if probabilities else None,
            rows=run.rows,
            state=run.state,
            statistic=run.statistic,
            outside=run.outside,
            temperature=run.temperature,
            events=tuple(events),
            _snapshot=self._snapshot,
        )

    def _rows(
        self,
        z: Logits,
        confidence: NDArray[np.float64],
        predicted: NDArray[np.intp],
        probs: Probs,
    ) -> None:
        """Rows of one block, with the calibration that is in use."""
        from shiftcal.monitoring.stream_kernels import pass_rows

        if self._applied is None:
            t = self.running.temperature
            pass_rows(z, t, self.running.partial, confidence, predicted, probs)
            return
        none = np.empty((0, 0))
        pass_rows(z, 1.0, self.running.partial, confidence, predicted, none)
        calibrated = self._applied.apply_checked(z)
        predicted[:] = calibrated.argmax(axis=1)
        confidence[:] = calibrated.max(axis=1)
        if len(probs):
            probs[:] = calibrated

    def _end_block(self, at: float | None) -> list[Event]:
        from shiftcal.monitoring.stream_kernels import end_block

        run = self.running
        if run.filled < len(run.ring):
            run.filled += 1
            self._weigh()
        end_block(run.ring, self._features, run.partial, run.head, self._window, self._means)
        run.pending = 0
        run.head = (run.head + 1) % len(run.ring)
        if run.filled < self._least:
            return []
        self._choose()
        return self._look(at)

    def _weigh(self) -> None:
        """Weights of the blocks that are there, and how many rows are as noisy."""
        weights = self._plan.weights[: self.running.filled]
        total, squares = float(weights.sum()), float((weights**2).sum())
        block = self._plan.block
        self._window = weights * (UNIT / (block * total)) if total else weights
        self._n = round(block * total**2 / squares) if total else 0
        self._weights = Weights(self._plan, self.running.filled)

    def _choose(self) -> None:
        run = self.running
        # The groups are gone when the next block is: no copy of the ring is needed.
        whole = partial(self._weights.grouped, run.ring, run.head)
        seen = Seen(self._means, self._n, run.filled, whole)
        choice = self._chooser.choose(seen)
        changed = choice.which != run.which
        run.temperature, run.which, run.outside = choice
        if changed:
            self._applied = self._map_in_use()

    def _look(self, at: float | None) -> list[Event]:
        from shiftcal.monitoring.stream_kernels import largest_ratio

        run, limits = self.running, self._monitor.detector_.limits
        newest = (run.head - 1) % len(run.ring)
        run.statistic = largest_ratio(self._features, newest, run.filled, self._scales)
        before = Phase(run.state, run.calm, run.crossed)
        after, kind = next_phase(
            before,
            run.statistic,
            run.outside,
            full=run.filled == len(run.ring),
            lower=limits.lower,
            patience=self._monitor.patience_,
        )
        run.state, run.calm, run.crossed = after
        return [] if kind is None else [event(kind, run, limits.lower, at)]

    def _look_back(self) -> Snapshot | None:
        if self.running.filled < self._least:
            return None
        return Snapshot(self._monitor, self._weights)

    def _map_in_use(self) -> Map | None:
        """What is applied; ``None`` where that is a division by the temperature."""
        if self.running.temperature is not None:
            return None
        return self._chooser.map_of(self.running.which)


# --------------------------------------------------------------------------------------
# A quick look at a batch: what is plainly good need not be checked part by part.
# --------------------------------------------------------------------------------------

_PLAIN = (np.dtype(np.float32), np.dtype(np.float64))


def plainly_logits(logits: object, k: int) -> bool:
    """Whether this is an array of finite logits ``(n, k)`` that are no probabilities.

    Everything else is asked of :mod:`shiftcal.checks`, which says what is wrong, if anything is.
    """
    from shiftcal.monitoring.stream_kernels import is_plain

    if type(logits) is not np.ndarray or logits.dtype not in _PLAIN or logits.ndim != 2:
        return False
    if logits.shape[1] != k or not len(logits) or not logits.flags.c_contiguous:
        return False
    return bool(is_plain(to_read(logits), LARGEST_LOGIT, SUM_TOLERANCE))

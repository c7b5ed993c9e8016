"""A monitor: its windows, states and events; logits in, confidences and events out."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias, final, get_args

import numpy as np
from numpy.typing import NDArray

from shiftcal import estimates, methods, persistence
from shiftcal.checks import (
    check_count,
    check_flag,
    check_fraction,
    check_labels,
    check_positive,
)
from shiftcal.errors import InputError
from shiftcal.estimates import AccuracyEstimate, AccuracyEstimator, Rehearsed
from shiftcal.maps import Map
from shiftcal.methods import Method
from shiftcal.methods.method import (
    FEW_ROWS,
    Selection,
    given_bank,
    given_logits,
    nearest_first,
    temperature_of,
)
from shiftcal.methods.rehearsal import (
    EDGE,
    NEAR,
    ODDS,
    Answer,
    Grouped,
    Memory,
    Quadratic,
    Rehearsal,
    random_parts,
)
from shiftcal.methods.sac import SAC
from shiftcal.monitoring.detector import Detector, learn, scales_of
from shiftcal.monitoring.labels import Ledger, Realised
from shiftcal.numerics.blocks import kernel_for, kernels
from shiftcal.persistence import Arrays, Estimator, clone
from shiftcal.surrogates import SetSummary, SurrogateBank
from shiftcal.types import Logits, Probs

FORMAT, VERSION = "shiftcal-monitor-state", 1
FEWEST_ALARMS, MOST_ALARMS = 0.001, 100.0
State: TypeAlias = Literal["filling", "normal", "shifted", "outside-bank"]
Kind: TypeAlias = Literal[
    "shift-began",
    "outside-bank",
    "back-inside",
    "back-to-normal",
    "labels-disagree",
    "labels-agree",
]
STATES: tuple[State, ...] = get_args(State)
KINDS: tuple[Kind, ...] = get_args(Kind)
# Sums over the rows of a block are whole numbers of this unit, so no batching changes a bit. Their
# 2 k + 4 columns, of the raw softmax: p_max; entropy; p of every class; p² of every class; p_max²;
# -log(1 - p_max).
UNIT = 2.0**-40
# Such sums of this many rows fit into 64 bits.
_MOST_BLOCK_ROWS = 100_000
_MOST_BLOCKS = 1000
_LARGEST = 1 << 62
# Exponential windows keep this many half-lives; older blocks count less than a thirtieth.
_HALF_LIVES = 5
_MOST_WAITING = 100_000_000
# Ratios are no larger: a window without any spread would be infinitely far.
_MOST = 1e6


class WindowPlan(NamedTuple):
    """A window in numbers.

    Attributes:
        block: Rows of a block, the step in which the window moves.
        weights: ``(b,)`` weights of the rows of a block, by age, the newest block first.
    """

    block: int
    weights: NDArray[np.float64]

    @property
    def blocks(self) -> int:
        """Blocks that are kept."""
        return len(self.weights)

    @property
    def rows(self) -> int:
        """Rows in those blocks."""
        return self.block * self.blocks


class Window(Estimator, ABC):
    """How many of the last rows count, and how much; ``plan`` checks the settings."""

    kind: ClassVar[str] = "window"

    @abstractmethod
    def plan(self) -> WindowPlan:
        """The window in numbers.

        Raises:
            InputError: If the settings cannot be used.
        """


def _block_rows(value: object, blocks: object, *, name: str, most_blocks: int) -> tuple[int, int]:
    """Rows of a block and the number of blocks, where ``value`` rows are cut into ``blocks``."""
    parts = check_count(blocks, name="blocks", most=most_blocks)
    rows = check_count(value, name=name, least=parts, most=_MOST_BLOCK_ROWS * parts)
    if rows % parts:
        below = rows - rows % parts
        raise InputError(
            f"{name} must be a multiple of blocks; got {rows} rows and {parts} blocks. Take "
            f"{below} or {below + parts} rows."
        )
    return rows // parts, parts


@final
class Exponential(Window):
    """All rows of the last five half-lives; a block of age ``a`` rows has weight ``2^(-a/h)``.

    It is as noisy as a sliding window of about ``2.8 h`` rows, ``(Σ w)² / Σ w²``.

    Args:
        half_life: ``h``, rows after which a row counts half, a multiple of ``blocks``.
        blocks: Blocks per half-life; a choice is made at the end of every one.
    """

    name: ClassVar[str] = "exponential"

    def __init__(self, *, half_life: int = 700, blocks: int = 4) -> None:
        self.half_life = half_life
        self.blocks = blocks

    def plan(self) -> WindowPlan:
        """Powers of a half, one for each block."""
        most = _MOST_BLOCKS // _HALF_LIVES
        block, parts = _block_rows(self.half_life, self.blocks, name="half_life", most_blocks=most)
        return WindowPlan(block, 0.5 ** (np.arange(_HALF_LIVES * parts) / parts))


@final
class Sliding(Window):
    """The last ``rows`` rows, with equal weights; it advances by ``rows / blocks``.

    Args:
        rows: Rows of the window, a multiple of ``blocks``.
        blocks: Blocks of the window. With more, shifts are detected sooner at a higher cost: a
            choice is made at the end of each.
    """

    name: ClassVar[str] = "sliding"

    def __init__(self, *, rows: int = 2000, blocks: int = 10) -> None:
        self.rows = rows
        self.blocks = blocks

    def plan(self) -> WindowPlan:
        """Ones, for all blocks."""
        block, blocks = _block_rows(self.rows, self.blocks, name="rows", most_blocks=_MOST_BLOCKS)
        return WindowPlan(block, np.ones(blocks))


@dataclass(frozen=True)
class Event:
    """A change of state.

    Attributes:
        kind: ``"shift-began"``, ``"outside-bank"``, ``"back-inside"`` or ``"back-to-normal"``; of
            late labels ``"labels-disagree"`` or ``"labels-agree"``, which leave the state.
        row: Rows of the stream when it was seen; but for labels, the end of a block.
        at: The caller's clock for the batch, in seconds; ``None`` if it gave none.
        state: The state from then on.
        statistic: The value that was compared, see :class:`Monitor`.
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
    """The result of one batch.

    Attributes:
        confidence: ``(n,)`` calibrated probability of the predicted class.
        predicted: ``(n,)`` the predicted class.
        probs: ``(n, k)`` calibrated probabilities, if requested.
        rows: Rows of the stream so far, with these.
        state: State of the stream after them.
        statistic: Distance of the last rows from the clean set, as a share of what raises
            ``shift-began``; 0 before the first look.
        outside: Distance from everything in the bank, as a share of its reach; 1 or more is
            outside.
        temperature: Temperature of the next row; ``None`` if the map is none.
        events: Changes of state, in order.
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
    _looked: tuple[Grouped, Method, AccuracyEstimator | None, float] | None = field(repr=False)

    @cached_property
    def selection(self) -> Selection | None:
        """The method's choice at the last look, with flags; ``None`` before the first.

        Computed when first asked for.
        """
        if self._looked is None or self._looked[1].corrects:
            return self._looked and self._looked[1].selection_
        return copy.copy(self._looked[1]).adapt_moments(self._looked[0])

    @cached_property
    def estimate(self) -> AccuracyEstimate | None:
        """The accuracy on the window of the last look; ``None`` before it, or without estimator.

        Computed when first asked for.
        """
        if self._looked is None:
            return None
        window, _, estimator, level = self._looked
        return None if estimator is None else estimator.estimate_moments(window, level=level)


@dataclass
class Running:
    """Everything that must be kept to resume a stream.

    Attributes:
        ring: ``(b, 2 k + 4)`` sums of the last blocks.
        partial: ``(2 k + 4,)`` of the block that is not full yet.
        rows: Rows so far.
        state: The state.
        calm: Looks in a row at which a shifted stream kept to the lower limit.
        crossed: Looks in a row at which it was on the other side of the bank's reach.
        statistic: Of the last look: distance from the clean set over what raises an alarm.
        temperature: In use; ``None`` if the map is no temperature.
        which: Number of the map in use, if there are several.
        outside: Of the last look: distance from the bank over its reach.
        ledger: Predictions that wait for labels, and what labels said; files of before have none.
    """

    ring: NDArray[np.int64]
    partial: NDArray[np.int64]
    temperature: float | None
    which: int | None = None
    rows: int = 0
    state: State = "filling"
    calm: int = 0
    crossed: int = 0
    statistic: float = 0.0
    outside: float = 0.0
    ledger: Ledger | None = None

    def copy(self) -> Self:
        """One that the stream does not change; but the ledger, which changes after a batch only."""
        return replace(self, ring=self.ring.copy(), partial=self.partial.copy())

    def check(self, fresh: Running, *, maps: int) -> None:
        """Raise for values that no stream leads to.

        Args:
            fresh: The state before the first row, which has the right types and shapes.
            maps: How many maps there are to choose from.

        Raises:
            InputError: That names the part.
        """
        for name, start in vars(fresh).items():
            value = getattr(self, name)
            if isinstance(value, Ledger) and name == "ledger":
                continue
            good = type(value) is type(start) and np.shape(value) == np.shape(start)
            if good and name == "state":
                good = value in STATES
            elif good and value is not None:
                least, most = {"temperature": (1e-300, math.inf), "which": (0, maps - 1)}.get(
                    name, (0, _LARGEST)
                )
                good = np.asarray(value).dtype == np.asarray(start).dtype
                good = good and bool(least <= np.min(value) <= np.max(value) <= most)
            if not good:
                raise InputError(
                    f"a monitor's state is damaged, or that of another monitor: its {name} cannot "
                    f"be {' '.join(repr(value).split()):.60}."
                )

    def move_on(self, *, full: bool, lower: float, patience: int) -> Kind | None:
        """Change the state after a look; returns the event if there is one.

        Args:
            full: Whether the window is full.
            lower: Ratio that a return to normal has to keep to.
            patience: Consecutive checks before a return, or ``outside-bank``, is reported.
        """
        quiet: State = "normal" if full else "filling"
        if self.state in ("filling", "normal"):
            began = self.statistic >= 1
            self.state = "shifted" if began else quiet
            return "shift-began" if began else None
        inside = self.state == "shifted"
        self.calm = self.calm + 1 if self.statistic <= lower else 0
        self.crossed = self.crossed + 1 if (self.outside >= 1) == inside else 0
        if self.calm >= patience:
            self.state, self.calm, self.crossed = quiet, 0, 0
            return "back-to-normal"
        if self.crossed < patience:
            return None
        self.state, self.crossed = "outside-bank" if inside else "shifted", 0
        return "outside-bank" if inside else "back-inside"


_MESSAGES: dict[Kind, str] = {
    "shift-began": "the outputs of the last rows differ from the clean set's by {0:.2f} times the "
    "alarm limit.",
    "outside-bank": "the outputs of the window are {0:.2f} times the reach of the bank away: the "
    "shift is outside what was calibrated, and the confidences are a guess.",
    "back-inside": "the outputs of the window are {0:.2f} times the reach of the bank away: still "
    "shifted, and within what was calibrated.",
    "back-to-normal": "the outputs of the last rows have stayed near those of the clean set: "
    "{0:.2f} of the distance that raises an alarm, and {1:.2f} is near.",
    "labels-disagree": "late labels give an accuracy of {0:.4f}, beyond the {1:.4f} at which the "
    "interval estimated for the same rows ends: do not rely on the estimate.",
    "labels-agree": "late labels give an accuracy of {0:.4f}, and the interval estimated for the "
    "same rows ends at {1:.4f}: they agree again.",
}


class WindowChoice(NamedTuple):
    """What is used from a look on.

    Attributes:
        temperature: What logits are divided by; ``None`` if the map is no temperature.
        which: Which map of several; ``None`` if there is one.
        outside: Distance of the window from everything in the bank, over its reach.
    """

    temperature: float | None
    which: int | None = None
    outside: float = 0.0


class Chooser:
    """The choices of a fitted method for windows, without the intervals and flags of a Selection.

    Args:
        method: Fitted.
        ladder: Every set of its bank in numbers.
    """

    def __init__(self, method: Method, ladder: Sequence[SetSummary]) -> None:
        self._method: Any = method
        self._lowest = min(ladder, key=lambda s: s.mean_confidence)
        self._highest = max(ladder, key=lambda s: s.mean_confidence)
        self._ready: dict[tuple[int, int], FixedSize] = {}
        # In the order in which ties are decided: the first of the nearest is taken.
        self._order = nearest_first(ladder, [0.0] * len(ladder))
        self._means = np.array([ladder[j].mean_confidence for j in self._order])

    def start(self) -> WindowChoice:
        """What is used before the first look: the choice for the clean set."""
        method = self._method
        if method.corrects:
            return WindowChoice(None)
        if isinstance(method, Rehearsal):
            return WindowChoice(method.temperatures_[0])
        if isinstance(method, SAC):
            return WindowChoice(temperature_of(method.maps_[0]), 0)
        if method.uses_target:  # a target as confident as the most confident set
            sums = np.full((1, 2 + 2 * method.n_classes_), self._highest.mean_confidence)
            return WindowChoice(method._adapt_moments(Grouped(sums, np.ones(1), 0.0)).temperature)
        return WindowChoice(temperature_of(method.map_) if hasattr(method, "map_") else 1.0)

    def choose(
        self, means: NDArray[np.float64], n: int, groups: int, whole: Callable[[], Grouped]
    ) -> WindowChoice:
        """The choice for a window.

        Args:
            means: ``(2 k + 3,)`` of p_max, entropy, ``p``, ``p²`` and p_max².
            n: Rows of an unweighted sample that is as noisy.
            groups: Blocks.
            whole: Gives the sums of every block.
        """
        method = self._method
        if isinstance(method, Rehearsal):
            return self._rehearsed(means, n, groups, whole)
        outside = self._beyond(float(means[0]), float(means[-1]), n)
        if method.corrects or not method.uses_target:
            return self.start()._replace(outside=outside)
        if isinstance(method, SAC):
            which = self._order[int(np.abs(self._means - means[0]).argmin())]
            return WindowChoice(temperature_of(method.maps_[which]), which, outside)
        return WindowChoice(method._adapt_moments(whole()).temperature, outside=outside)

    def map_of(self, which: int | None) -> Map:
        """The map in use, where it is no temperature."""
        fitted: Map = self._method.map_ if which is None else self._method.maps_[which]
        return fitted

    def _rehearsed(
        self, means: NDArray[np.float64], n: int, groups: int, whole: Callable[[], Grouped]
    ) -> WindowChoice:
        method = self._method
        if (n, groups) not in self._ready:
            self._ready[n, groups] = FixedSize(method.memory_, n, groups=groups, seed=method.seed_)
        answer = self._ready[n, groups].answer(means[:-1], whole)
        decision = method.decide(answer, float(means[0]))
        distance = float(answer.distance) / method.memory_.reach
        return WindowChoice(
            math.exp(decision.log_t), outside=0.0 if decision.clean else min(distance, _MOST)
        )

    def _beyond(self, mean: float, square: float, n: int) -> float:
        """How far mean confidence lies outside that of the sets, over three standard errors."""
        sd = math.sqrt(max(square - mean**2, 0.0))
        low, high = self._lowest, self._highest
        largest = 0.0
        for end, excess in ((low, low.mean_confidence - mean), (high, mean - high.mean_confidence)):
            if excess > 0:
                noise = math.hypot(max(sd, end.sd_confidence) / math.sqrt(n), end.standard_error)
                largest = max(largest, min(excess / (3 * noise), _MOST) if noise > 0 else _MOST)
        return largest


class FixedSize:
    """Answers for targets of ``n`` rows as :meth:`Memory.answer` gives them, to rounding.

    It takes microseconds, since all that depends on the size is looked up before.

    Args:
        memory: What was learnt.
        n: Rows of the targets.
        groups: Groups that they come in, all of one size.
        seed: Of the parts that are asked of a target larger than all that was rehearsed.
    """

    def __init__(self, memory: Memory, n: int, *, groups: int, seed: int) -> None:
        taken = max(1, round(groups * memory.responses[-1].size / n))
        self._parts: NDArray[np.float64] | None = None
        if taken < groups:
            drawn = random_parts(groups, taken, np.random.default_rng(seed))
            self._parts = drawn.astype(np.float64)  # which makes a product of matrices fast
        self._counts: NDArray[np.float64] | NDArray[np.int64] | None = None
        self._shares = np.empty((0, groups))
        coarse, fine, share = memory.between(n)
        both = (coarse, fine)
        self._quadratics = np.array(
            [[_packed(q) for q in (r.same, r.moved, r.judge)] for r in both]
        )
        self._clouds = np.array(
            [
                [np.concatenate([c.centre, c.whiten.ravel()]) for c in (r.everywhere, r.clean)]
                for r in both
            ]
        )
        shares = (share, 1 - share)
        self._limits = np.array(
            [(r.low, r.high, ODDS, w) for r, w in zip(both, shares, strict=True)]
        )

    def answer(
        self, means: NDArray[np.float64], whole: Callable[[], Grouped] | None = None
    ) -> Answer:
        """What a target's outputs say.

        Args:
            means: ``(2 + 2 k,)`` of the moments of its rows.
            whole: Gives the groups, where parts of them may have to be asked.
        """
        asked = means[None]
        if self._parts is not None and whole is not None:
            target = whole()
            if target.counts is not self._counts:  # of a window that moves they are one array
                self._shares = self._parts / (self._parts @ target.counts)[:, None]
                self._counts = target.counts
            asked = self._shares @ target.sums
        out = np.empty(11)
        kernels.rehearsal_answer(asked, EDGE, self._quadratics, self._clouds, self._limits, out)
        out[6] /= NEAR
        return Answer(*out[:7].tolist())


def _packed(q: Quadratic) -> NDArray[np.float64]:
    columns = q.coefficients[:, [0, -1]].T  # the judge has one answer, twice here
    return np.concatenate([q.centre, q.scale, *columns])


class Stream:
    """Moves the running state of a monitor on, in place. Not thread-safe.

    Args:
        monitor: Fitted; it has the lock.
    """

    def __init__(self, monitor: Monitor) -> None:
        self._monitor, self.running = monitor, monitor.running_
        self._chooser = Chooser(monitor.method_, monitor.ladder_)
        self._plan = monitor.window_.plan()
        scales, detector = scales_of(self._plan), monitor.detector_
        spread = np.sqrt(1 / scales.rows + 1 / detector.n_clean)[:, None]
        arrays = (
            scales.weights / scales.totals[:, None] / spread,
            scales.needed,
            detector.reference / spread,
            detector.directions,
            detector.limits.squares,
        )
        self._scales = tuple(map(np.ascontiguousarray, arrays))
        # The fewest blocks for a choice.
        self._least = min(-(-FEW_ROWS // self._plan.block), self._plan.blocks)
        self._weigh()
        self._use_map()
        self._looked = self._look_back()

    def feed(
        self, logits: Logits, at: float | None, *, probabilities: bool, estimate: bool
    ) -> Update:
        """Take checked rows, whose sums become part of the window.

        With ``estimate``, that of every full window is noted for late labels.
        """
        run, block = self.running, self._plan.block
        z = np.ascontiguousarray(logits)
        n, k = z.shape
        confidence, predicted = np.empty(n), np.empty(n, np.intp)
        probs = np.empty((n, k) if probabilities else (0, 0))
        events: list[Event] = []
        start, looked = 0, False
        while start < n:
            stop = min(n, start + block - run.rows % block)
            piece = slice(start, stop)
            self._rows(z[piece], confidence[piece], predicted[piece], probs[piece])
            run.rows += stop - start
            start = stop
            if run.rows % block == 0:
                looked = True
                events += self._end_block(at)
                if estimate and run.rows % self._plan.rows == 0:
                    self._note_estimate()
        if looked:
            self._looked = self._look_back()
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
            _looked=self._looked,
        )

    def _rows(
        self, z: Logits, confidence: NDArray[np.float64], predicted: NDArray[np.intp], probs: Probs
    ) -> None:
        """Rows of one block, with the calibration in use."""
        pass_rows = kernel_for("pass_rows", z)
        if self._map is None:
            t = self.running.temperature
            pass_rows(z, t, self.running.partial, confidence, predicted, probs)
            return
        pass_rows(z, 1.0, self.running.partial, confidence, predicted, np.empty((0, 0)))
        method = self._monitor.method_
        if method.corrects:  # its confidence is that of the model's own prediction
            predicted[:], confidence[:] = z.argmax(axis=1), method._confidence(z)
            if len(probs):
                probs[:] = method._apply(z)
            return
        calibrated = self._map.apply_checked(z)
        predicted[:] = calibrated.argmax(axis=1)
        confidence[:] = calibrated.max(axis=1)
        if len(probs):
            probs[:] = calibrated

    def _end_block(self, at: float | None) -> list[Event]:
        """Move the window on, choose for it, and compare it with the clean set."""
        run = self.running
        run.ring[(run.rows // self._plan.block - 1) % len(run.ring)] = run.partial
        run.partial[:] = 0
        if self._filled < len(run.ring):
            self._weigh()
        if self._filled < self._least:
            return []
        blocks = self._blocks()
        # Sums over the first axis are added up in order, block by block.
        means = (self._shares * blocks[:, :-1]).sum(axis=0)
        choice = self._chooser.choose(means, self._n, self._filled, self._grouped)
        changed = choice.which != run.which
        run.temperature, run.which, run.outside = choice
        if changed:
            self._use_map()
        ratio = np.empty(1)
        kernels.largest_ratio(blocks, *self._scales, ratio)
        run.statistic = float(ratio[0])
        limits = self._monitor.detector_.limits
        full = self._filled == len(run.ring)
        kind = run.move_on(full=full, lower=limits.lower, patience=self._monitor.patience_)
        if kind is None:
            return []
        about_clean = kind in ("shift-began", "back-to-normal")
        statistic = run.statistic if about_clean else run.outside
        threshold = limits.lower if kind == "back-to-normal" else 1.0
        message = _MESSAGES[kind].format(statistic, threshold)
        return [Event(kind, run.rows, at, run.state, statistic, threshold, message)]

    def _weigh(self) -> None:
        """Weights of the blocks that are there, and how many rows are as noisy.

        As groups they are scaled to weigh as much as an unweighted sample that is as noisy:
        ``n = (Σ w)² / Σ w²`` times the rows of a block.
        """
        block = self._plan.block
        self._filled = min(self.running.rows // block, self._plan.blocks)
        w = self._plan.weights[: self._filled]
        if len(w):
            total, squares = float(w.sum()), float((w**2).sum())
            self._shares = (w * (UNIT / (block * total)))[:, None]
            self._n = round(block * total**2 / squares)
            w = w * (w.sum() / (w**2).sum())
        self._counts, self._units = block * w, UNIT * w[:, None]

    def _blocks(self) -> NDArray[np.int64]:
        """``(f, 2 k + 4)`` sums of the blocks, the newest first."""
        ring, newest = self.running.ring, self.running.rows // self._plan.block - 1
        blocks: NDArray[np.int64] = ring[(newest - np.arange(self._filled)) % len(ring)]
        return blocks

    def _grouped(self) -> Grouped:
        """The blocks as groups of rows, as methods and estimators take them."""
        sums = self._blocks() * self._units
        return Grouped(sums[:, :-2], self._counts, float(sums[:, -2].sum()))

    def _look_back(self) -> tuple[Grouped, Method, AccuracyEstimator | None, float] | None:
        if self._filled < self._least:
            return None
        monitor = self._monitor
        return self._grouped(), monitor.method_, monitor.estimator_, monitor.level_

    def _note_estimate(self) -> None:
        estimator, level = self._monitor.estimator_, self._monitor.level_
        if estimator is not None:
            found = estimator.estimate_moments(self._grouped(), level=level)
            window = self.running.rows // self._plan.rows - 1
            self._monitor._ledger.estimates[str(window)] = [found.value, found.low, found.high]

    def _use_map(self) -> None:
        """Look up what is applied; ``None`` for a division by the temperature."""
        run = self.running
        self._map = self._chooser.map_of(run.which) if run.temperature is None else None


@final
class Monitor(Estimator):
    """Calibrates a stream as it arrives, estimates its accuracy, and reports shifts.

    Rows are counted in blocks. At first the calibration is that of the clean set; after the first
    block with 100 rows or more in all, it is chosen at the end of every block from the sums of the
    blocks in the window. For a full sliding window it is what the method's ``adapt`` chooses for
    the same rows, to 1e-9. Only Rehearsal's interval, and its temperature if the window is larger
    than all draws of the bank, are computed from blocks instead of random groups. Nothing depends
    on how the rows are split into batches.

    *Shifts.* Five features of the raw softmax are used: p_max, its square, entropy, ``Σ p²`` and
    ``-log(1 - p_max)``. Let ``d`` be the difference between their means over n rows (the last 1, 2,
    4, ... blocks, and the window) and over the m clean rows, over ``sqrt(1/n + 1/m)``. There are
    two statistics: ``a'd``, along the mean direction in which the sets of the bank lie from the
    clean one, and ``|W d|``, the Mahalanobis length of three of the features. Each has a limit at
    each scale; ``statistic`` is the largest ratio to them. The limits are set so that streams
    resampled from the clean rows have ``false_alarms`` alarms per 100,000 rows; the clean set
    itself counts as a sample.

    *States.* ``filling`` until the window is full, then ``normal``; ``shifted`` when the
    ratio reaches 1 (``shift-began``), until it has stayed below ``lower``, the 90 % quantile of
    clean data, for ``patience`` checks in a row (``back-to-normal``). A shifted stream becomes
    ``outside-bank`` when ``outside`` has been 1 or more for ``patience`` checks in a row, and
    ``back-inside`` after as many below 1. With Rehearsal, ``outside`` is the distance from the
    draws of the bank over their reach; otherwise it is how far mean confidence lies beyond that of
    all sets, over three standard errors.

    *Late labels.* The last ``waiting`` predictions fed with ``ids`` are kept until
    :meth:`add_labels` gets their labels. At the end of every block of labels it compares the
    accuracy of the last labelled rows with the estimate for the same rows. ``labels-disagree``: the
    Clopper-Pearson interval of the accuracy, at a level that gives ``false_alarms`` per 100,000
    labels, lies outside the mean interval of the estimates. ``labels-agree``: at ``level`` the two
    have overlapped for ``patience`` checks in a row. Rows without an estimate of their window use
    the last estimate, or their confidence.

    Memory and time per row do not grow. A lock makes it thread-safe; ``save`` and
    ``state_dict`` give the state between two batches.

    Args:
        method: Name of a method, or a method with its settings; it is copied. It must adapt to
            sums: Rehearsal, SAC by mean confidence, ACE, STS, TS, Vanilla. Or a Realign that was
            adapted: its correction stays, ``probs`` are corrected, and ``confidence`` is that of
            the model's own prediction.
        estimator: Name of an accuracy estimator, or one: Rehearsed or SurrogateCurve; ``None`` or
            ``False`` for none.
        window: :class:`Sliding` or :class:`Exponential`; default: the first, of 2,000 rows.
        false_alarms: Expected ``shift-began`` per 100,000 rows of a stream like the clean set, from
            0.001 to 100.
        patience: Consecutive checks before a return, or ``outside-bank``, is reported.
        level: Coverage of the interval of the accuracy.
        waiting: Most predictions kept for late labels, about 300 bytes each; the oldest are
            dropped first.
        seed: Of the simulated streams, and of a method or estimator given by name.
        input: What the model gives, ``"logits"`` or ``"probabilities"``; default: the method's.

    Attributes:
        method_: The method, fitted.
        estimator_: The estimator, fitted.
        window_: The window.
        detector_: The detector of shifts, with its limits.
        ladder_: Every set of the bank in numbers.
        patience_: Checks before a return is reported.
        level_: Coverage of the interval of the accuracy.
        digest_: Digest of everything learned; a running state belongs to it.
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
        waiting: int = 100_000,
        seed: int = 0,
        input: str | None = None,
    ) -> None:
        self.method = method
        self.estimator = estimator
        self.window = window
        self.false_alarms = false_alarms
        self.patience = patience
        self.level = level
        self.waiting = waiting
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
        check_count(self.waiting, name="waiting", most=_MOST_WAITING)
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
        if not _is_fixed(method):
            method.fit(checked)
        elif method.n_classes_ != checked.n_classes:
            raise InputError(
                f"the adapted {method.name} has {method.n_classes_} classes and the bank "
                f"{checked.n_classes}. Both must be of the same model."
            )
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
        self,
        logits: object,
        at: float | None = None,
        *,
        ids: Sequence[object] | None = None,
        probabilities: bool = False,
    ) -> Update:
        """Calibrate the next rows of the stream, and check whether it has shifted.

        A batch that is rejected or interrupted changes nothing.

        Args:
            logits: ``(n, k)``, of the kind ``input`` says, or :class:`Scores`; one row or many.
            at: Seconds of the caller's clock, for events; no clock is read.
            ids: One id per row, text or numbers, to keep its prediction for :meth:`add_labels`.
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
        names = None if ids is None else list(ids)
        if names is not None and len(names) != len(z):
            raise InputError(f"ids must have one entry per row: {len(z)} rows, {len(names)} ids.")
        seconds = None if at is None else float(at)
        return self._feed_checked(z, seconds, ids=names, probabilities=probabilities)

    def _feed_checked(
        self,
        logits: Logits,
        at: float | None,
        *,
        ids: Sequence[object] | None = None,
        probabilities: bool = False,
    ) -> Update:
        """The same for checked logits."""
        with self._lock:
            before = self.running_.copy()
            self._stream = self._stream or Stream(self)
            estimate = ids is not None or bool(self._ledger.waiting)
            try:
                update = self._stream.feed(
                    logits, at, probabilities=probabilities, estimate=estimate
                )
            except BaseException:  # Ctrl-C in the middle, or a map that fails
                self.running_, self._stream = before, None
                raise
            if ids is not None:
                window, first = self.window_.plan().rows, before.rows
                self._ledger.keep(ids, first, update.predicted, update.confidence, window=window)
            return update

    def add_labels(self, ids: Sequence[object], labels: object) -> tuple[Event, ...]:
        """Compare predictions with their late labels; :attr:`realised` has the result.

        Each label is used once. Labels of unknown ids are only counted.

        Args:
            ids: One id per label, as given to :meth:`feed`; ``5`` and ``"5"`` are the same.
            labels: ``(m,)`` class indices.

        Returns:
            ``labels-disagree`` and ``labels-agree``, where they are due.

        Raises:
            InputError: If the labels cannot be used; nothing has changed then.
        """
        self._require_fitted()
        names = list(ids)
        if not names:
            return ()
        y = check_labels(labels, n=len(names), k=self.n_classes_)
        with self._lock:
            plan, rows, state = self.window_.plan(), self.running_.rows, self.running_.state
            turns = self._ledger.judge(
                names,
                y,
                rows=rows,
                window=plan.rows,
                block=plan.block,
                false_alarms=self.false_alarms,
                patience=self.patience_,
                level=self.level_,
            )
        events = []
        for turn in turns:
            kind: Kind = "labels-agree" if turn.agree else "labels-disagree"
            message = _MESSAGES[kind].format(turn.accuracy, turn.bound)
            events.append(Event(kind, rows, None, state, turn.accuracy, turn.bound, message))
        return tuple(events)

    @property
    def realised(self) -> Realised:
        """Accuracy of the last labelled rows, next to its estimate."""
        with self._lock:
            self._require_fitted()
            return self._ledger.realised(self.level_)

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
        """Forget the stream."""
        with self._lock:
            self._require_fitted()
            self.running_, self._stream = self._fresh(), None

    def state_dict(self) -> dict[str, Any]:
        """The running state alone, as plain values for JSON.

        A few kilobytes for ten classes, and about 60 bytes for each prediction that waits for its
        label.
        """
        with self._lock:
            state = self._state_without_waiting()
            waiting = {key: list(entry) for key, entry in self._ledger.waiting.items()}
            state["running"]["ledger"]["waiting"] = waiting
        return state

    def _state_without_waiting(self) -> dict[str, Any]:
        with self._lock:
            self._require_fitted()
            run, ledger = self.running_, self._ledger
            running = {**vars(run), "ring": run.ring.tolist(), "partial": run.partial.tolist()}
            kept = {**vars(ledger), "ring": ledger.ring.tolist(), "waiting": {}}
            running["ledger"] = {**kept, "estimates": dict(ledger.estimates)}
        return {"format": FORMAT, "version": VERSION, "monitor": self.digest_, "running": running}

    def load_state_dict(self, state: object) -> None:
        """Resume from a state of :meth:`state_dict`, with identical results.

        Raises:
            InputError: If it is not a state, is damaged, or belongs to another monitor.
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
            arrays: dict[str, Any] = {name: np.array(parts[name]) for name in ("ring", "partial")}
            if kept := parts.get("ledger"):
                arrays["ledger"] = Ledger(**{**kept, "ring": np.array(kept["ring"])})
            running = self._checked(Running(**{**parts, **arrays}))
        except InputError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"a monitor's state is damaged: {error}.") from error
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
        self.running_ = self._checked(self.running_)
        if self.digest_ != self._digest():
            raise InputError("its digest does not match its parts")

    def _make_method(self, seed: int) -> Method:
        """An unfitted copy of the method, if it can choose from sums; an adapted Realign as is."""
        suitable = "Take rehearsal, sac (distance='mean'), ace, sts, ts or vanilla."
        if isinstance(self.method, Method) and self.method.corrects:
            if _is_fixed(self.method):
                return copy.deepcopy(self.method)
            suitable = "Adapt it to rows of the stream first: its correction is then kept."
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

    @property
    def _ledger(self) -> Ledger:
        assert self.running_.ledger is not None
        return self.running_.ledger

    def _fresh(self) -> Running:
        start = Chooser(self.method_, self.ladder_).start()
        blocks = self.window_.plan().blocks
        ring = np.zeros((blocks, 2 * self.n_classes_ + 4), np.int64)
        ledger = Ledger.fresh(blocks, self.waiting)
        return Running(ring, ring[0].copy(), start.temperature, start.which, ledger=ledger)

    def _checked(self, running: Running) -> Running:
        """A copy of a running state that was read, whose arrays can be written."""
        fresh, read = self._fresh(), running.copy()
        read.ledger = fresh.ledger if read.ledger is None else read.ledger.copy()
        read.check(fresh, maps=len(getattr(self.method_, "maps_", ())))
        assert read.ledger is not None
        assert fresh.ledger is not None
        read.ledger.most = self.waiting
        read.ledger.check(fresh.ledger, self.n_classes_)
        return read

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
            state = dict(vars(self))
            if "running_" in state:
                state["running_"] = self.running_.copy()
                state["running_"].ledger = self._ledger.copy()
        return {name: value for name, value in state.items() if name not in ("_lock", "_stream")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.RLock()
        self._stream = None


def _is_fixed(method: Method) -> bool:
    """Whether it corrects predictions as it was adapted to, whatever the stream."""
    return method.corrects and getattr(method, "selection_", None) is not None


def _unfitted(given: Any, base: type, get: Any, input: str, seed: int) -> Any:
    """A method or estimator by name, or a copy of the one that is given."""
    if isinstance(given, str):
        cls = get(given)
        seeded = {"seed": seed} if "seed" in cls().get_params() else {}
        return cls(**seeded, input=input)
    if not isinstance(given, base):
        raise InputError(f"a monitor needs the name of a {base.__name__}, or one; got {given!r}.")
    return clone(given)

"""What a study is made of: data, model, shifts, methods, splits and seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ModelPlan:
    """The classifier.

    Attributes:
        spec: A text as :func:`shiftcal.models.as_model` takes it; several are alternatives, of
            which the first whose file is there is used.
        groups: Name of a grouping of its classes into fewer, such as ``"imagenet16"``.
        batch_size: Images given to it at once; ``None`` is found by memory.
        dtype: What logits and features are stored as, ``"float32"`` or ``"float16"``.
    """

    spec: tuple[str, ...]
    groups: str | None = None
    batch_size: int | None = None
    dtype: str = "float32"


@dataclass(frozen=True)
class DataPlan:
    """Images like those the model was trained on.

    Attributes:
        images: To calibrate on and to test on, as :func:`shiftcal.datasets.as_image_set` takes
            them; several are alternatives, of which the first that is there is used.
        labels: A file of their labels, if they bring none.
        limit: Use only so many of them, a stratified choice; ``None`` is all.
        train: Of the training images, for methods that need their features.
        train_labels: As ``labels``.
        train_limit: How many of the training images are used.
        fetch: What to tell someone who does not have the images.
    """

    images: tuple[str, ...]
    labels: str | None = None
    limit: int | None = None
    train: tuple[str, ...] = ()
    train_labels: str | None = None
    train_limit: int = 10_000
    fetch: str = ""


@dataclass(frozen=True)
class CalibrationPlan:
    """The surrogate sets.

    Attributes:
        corruption: What makes them of the calibration images.
        severities: At which severities, beside the clean set.
        images: How many images are calibrated on; the others are tested on.
    """

    corruption: str = "pixelate"
    severities: tuple[int, ...] = (1, 2, 3, 4, 5)
    images: int = 5000


@dataclass(frozen=True)
class NaturalSet:
    """A target with images of its own.

    Attributes:
        name: In files and records: letters, digits, ``-``, ``_`` and ``.``.
        title: In tables; the name by default.
        images: As for :class:`DataPlan`.
        labels: As for :class:`DataPlan`.
        column: Which column of the paper's table it is; none by default.
        fetch: As for :class:`DataPlan`.
    """

    name: str
    title: str
    images: tuple[str, ...]
    labels: str | None = None
    column: str | None = None
    fetch: str = ""


@dataclass(frozen=True)
class ShiftPlan:
    """The targets.

    Attributes:
        corruptions: By which the test images are shifted.
        severities: At which severities; 0 is the clean test images.
        made: Where ready-made corrupted images are, with ``{corruption}`` and ``{severity}`` in
            the text; none corrupts the images on the fly.
        seed: Of the corruptions' random numbers.
        table: Whose strengths, as for :func:`shiftcal.corrupt`.
        sets: Natural targets.
    """

    corruptions: tuple[str, ...] = ()
    severities: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    made: str | None = None
    seed: int = 0
    table: str = "auto"
    sets: tuple[NaturalSet, ...] = ()


@dataclass(frozen=True)
class LadderPlan:
    """A corruption with strengths of the plan's own.

    Attributes:
        name: By which the plan calls it.
        corruption: The published corruption.
        strengths: One setting for each severity from 1 on.
    """

    name: str
    corruption: str
    strengths: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class MethodPlan:
    """One line of the comparison.

    Attributes:
        name: Of the method, as ``shiftcal methods`` lists them; or ``"oracle"``.
        label: In tables and figures.
        settings: Of the method.
        where: Where it stands, for messages; empty if nobody knows.
    """

    name: str
    label: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    where: str = field(default="", compare=False)


@dataclass(frozen=True)
class Plan:
    """A whole study.

    Attributes:
        study: Which of :func:`shiftcal.studies.names`.
        about: A sentence for the report.
        model: The classifier.
        data: Its images.
        calibration: The surrogate sets.
        shifts: The targets.
        methods: What is compared.
        seeds: One for each split into calibration and test.
        bins: Of the ECE.
        ladders: Corruptions with strengths of the plan's own.
        options: Of the study itself.
        where: Where it stands, for messages.
    """

    study: str
    model: ModelPlan
    data: DataPlan
    about: str = ""
    calibration: CalibrationPlan = CalibrationPlan()
    shifts: ShiftPlan = ShiftPlan()
    methods: tuple[MethodPlan, ...] = ()
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    bins: int = 15
    ladders: tuple[LadderPlan, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    where: str = field(default="the plan", compare=False)

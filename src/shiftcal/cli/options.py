"""Options that several commands share: kinds without help, and bundles that read what they name.

A command takes a bundle as one parameter, and :mod:`shiftcal.cli.main` makes an option of each of
its fields. The help of an option is what the docstring of its command or bundle says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from typer import Argument, Option

from shiftcal.errors import InputError
from shiftcal.files import fetched, find

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shiftcal.models import Model
    from shiftcal.scores import Scores
    from shiftcal.scoring.engines import Engine
    from shiftcal.surrogates import SurrogateBank
    from shiftcal.types import Confidence, Correct, Labels, Probs

Count = Annotated[int, Option(metavar="N", min=1)]
MaybeCount = Annotated[int | None, Option(metavar="N", min=1)]
Seed = Annotated[int, Option(metavar="N", min=0)]
Fraction = Annotated[float, Option(metavar="FRACTION")]
File = Annotated[Path | None, Option(metavar="FILE")]
Folder = Annotated[Path | None, Option(metavar="DIR")]
Names = Annotated[list[str] | None, Option(metavar="NAME")]
Name = Annotated[str | None, Option(metavar="NAME")]
Spec = Annotated[str | None, Option(metavar="SPEC")]
Format = Annotated[Literal["text", "markdown", "latex", "csv", "json"], Option("--format")]
Settings = Annotated[list[str] | None, Option("--set", metavar="NAME=VALUE")]
Severities = Annotated[str, Option(metavar="1-5|all")]
Method = Annotated[Path, Argument(metavar="METHOD.json")]
OutputFile = Annotated[Path, Option("--output", "-o", metavar="FILE")]
MaybeOutputFile = Annotated[Path | None, Option("--output", "-o", metavar="FILE")]
MaybeOutput = Annotated[Path | None, Option("--output", "-o", metavar="DIR|FILE")]
OutputFolder = Annotated[Path, Option("--output", "-o", metavar="DIR")]
MaybeOutputFolder = Annotated[Path | None, Option("--output", "-o", metavar="DIR")]


@dataclass(kw_only=True)
class Columns:
    """Columns of a table: names in every .csv and .parquet of the command that are not ours.

    Attributes:
        probability_columns: Columns of probabilities, which name the classes; or a pattern such as
            'p_*', where * is the class; or the one column of the positive class. Repeatable.
        logit_columns: The same for logits; one column is log-odds. Repeatable.
        id_column: Column of ids.
        label_column: Column of labels.
        positive_class: With one column of scores: the positive class, as the labels name it;
            default: labels are 0 and 1.
    """

    panel: ClassVar[str] = "Columns of a table"
    probability_columns: Annotated[
        list[str] | None,
        Option("--probability-columns", "--probability-column", metavar="A,B|PATTERN"),
    ] = None
    logit_columns: Annotated[
        list[str] | None, Option("--logit-columns", "--logit-column", metavar="A,B|PATTERN")
    ] = None
    id_column: Name = None
    label_column: Name = None
    positive_class: Name = None

    @property
    def columns(self) -> dict[str, Any]:
        """Those that are given, by the names that :func:`~shiftcal.read_scores` takes."""
        names = ("id_column", "label_column", "positive_class")
        given: dict[str, Any] = {name: getattr(self, name) for name in names}
        for name in ("probability_columns", "logit_columns"):
            texts = getattr(self, name) or ()
            given[name] = [one.strip() for text in texts for one in text.split(",")]
        return {name: value for name, value in given.items() if value}


@dataclass(kw_only=True)
class Sources(Columns):
    """The labelled sets that a method is fitted on.

    Attributes:
        bank_place: Folder of a surrogate bank, or scores file of the labelled clean set alone. The
            same as --bank.
        bank: Folder of a saved surrogate bank, instead of --surrogate.
        surrogate: Scores file of a labelled surrogate set. Repeat it in order of difficulty, the
            clean calibration set first.
        normalize: Rescale rounded probabilities or percentages to sum to 1, and divide one column
            of percentages by 100; logits do not change.
    """

    bank_place: Annotated[Path | None, Argument(metavar="BANK", show_default=False)] = None
    bank: Folder = None
    surrogate: Annotated[list[Path] | None, Option(metavar="FILE")] = None
    normalize: bool = False
    files: list[Path] = field(init=False)

    def __post_init__(self) -> None:
        self.files = list(self.surrogate or [])
        if sum(map(bool, (self.bank_place, self.bank, self.files))) > 1:
            raise InputError("BANK, --bank and --surrogate exclude one another. Give one of them.")
        if (place := self.bank_place) is not None:
            if place.is_file() or (place.suffix and not place.exists()):
                self.files = [find(place)]
            else:
                self.bank = place
        if self.bank is None and not self.files:
            raise InputError(
                "surrogate sets are missing. Give --bank DIR, or --surrogate FILE for every set, "
                "the clean calibration set first."
            )

    def read_bank(self) -> SurrogateBank:
        """The surrogate bank."""
        from shiftcal.scores_io import is_table
        from shiftcal.surrogates import SurrogateBank

        columns = self.columns if any(map(is_table, self.files)) else {}
        if self.columns and not columns and not isinstance(self, Target):
            raise InputError(
                "columns can be named for surrogate sets in .csv or .parquet files only. Leave out "
                "the column options."
            )
        if self.bank is not None:
            return SurrogateBank.load(self.bank, normalize=self.normalize)
        return SurrogateBank.from_files(self.files, normalize=self.normalize, **columns)


@dataclass(kw_only=True)
class Target(Columns):
    """The scores to be calibrated.

    Attributes:
        target_place: Scores file of the target. The same as --target.
        target: Scores file of the target. Its labels, if any, are only used to evaluate.
    """

    target_place: Annotated[Path | None, Argument(metavar="TARGET", show_default=False)] = None
    target: File = None
    path: Path = field(init=False)

    def __post_init__(self) -> None:
        found = self.target_place or self.target
        if found is None:
            raise InputError("the target is missing. Name its scores file as TARGET or --target.")
        if None not in (self.target_place, self.target):
            raise InputError(
                f"two targets were given: {self.target_place} and {self.target}. Leave one out."
            )
        self.path = found


@dataclass(kw_only=True)
class Task(Target, Sources):
    """A bank and a target.

    Attributes:
        labels: Labels of the target, as for `shiftcal evaluate`.
    """

    labels: File = None

    def __post_init__(self) -> None:
        if self.target_place is None and (self.bank or self.surrogate):
            self.bank_place, self.target_place = None, self.bank_place
        Sources.__post_init__(self)
        Target.__post_init__(self)

    def read(self) -> tuple[SurrogateBank, Scores]:
        """The bank, and the target with its labels if it has any."""
        from shiftcal.cli.inputs import read_target
        from shiftcal.scores_io import column_names, is_table

        bank = self.read_bank()
        columns = self.columns
        if any(map(is_table, self.files)):  # these have the columns; a target has no labels, maybe
            with fetched(self.path) as path:
                if not is_table(path):
                    columns = {}
                elif columns.get("label_column") not in column_names(path):
                    columns.pop("label_column", None)
        scores = read_target(
            self.path,
            bank.n_classes,
            bank.classes,
            normalize=self.normalize,
            labels=self.labels,
            columns=columns,
        )
        return bank, scores.as_kind(bank.input)


@dataclass
class Judged:
    """Probabilities of labelled rows, computed some rows at a time whenever they are needed.

    Attributes:
        blocks: Gives rows and their probabilities.
        labels: ``(n,)`` class indices.
    """

    blocks: Callable[[], Iterable[tuple[slice, Probs]]]
    labels: Labels

    @cached_property
    def top1(self) -> tuple[Confidence, Correct]:
        """Confidence of every row, and whether its prediction is correct."""
        import numpy as np

        from shiftcal.numerics.softmax import top_of_rows

        confidence, correct = np.empty(len(self.labels)), np.empty(len(self.labels), np.bool_)
        for rows, probs in self.blocks():
            predicted, confidence[rows] = top_of_rows(probs)
            correct[rows] = predicted == self.labels[rows]
        return confidence, correct

    def mean(self, of_rows: Callable[[Any, Any], NDArray[Any]]) -> float:
        """The mean of what ``of_rows`` makes of the probabilities and labels of some rows."""
        sums = (float(of_rows(p, self.labels[rows]).sum()) for rows, p in self.blocks())
        return sum(sums) / len(self.labels)

    def whole(self) -> Probs:
        """All probabilities."""
        import numpy as np

        return np.concatenate([probs for _, probs in self.blocks()])


@dataclass(kw_only=True)
class Judge:
    """How metrics are computed.

    Attributes:
        n_bins: Number of bins of binned metrics.
        binning: Bins of equally many rows (size) or of equal width in confidence (width).
        level: Coverage of intervals, strictly between 0 and 1.
        n_resamples: Bootstrap draws per interval; 0 for no intervals.
        seed: Seed of the bootstrap.
    """

    n_bins: Annotated[int, Option("--bins", metavar="N", min=1)] = 15
    binning: Annotated[str, Option(metavar="size|width")] = "size"
    level: Fraction = 0.95
    n_resamples: Annotated[int, Option("--resamples", metavar="N", min=0)] = 1000
    seed: Seed = 0

    def __post_init__(self) -> None:
        from shiftcal.checks import check_fraction
        from shiftcal.metrics import check_binning

        if self.n_resamples == 1:
            raise InputError("--resamples must be 0 (no intervals) or at least 2; got 1.")
        check_fraction(self.level, name="--level")
        self.binning = check_binning(self.binning, name="--binning")

    def metric(
        self, name: str, judged: Judged, *, interval: bool = True
    ) -> dict[str, float | None]:
        """``value``, ``low`` and ``high`` of a metric; the last two are ``None`` without draws."""
        import inspect

        from shiftcal.metrics import bootstrap_checked, facts_of, unchecked
        from shiftcal.registry import METRICS

        function = METRICS.get(name)
        facts = facts_of(function)
        settings: dict[str, Any] = {}
        if "n_bins" in inspect.signature(function).parameters:
            settings = {"n_bins": self.n_bins, "binning": self.binning}
        # Draws from a single row are all the same.
        interval = interval and self.n_resamples > 0 and len(judged.labels) > 1
        if facts.reads == "full" and facts.rows is not None and not settings and not interval:
            return {"value": judged.mean(facts.rows), "low": None, "high": None}
        arrays = judged.top1 if facts.reads == "top1" else (judged.whole(), judged.labels)
        if not interval:
            return {
                "value": float(unchecked(function)(*arrays, **settings)),
                "low": None,
                "high": None,
            }
        settings |= {"n_resamples": self.n_resamples, "level": self.level, "seed": self.seed}
        found = bootstrap_checked(function, *arrays, **settings)
        return {"value": found.value, "low": found.low, "high": found.high}

    def __str__(self) -> str:
        text = (
            "Accuracy, confidence and ECE are fractions, not percent; NLL is in nats. "
            f"ECE: {self.n_bins} bins of equal {self.binning}."
        )
        if self.n_resamples:
            how = f"{self.n_resamples} draws, seed {self.seed}"
            text += f" Intervals: {100 * self.level:g}% bootstrap, {how}."
        return text


@dataclass(kw_only=True)
class Strength:
    """How strong corruptions are, and what they draw.

    Attributes:
        table: Table of strengths; auto goes by the size of the images.
        seed: Seed of the random numbers.
        frost_photos: Folder of frost photographs, instead of the procedural frost.
    """

    table: Annotated[str, Option(metavar="cifar|tiny-imagenet|imagenet|auto")] = "auto"
    seed: Seed = 0
    frost_photos: Folder = None


@dataclass(kw_only=True)
class Workers:
    """Where work on many files is done; a panel of its own in the help.

    Attributes:
        engine: Where the work is done.
        workers: Number of workers: processes, or Ray actors.
        address: Address of a running Ray cluster, or auto.
        cpus_per_worker: Cores per Ray worker; default: 1.
    """

    panel: ClassVar[str] = "Workers and clusters"
    engine: Annotated[str, Option(metavar="local|ray")] = "local"
    workers: MaybeCount = None
    address: Annotated[str | None, Option(metavar="HOST:PORT")] = None
    cpus_per_worker: Annotated[float | None, Option(metavar="X")] = None

    def settings_of_engine(self) -> dict[str, Any]:
        """Those of the engine that are given."""
        names = ("workers", "address", "cpus_per_worker", "gpus_per_worker")
        given = {name: getattr(self, name, None) for name in names}
        return {name: value for name, value in given.items() if value is not None}

    def make_engine(self) -> Engine:
        """The engine."""
        from shiftcal.scoring.engines import engine_of

        return engine_of(self.engine, **self.settings_of_engine())


@dataclass(kw_only=True)
class Work(Workers):
    """Where images are scored.

    Attributes:
        gpus_per_worker: GPUs per Ray worker; 0.5 lets two share one.
        cache: Folder of finished shards to share between runs; default: $SHIFTCAL_CACHE, if set.
    """

    panel: ClassVar[str] = Workers.panel
    gpus_per_worker: Annotated[float | None, Option(metavar="X")] = None
    cache: Folder = None


@dataclass(kw_only=True)
class Scoring(Work):
    """Images to be scored, and how.

    Attributes:
        images: The images: a folder of class folders, .npy, .npz, .parquet or .tar files, or
            NAME:PATH?option=value for a published data set (`shiftcal data list`).
        labels: Labels of images that have none, as for `shiftcal evaluate`.
        classes: Names of the model's classes in the order of its outputs: a text file with one per
            line, or names separated by commas.
        dtype: Type of stored logits; float16 halves the file.
        batch_size: Images given to the model at once; default: measured.
        shard_size: Images scored and stored together.
        skip_bad: Exit with status 0 even if images could not be read.
    """

    images: Annotated[str, Option(metavar="PATH")]
    labels: File = None
    classes: Annotated[str | None, Option(metavar="FILE|A,B,...")] = None
    dtype: Annotated[str, Option(metavar="float32|float16")] = "float32"
    batch_size: MaybeCount = None
    shard_size: Count = 1024
    skip_bad: bool = False

    def settings(self) -> dict[str, Any]:
        """What the library takes under these names."""
        from shiftcal.cli.inputs import reporting

        names = ("labels", "dtype", "shard_size", "cache")
        settings = {name: getattr(self, name) for name in names}
        return {**settings, "engine": self.make_engine(), "reporting": reporting()}

    def load_model(self, spec: str) -> Model:
        """The model of ``--model`` with these settings."""
        from shiftcal.models import as_model

        names = self.class_names()
        model = as_model(spec)
        model.batch_size = self.batch_size or model.batch_size
        model.classes = names or model.classes
        return model

    def class_names(self) -> tuple[str, ...] | None:
        """The names that ``--classes`` gives, or the file it names."""
        from shiftcal.files import parsing

        if self.classes is None:
            return None
        names = [name.strip() for name in self.classes.split(",")]
        if len(names) == 1:
            file = find(self.classes)
            with parsing(file, "a text file in UTF-8"):
                names = file.read_text("utf-8-sig").rstrip().splitlines()
        if "" in names or len(set(names)) < len(names) or len(names) < 2:
            raise InputError("--classes must give two names or more, all different and none empty.")
        return tuple(names)

    def bad_input(self, left_out: list[dict[str, Any]]) -> str:
        """The error for images that could not be read; empty if there are none."""
        if not left_out or self.skip_bad:
            return ""
        return f"images that could not be read: {len(left_out):,}. --skip-bad accepts that."

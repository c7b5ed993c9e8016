"""The surrogate bank: J labelled sets of logits in order, the first the clean calibration set."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from shiftcal._checks import check_choice, check_classes, check_features
from shiftcal._types import InputKind, Labels, Logits
from shiftcal.errors import InputError
from shiftcal.surrogates._per_set import EMPTY, labels_per_set, logits_per_set, one_width
from shiftcal.surrogates._shown import MOST, bank_html, bank_text
from shiftcal.surrogates.severities import refuse_misplaced, severities_of
from shiftcal.surrogates.summary import SetSummary
from shiftcal.surrogates.surrogate_set import SurrogateSet

if TYPE_CHECKING:
    from shiftcal.scoring.engines import Engine


class SurrogateBank:
    """J labelled sets of logits in order of rising difficulty, the first the clean one.

    Make one of a model and images with :meth:`synthesize`, of a model and rows, texts or anything
    else with :meth:`from_inputs`, of logits with :meth:`from_arrays` or :meth:`from_files`, or read
    a folder with :meth:`load`.

    Args:
        sets: The sets, all with the same number of classes; the severity of the first is 0, that of
            the others 1 or more, where they are known.
        classes: Names of the classes in the order of the columns.
        input: What the model gave: ``"logits"`` or ``"probabilities"``. The sets hold logits
            either way; methods must be made with the same ``input``.
        origin: How it was made: model, preprocessing, images, seed; kept with it on disk. ``None``
            if that is not known.
    """

    def __init__(
        self,
        sets: Sequence[SurrogateSet],
        *,
        classes: Sequence[str] | None = None,
        input: str = "logits",
        origin: Mapping[str, Any] | None = None,
    ) -> None:
        if not sets:
            raise InputError(EMPTY)
        k = one_width([s.logits for s in sets])
        refuse_misplaced([s.name for s in sets], [s.severity for s in sets])
        self.sets = tuple(sets)
        self.classes = None if classes is None else check_classes(classes, k=k)
        self.input = cast(InputKind, check_choice(input, ("logits", "probabilities"), name="input"))
        self.origin = None if origin is None else dict(origin)

    @classmethod
    def synthesize(  # noqa: PLR0913 (all but the first three are options)
        cls,
        model: object,
        images: object,
        labels: object = None,
        *,
        corruption: object = "pixelate",
        severities: Sequence[int] | int | None = None,
        out: str | os.PathLike[str] | None = None,
        seed: int = 0,
        table: str = "auto",
        dtype: str = "float32",
        features: str = "clean",
        engine: Engine | None = None,
        cache: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
    ) -> SurrogateBank:
        """A bank made from a model and labelled images: the images as they are, and corrupted.

        The next images are corrupted while the model runs, and work that was done is not done
        again: with ``out``, a call that was broken off goes on where it stopped.

        Args:
            model: A model, or what :func:`shiftcal.models.as_model` makes one of.
            images: A set of images, or what :func:`shiftcal.datasets.as_image_set` makes one of:
                an array, a folder of class folders, ``"cifar10:folder"``.
            labels: Class indices ``(n,)``, or a file of them; where the images bring their own
                they can be left out.
            corruption: A name, several in a list, or whatever :func:`shiftcal.corrupt` takes.
            severities: Which ones; all by default, which are 1 to 5.
            out: Folder for the bank, as :meth:`save` writes it, but in bounded memory. A bank that
                is there, of the same model and images, gets the sets it lacks.
            seed: Fixes the random numbers of the corruptions.
            table: Whose strengths, as for :func:`shiftcal.corrupt`.
            dtype: What logits are stored as: ``"float32"``, or ``"float16"`` to halve the size.
            features: Which sets keep the features of a model that gives them: ``"clean"``, which is
                what methods need of a bank, ``"all"``, where corrupted sets shall be targets of
                CPCS and TransCal, or ``"none"``.
            engine: Where the work is done; one worker in this process by default.
            cache: Folder of finished shards, to be shared between banks; by default that of the
                environment variable ``SHIFTCAL_CACHE``, or none.
            progress: Whether to show a bar; by default on a terminal.

        Raises:
            InputError: If something given cannot be used, or the model fails on a batch, which the
                message names; what was done until then is kept.
            FileError: If the folder cannot be written, or holds something else.
        """
        from shiftcal.scoring.run import Reporting
        from shiftcal.surrogates.build import build_bank
        from shiftcal.surrogates.conditions import conditions_of
        from shiftcal.surrogates.synthesize import Options, synthesize_in_memory

        conditions = conditions_of(corruption, severities)
        told = Reporting(progress)
        options = Options(
            seed, table, dtype, engine, cache=cache, features=features, reporting=told
        )
        if out is None:
            return synthesize_in_memory(model, images, labels, conditions, options=options)
        build_bank(model, images, out, labels=labels, conditions=conditions, options=options)
        return cls.load(out)

    @classmethod
    def from_inputs(  # noqa: PLR0913 (all but the first three are options)
        cls,
        model: object,
        inputs: object,
        labels: object,
        *,
        corruption: object,
        severities: Sequence[int] | int | None = None,
        seed: int = 0,
        features: object = None,
        classes: Sequence[str] | None = None,
        input: str | None = None,
    ) -> SurrogateBank:
        """A bank made from a model and labelled rows, texts or anything else it takes.

        Args:
            model: A fitted scikit-learn classifier or pipeline, or a function from inputs to
                logits or probabilities ``(n, k)``; called with all inputs at once.
            inputs: An array or a DataFrame of rows, a list of texts, or whatever the model takes.
            labels: ``(n,)``: what the classifier calls its classes; for a function class indices,
                or names if ``classes`` are given.
            corruption: A name (``corruptions.tabular.names()``, ``corruptions.text.names()``),
                several in a list, or whatever :func:`shiftcal.corruptions.corrupt_inputs` takes.
                What has to be fitted to reference rows and is not is fitted to ``inputs``.
            severities: Which ones; all by default.
            seed: Fixes the random numbers of the corruptions.
            features: ``(n, d)`` of the inputs as they are, for CPCS and TransCal.
            classes: Names of the classes in the order of the columns; a classifier has its own.
            input: What the model gives, ``"logits"`` or ``"probabilities"``, as for
                :func:`shiftcal.scoring.score_inputs`. Methods must be made with the same:
                ``SAC(input=bank.input)``.

        Raises:
            InputError: If something given cannot be used, a corruption does not return as many
                inputs, or the model fails; the message says on which set.
        """
        from shiftcal.surrogates._of_inputs import OfInputs, bank_of_inputs

        given = OfInputs(model, inputs, labels, features=features, classes=classes, input=input)
        return bank_of_inputs(given, corruption, severities, seed=seed)

    @classmethod
    def from_arrays(
        cls,
        scores: Iterable[object],
        labels: object,
        *,
        features: object = None,
        corruption: str | None = None,
        severities: Sequence[int] | None = None,
        classes: Sequence[str] | None = None,
        input: str = "logits",
    ) -> SurrogateBank:
        """A bank from arrays in memory, which are copied.

        Args:
            scores: One array ``(n, k)`` per set, the clean one first.
            labels: ``(n,)`` if all sets hold the same samples, else one such array per set; class
                indices, or names if ``classes`` are given.
            features: ``(n, d)`` of the clean set, for CPCS and TransCal.
            corruption: Name of the corruption behind the other sets.
            severities: Their severities, 1 or more; 1, 2, ... if a corruption is named.
            classes: Names of the classes in the order of the columns.
            input: What ``scores`` are: ``"logits"`` or ``"probabilities"``.
        """
        logits = logits_per_set(scores, input)
        names = None if classes is None else check_classes(classes, k=logits[0].shape[1])
        per_set = labels_per_set(labels, [z.shape for z in logits], names)
        copied = None if features is None else np.array(check_features(features, name="features"))
        levels = severities_of(len(logits), corruption, severities)
        sets = [
            SurrogateSet(
                z,
                y,
                set_name(j, corruption if j else None, level),
                corruption=corruption if j else None,
                severity=level,
                features=copied if j == 0 else None,
            )
            for j, (z, y, level) in enumerate(zip(logits, per_set, levels, strict=True))
        ]
        return cls(sets, classes=names, input=input)

    @classmethod
    def from_files(cls, paths: Sequence[str | os.PathLike[str]]) -> SurrogateBank:
        """A bank from scores files with labels, the clean set first."""
        from shiftcal.surrogates.folder import bank_from_files

        return bank_from_files(paths)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> SurrogateBank:
        """A bank from a folder that :meth:`save` wrote."""
        from shiftcal.surrogates.folder import load_bank

        return load_bank(folder)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``bank.json`` and one scores file per set to a new folder, whole or not at all."""
        from shiftcal.surrogates.folder import save_bank

        save_bank(self, folder)

    @property
    def clean(self) -> SurrogateSet:
        """The first set: the calibration samples as they are."""
        return self.sets[0]

    @property
    def n_classes(self) -> int:
        """Number of classes, from the columns."""
        return int(self.clean.logits.shape[1])

    def union(self) -> tuple[Logits, Labels]:
        """Logits and labels of all sets, one below the other."""
        if len(self.sets) == 1:
            return self.clean.logits, self.clean.labels
        logits = np.concatenate([s.logits for s in self.sets])
        return logits, np.concatenate([s.labels for s in self.sets])

    def summaries(self) -> tuple[SetSummary, ...]:
        """Every set in numbers."""
        return tuple(s.summary() for s in self.sets)

    def __len__(self) -> int:
        return len(self.sets)

    def __getitem__(self, index: int) -> SurrogateSet:
        return self.sets[index]

    def __iter__(self) -> Iterator[SurrogateSet]:
        return iter(self.sets)

    def __str__(self) -> str:
        return bank_text(self._title(), self.sets)

    def __repr__(self) -> str:
        return bank_text(self._title(), self.sets, most=MOST)

    def _repr_html_(self) -> str:
        return bank_html(self._title(), self.sets)

    def _title(self) -> str:
        return f"SurrogateBank of {len(self)} sets, {self.n_classes} classes ({self.input})"


def set_name(position: int, corruption: str | None, severity: int | None) -> str:
    """The name of a set, from what is known of it."""
    if position == 0 and corruption is None:
        return "clean"
    if corruption is None:
        return f"set {position + 1}" if severity is None else f"severity {severity}"
    return corruption if severity is None else f"{corruption}, severity {severity}"

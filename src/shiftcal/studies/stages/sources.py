"""The model and the images of a plan, opened; what is not there is explained, all of it at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from shiftcal import methods
from shiftcal.datasets import ImageSet, as_image_set, calibration_split
from shiftcal.errors import FileError, InputError, MissingData, MissingExtra
from shiftcal.models import Model, as_model
from shiftcal.studies.plan.plan import MethodPlan, NaturalSet, Plan
from shiftcal.studies.plan.reading import ORACLE

T = TypeVar("T")
# Of a limit: a choice of images that no split depends on.
_LIMIT_SEED = 0


@dataclass(frozen=True, eq=False)
class Sources:
    """What a plan speaks of, opened.

    Attributes:
        plan: The plan with the alternatives that are there, and nothing that is not.
        model: The classifier.
        images: To calibrate and to test on.
        train: Training images; ``None`` if no method needs their features.
        sets: Natural targets by name.
        missing: What was left out because it is not there.
    """

    plan: Plan
    model: Model
    images: ImageSet
    train: ImageSet | None
    sets: dict[str, ImageSet]
    missing: tuple[str, ...] = ()


def open_sources(plan: Plan, *, skip_missing: bool = False) -> Sources:
    """Open the model and the images of a plan.

    Args:
        plan: The plan.
        skip_missing: Whether natural targets that are not there are left out, and methods whose
            training images are not there.

    Raises:
        MissingData: Naming everything that is not there, and where to get it.
    """
    search = _Search()
    model_spec, model = search.first("the model", plan.model.spec, as_model, plan.data.fetch)
    images_spec, images = search.first(
        "the images", plan.data.images, _opener(plan.data.labels), plan.data.fetch
    )
    plan, train = _train(plan, search, skip_missing)
    plan, sets = _sets(plan, search, skip_missing)
    search.raise_if_missing()
    assert model is not None
    assert images is not None
    if plan.model.batch_size is not None:
        model.batch_size = plan.model.batch_size
    if plan.model.groups is not None:
        model, images, sets = _grouped(plan.model.groups, model, images, sets)
    chosen = replace(
        plan,
        model=replace(plan.model, spec=(model_spec,)),
        data=replace(plan.data, images=(images_spec,)),
    )
    limited = _limited(images, plan.data.limit, "the images")
    return Sources(chosen, model, limited, train, sets, tuple(search.left_out))


class _Search:
    """Alternatives tried one after the other; what is found nowhere is remembered."""

    def __init__(self) -> None:
        self.missing: list[str] = []
        self.left_out: list[str] = []

    def first(
        self, what: str, specs: Sequence[str], open_one: Callable[[str], T], fetch: str
    ) -> tuple[str, T | None]:
        """The first alternative that is there, and what it opens as.

        Raises:
            InputError: If one is there and cannot be used.
        """
        reasons = []
        for spec in specs:
            try:
                return spec, open_one(spec)
            except (MissingData, MissingExtra) as error:
                reasons.append(f"    {spec}: {error}")
            except FileError as error:
                if not isinstance(error.__cause__, FileNotFoundError):
                    raise
                reasons.append(f"    {spec}: {error}")
        told = f"  {what}:\n" + "\n".join(reasons)
        self.missing.append(f"{told}\n    {fetch}" if fetch else told)
        return specs[0], None

    def leave_out(self) -> None:
        """What was found missing last is left out, and said so."""
        self.left_out.append(self.missing.pop())

    def raise_if_missing(self) -> None:
        """Raises MissingData with everything that was found nowhere."""
        if self.missing:
            raise MissingData(
                "the study needs data that is not there:\n" + "\n".join(self.missing) + "\n"
                "Put it there, name another folder with --data, or edit the plan. --skip-missing "
                "runs without natural targets and training images that are not there."
            )


def _opener(labels: str | None) -> Callable[[str], ImageSet]:
    return lambda spec: as_image_set(spec, labels=labels)


def _train(plan: Plan, search: _Search, skip: bool) -> tuple[Plan, ImageSet | None]:
    """Training images, if a method needs their features."""
    needing = [method for method in plan.methods if _uses_features(method)]
    if not needing:
        return plan, None
    names = ", ".join(method.label for method in needing)
    if plan.data.train:
        spec, found = search.first(
            f"training images, whose features {names} need",
            plan.data.train,
            _opener(plan.data.train_labels),
            plan.data.fetch,
        )
        if found is not None:
            plan = replace(plan, data=replace(plan.data, train=(spec,)))
            return plan, _limited(found, plan.data.train_limit, "the training images")
    else:
        search.missing.append(f"  training images, whose features {names} need: [data] train = ...")
    if skip:
        search.leave_out()
        kept = tuple(method for method in plan.methods if not _uses_features(method))
        plan = replace(plan, methods=kept)
    return plan, None


def _uses_features(method: MethodPlan) -> bool:
    return method.name != ORACLE and bool(methods.get(method.name).uses_features)


def _sets(plan: Plan, search: _Search, skip: bool) -> tuple[Plan, dict[str, ImageSet]]:
    found: dict[str, ImageSet] = {}
    kept: list[NaturalSet] = []
    for each in plan.shifts.sets:
        spec, images = search.first(each.title, each.images, _opener(each.labels), each.fetch)
        if images is None:
            if skip:
                search.leave_out()
            continue
        if images.labels is None:
            raise InputError(
                f"{each.title} has no labels, and nothing can be judged without. Name a file of "
                "them in the plan: labels = ..."
            )
        found[each.name] = images
        kept.append(replace(each, images=(spec,)))
    return replace(plan, shifts=replace(plan.shifts, sets=tuple(kept))), found


def _grouped(
    name: str, model: Model, images: ImageSet, sets: dict[str, ImageSet]
) -> tuple[Model, ImageSet, dict[str, ImageSet]]:
    """The same with classes put together; images of other classes are left out.

    Natural targets bring the names of the groups already, or the classes that are grouped.
    """
    from shiftcal.datasets import class_groups, grouped
    from shiftcal.models import GroupedModel

    groups = class_groups(name)
    own = {
        key: each if set(each.classes or ()) <= set(groups) else grouped(each, groups)
        for key, each in sets.items()
    }
    return GroupedModel(model, groups), grouped(images, groups), own


def _limited(images: ImageSet, limit: int | None, what: str) -> ImageSet:
    """A stratified choice of the images, if there are more."""
    if limit is None or limit >= len(images):
        return images
    labels = np.zeros(len(images), np.intp) if images.labels is None else images.labels
    chosen, _ = calibration_split(labels, n=limit, seed=_LIMIT_SEED)
    return images.subset(chosen, name=f"{limit:,} of {what} ({images.name})")

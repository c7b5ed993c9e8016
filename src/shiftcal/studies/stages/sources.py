"""The model and the images of a plan, opened; what is not there is explained, all of it at once."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from shiftcal import methods
from shiftcal.datasets import ImageSet, as_image_set, calibration_split
from shiftcal.errors import InputError, MissingData
from shiftcal.models import Model, as_model
from shiftcal.studies.plan.methods import ORACLE
from shiftcal.studies.plan.plan import MethodPlan, NaturalSet, Plan
from shiftcal.studies.stages.enough import (
    check_enough,
    check_labels,
    note_limit,
    one_output,
)
from shiftcal.studies.stages.missing import Missing, told
from shiftcal.studies.stages.search import Search

# Of a limit: a choice of images that no split depends on.
_LIMIT_SEED = 0
_TRAIN = "the training images"
# Ready-made sets that are named if they are not there; a study may want a hundred.
_NAMED = 6


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
        token: Drawn anew every time: what a model is known by that cannot be known again.
    """

    plan: Plan
    model: Model
    images: ImageSet
    train: ImageSet | None
    sets: dict[str, ImageSet]
    missing: tuple[str, ...] = ()
    token: str = field(default_factory=lambda: secrets.token_hex(8))


def open_sources(plan: Plan, *, skip_missing: bool = False) -> Sources:
    """Open the model and the images of a plan.

    Args:
        plan: The plan.
        skip_missing: Whether natural targets that are not there are left out, and methods whose
            training images are not there.

    Raises:
        MissingData: Naming everything that is not there, and where to get it.
        InputError: If something is there and cannot be used: too few images, labels that are none
            of the model's.
    """
    search = Search()
    model_spec, model = search.first("the model", plan.model.spec, as_model, plan.data.fetch)
    images_spec, images = search.first(
        "the images", plan.data.images, _opener(plan.data.labels), plan.data.fetch
    )
    plan, train = _train(plan, search, skip_missing)
    plan, sets = _sets(plan, search, skip_missing)
    search.raise_if_missing(skipping=skip_missing)
    assert model is not None
    assert images is not None
    if plan.model.batch_size is not None:
        model.batch_size = plan.model.batch_size
    if plan.model.groups is not None:
        model = _grouped_model(plan.model.groups, model)
        sets = {name: _in_groups(plan, each) for name, each in sets.items()}
    if train is not None:
        _check_features(plan, model, images)
        train = limited(_in_groups(plan, train), plan.data.train_limit, _TRAIN)
    chosen = replace(
        plan,
        model=replace(plan.model, spec=(model_spec,)),
        data=replace(plan.data, images=(images_spec,)),
    )
    wanted = same_choice(plan, images)
    note_limit(plan, _in_groups(plan, images))
    check_enough(plan, wanted, sets)
    titles = {each.name: f"the set {each.title}" for each in plan.shifts.sets}
    others = {titles[name]: each for name, each in sets.items()}
    check_labels(model, wanted, others if train is None else {**others, _TRAIN: train})
    return Sources(chosen, model, wanted, train, sets, tuple(search.left_out))


def same_choice(plan: Plan, images: ImageSet) -> ImageSet:
    """Of the source images, or of ready-made versions of them, those that a plan uses.

    It is decided by the labels, which all versions have in common: by groups and by the limit.
    """
    return limited(_in_groups(plan, images), plan.data.limit, "the images")


def check_made(made: Mapping[str, str]) -> None:
    """Open ready-made images, so that nobody learns after hours that some are not there.

    Args:
        made: Where they are, by name of the set.

    Raises:
        MissingData: Naming those that are not there.
    """
    search = Search()
    for name, spec in made.items():
        search.first(name, (spec,), as_image_set, "")
    if search.missing:
        names = [each.what for each in search.missing]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        what = (
            f"{len(names)} of {len(made)} sets of ready-made corrupted images ([shifts] made): "
            f"{', '.join(names[:_NAMED])}{more}; the first:"
        )
        raise MissingData(told([Missing(what, search.missing[0].tried)], skipping=True))


def _opener(labels: str | None) -> Callable[[str], ImageSet]:
    return lambda spec: as_image_set(spec, labels=labels)


def _train(plan: Plan, search: Search, skip: bool) -> tuple[Plan, ImageSet | None]:
    """Training images, if a method needs their features."""
    needing = [method for method in plan.methods if _uses_features(method)]
    if not needing:
        return plan, None
    what = f"training images, for {', '.join(method.label for method in needing)}"
    if plan.data.train:
        spec, found = search.first(
            what,
            plan.data.train,
            _opener(plan.data.train_labels),
            plan.data.fetch,
            optional=True,
        )
        if found is not None:
            plan = replace(plan, data=replace(plan.data, train=(spec,)))
            return plan, found
    else:
        search.missing.append(Missing(what, ("the plan names none: [data] train = ...",), "", True))
    if skip:
        search.leave_out()
        kept = tuple(method for method in plan.methods if not _uses_features(method))
        plan = replace(plan, methods=kept)
    return plan, None


def _uses_features(method: MethodPlan) -> bool:
    return method.name != ORACLE and bool(methods.get(method.name).uses_features)


def _sets(plan: Plan, search: Search, skip: bool) -> tuple[Plan, dict[str, ImageSet]]:
    found: dict[str, ImageSet] = {}
    kept: list[NaturalSet] = []
    for each in plan.shifts.sets:
        spec, images = search.first(
            each.title, each.images, _opener(each.labels), each.fetch, optional=True
        )
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


def _grouped_model(name: str, model: Model) -> Model:
    from shiftcal.datasets import class_groups
    from shiftcal.models import GroupedModel

    return GroupedModel(model, class_groups(name))


def _in_groups(plan: Plan, images: ImageSet) -> ImageSet:
    """The same with classes put together, if the plan does; images of others are left out.

    Sets that bring the names of the groups already stay as they are, and so do those without
    labels, which only training images can be.
    """
    if plan.model.groups is None or images.labels is None:
        return images
    from shiftcal.datasets import class_groups, grouped

    groups = class_groups(plan.model.groups)
    there = images.classes is not None and set(images.classes) <= set(groups)
    return images if there else grouped(images, groups)


def _check_features(plan: Plan, model: Model, images: ImageSet) -> None:
    """Refuse a model without features before hours of scoring, if a method needs them."""
    if one_output(model, images).features is None:
        names = ", ".join(method.label for method in plan.methods if _uses_features(method))
        raise InputError(
            f"{names} need features, and the model {plan.model.spec[0]} gives none. Name a layer "
            "in its text (features_from=...), or leave the methods out."
        )


def limited(images: ImageSet, limit: int | None, what: str, *, stratified: bool = True) -> ImageSet:
    """A choice of the images, if there are more.

    Args:
        images: All of them.
        limit: How many at most; ``None`` is all.
        what: They are called in messages.
        stratified: Whether every class has its share, if there are labels; else labels have no say.
    """
    if limit is None or limit >= len(images):
        return images
    known = images.labels if stratified else None
    labels = np.zeros(len(images), np.intp) if known is None else known
    chosen, _ = calibration_split(labels, n=limit, seed=_LIMIT_SEED)
    return images.subset(chosen, name=f"{limit:,} of {what} ({images.name})")

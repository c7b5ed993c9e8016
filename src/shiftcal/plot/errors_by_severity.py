"""ECE of fitted methods on labelled sets of every severity."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping

from shiftcal.errors import InputError
from shiftcal.methods import Method
from shiftcal.metrics import ece
from shiftcal.metrics._bins import Binning
from shiftcal.scores import Scores
from shiftcal.surrogates import SurrogateBank, SurrogateSet


def errors_by_severity(
    methods: Mapping[str, Method] | Iterable[Method],
    targets: SurrogateBank,
    *,
    n_bins: int = 15,
    binning: Binning = "size",
) -> dict[str, dict[int, tuple[float, ...]]]:
    """ECE of every method on every set, by severity: what :func:`ece_by_severity` draws.

    Every set is a target of its own, that each method adapts to without its labels; corruptions of
    one severity are its repetitions. The methods themselves are left as they were.

    Args:
        methods: Fitted methods, by label; or methods, which are then called by their names.
        targets: Labelled sets whose severities are known. Sets that a method was fitted on flatter
            it: make a bank of samples and corruptions that it has not seen.
        n_bins: Of ECE.
        binning: Of ECE.

    Returns:
        Label to severity, rising, to one ECE per set of that severity.

    Raises:
        InputError: If the sets have no severities, or a method needs more than their logits.
        NotFittedError: If a method is not fitted.
    """
    if not isinstance(targets, SurrogateBank):
        raise InputError(f"targets must be a SurrogateBank; got {type(targets).__name__}.")
    for one in targets:
        if one.severity is None:
            raise InputError(
                f"targets must have severities; that of {one.name!r} is not known. Make the bank "
                "with severities=, or with SurrogateBank.synthesize."
            )
    found: dict[str, dict[int, tuple[float, ...]]] = {}
    for label, method in _labelled(methods).items():
        by_severity: dict[int, tuple[float, ...]] = {}
        for one in sorted(targets, key=lambda each: each.severity or 0):
            error = _error(method, one, n_bins=n_bins, binning=binning)
            severity = one.severity or 0
            by_severity[severity] = (*by_severity.get(severity, ()), error)
        found[label] = by_severity
    return found


def _labelled(methods: object) -> dict[str, Method]:
    if isinstance(methods, Method):
        methods = [methods]
    if isinstance(methods, Mapping):
        pairs = [(str(label), method) for label, method in methods.items()]
    elif isinstance(methods, Iterable):
        pairs = [(getattr(type(each), "name", lambda: "")(), each) for each in methods]
    else:
        pairs = []
    wrong = [method for _, method in pairs if not isinstance(method, Method)]
    if not pairs or wrong:
        given = type(wrong[0] if wrong else methods).__name__
        raise InputError(
            "methods must be fitted methods, at least one, such as "
            f'{{"SAC": sc.SAC().fit(bank)}}; got {given}.'
        )
    labels = [label for label, _ in pairs]
    if len(set(labels)) < len(labels):
        raise InputError(
            f"methods must have different labels, not {labels}. Name them: "
            '{"SAC, mean": ..., "SAC, ks": ...}.'
        )
    return dict(pairs)


def _error(method: Method, one: SurrogateSet, *, n_bins: int, binning: Binning) -> float:
    own = copy.copy(method)  # what it has chosen before stays with it
    if own.uses_mixed:
        raise InputError(
            f"{own.name()} needs mixed images of every target, which a bank has not. Adapt it to "
            "each target yourself, and give ece_by_severity the numbers."
        )
    scores = Scores(one.logits, features=one.features)
    if own.uses_target:
        own.adapt(scores)
    probs = own.predict_proba(scores)
    return ece(
        probs.max(axis=1), probs.argmax(axis=1) == one.labels, n_bins=n_bins, binning=binning
    )

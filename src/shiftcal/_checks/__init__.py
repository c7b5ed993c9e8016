"""The only input validation. Everything below this layer trusts what it is given.

Every function returns the checked value and never changes what it was given.
"""

from shiftcal._checks.arrays import to_array
from shiftcal._checks.groups import check_groups
from shiftcal._checks.images import ImageLayout, check_images
from shiftcal._checks.model_outputs import (
    GUARD_FROM,
    SMALLEST_PROBABILITY,
    check_features,
    check_logits,
    check_probs,
    check_scores,
)
from shiftcal._checks.names import as_text, check_classes, class_indices, label_indices
from shiftcal._checks.objects import plain
from shiftcal._checks.row_groups import check_row_groups
from shiftcal._checks.samples import (
    check_confidence,
    check_correct,
    check_labels,
    check_weights,
)
from shiftcal._checks.settings import (
    check_choice,
    check_count,
    check_flag,
    check_fraction,
    check_not_negative,
    check_positive,
    check_range,
)

__all__ = [
    "GUARD_FROM",
    "SMALLEST_PROBABILITY",
    "ImageLayout",
    "as_text",
    "check_choice",
    "check_classes",
    "check_confidence",
    "check_correct",
    "check_count",
    "check_features",
    "check_flag",
    "check_fraction",
    "check_groups",
    "check_images",
    "check_labels",
    "check_logits",
    "check_not_negative",
    "check_positive",
    "check_probs",
    "check_range",
    "check_row_groups",
    "check_scores",
    "check_weights",
    "class_indices",
    "label_indices",
    "plain",
    "to_array",
]

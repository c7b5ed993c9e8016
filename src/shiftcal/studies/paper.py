"""What the paper prints and claims, to stand beside what was measured.

The paper: *Frustratingly Easy Uncertainty Estimation for Distribution Shift* (arXiv 2106.03762).
Its other results are in figures without numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class PublishedColumn:
    """A column of a table of the paper.

    Attributes:
        group: Header over several columns; empty for none.
        name: Header of this one.
        ece: In percent, by method.
        source: Where it stands.
        data: What was measured.
    """

    group: str
    name: str
    ece: Mapping[str, float]
    source: str
    data: str


@dataclass(frozen=True)
class Claim:
    """Something the paper says, in our words.

    Attributes:
        study: The study that puts it to the test.
        where: Where the paper says it.
        text: A sentence.
    """

    study: str
    where: str
    text: str


# The paper does not say which reading of these it used, and a reading changes the result.
READING_UNTOLD = ("cpcs", "transcal")
# The methods of its tables, in their order, and what it calls them.
METHODS: Mapping[str, str] = MappingProxyType(
    {
        "vanilla": "Vanilla",
        "ts": "TS",
        "cpcs": "CPCS",
        "transcal": "TransCal",
        "sac": "SAC",
        "sts": "STS",
    }
)


def _table_2(group: str, name: str, data: str, *ece: float) -> PublishedColumn:
    by_method = MappingProxyType(dict(zip(METHODS, ece, strict=True)))
    return PublishedColumn(group, name, by_method, f"paper, Table 2, {data}", data)


# By what ``column`` of a natural set may say; ResNet-50 of torchvision, 15 bins of equal size.
TABLE_2: Mapping[str, PublishedColumn] = MappingProxyType(
    {
        "imagenet-v2-mf": _table_2(
            "ImageNet-V2",
            "MF",
            "ImageNet-V2 Matched-Frequency",
            8.77,
            4.81,
            5.29,
            12.26,
            4.44,
            4.71,
        ),
        "imagenet-v2-thr": _table_2(
            "ImageNet-V2", "Thr", "ImageNet-V2 Threshold-0.7", 4.88, 2.49, 3.26, 4.43, 2.49, 2.39
        ),
        "imagenet-v2-ti": _table_2(
            "ImageNet-V2", "TI", "ImageNet-V2 Top-Images", 3.23, 1.87, 5.85, 1.99, 1.86, 1.90
        ),
        "imagenet-sketch": _table_2(
            "", "ImageNet-Sketch", "ImageNet-Sketch", 22.29, 16.09, 38.79, 52.24, 10.71, 15.86
        ),
    }
)

CLAIMS = (
    Claim(
        "synthetic",
        "Results, synthetic shift; figure of the ECE means",
        "SAC and STS have the lowest mean ECE of all methods at every severity, and gain most at "
        "the high ones.",
    ),
    Claim(
        "synthetic",
        "Results, synthetic shift",
        "CPCS and TransCal improve calibration at high severities for ImageNet only: importance "
        "weights are badly estimated when the model has seen nothing but clean images.",
    ),
    Claim(
        "natural",
        "Results, natural shift; Table 2",
        "SAC or STS is the best on all three versions of ImageNet-V2 and on ImageNet-Sketch.",
    ),
    Claim(
        "corruption-choice",
        "Choices in SAC and STS; appendix",
        "Which corruption makes the surrogate sets matters little; for ImageNet at high severities "
        "it takes some care.",
    ),
    Claim(
        "distances",
        "Choices in SAC and STS; appendix",
        "The Kolmogorov-Smirnov and Wasserstein distances do about as well as the distance of the "
        "means.",
    ),
    Claim(
        "peek",
        "Choices in SAC and STS; appendix",
        "100 random samples of the target give about the result of all of them.",
    ),
    Claim(
        "ablation",
        "Results, ablation study on SAC",
        "STS improves on TS at high severities and loses at low ones; SAC improves more at high "
        "severities and keeps the calibration of TS at low ones.",
    ),
    Claim(
        "why-it-works",
        "Figure 1; Results, ablation study on SAC",
        "In the one example of the figure the calibration error is least precisely where the mean "
        "confidences are nearest; typically the surrogate set whose mean confidence is nearest to "
        "the target's has a lower calibration error.",
    ),
)


def claims_of(study: str) -> tuple[Claim, ...]:
    """What the paper claims about the question of a study."""
    return tuple(claim for claim in CLAIMS if claim.study == study)


def published(column: str | None, variant: str, method: str) -> float | None:
    """The paper's ECE in percent for a variant, if the paper has it.

    Args:
        column: A key of ``TABLE_2``, or ``None``.
        variant: Key of the variant; one with settings of its own is not the paper's, unless the
            paper leaves its reading open.
        method: Its method.
    """
    if (
        column is None
        or column not in TABLE_2
        or (variant != method and method not in READING_UNTOLD)
    ):
        return None
    return TABLE_2[column].ece.get(method)

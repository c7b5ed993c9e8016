"""Between which numbers settings of the published corruptions may lie.

There the kernels, which were made for the published settings, give what the recipe gives. So the
ends are not those of the recipe; they lie, where possible, well beyond the published settings.
"""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """Of one number of a setting.

    Attributes:
        low: The lowest it may be.
        high: The highest.
        whole: Whether it must be a whole number.
        only: All it may be, if that is not everything between.
    """

    low: float
    high: float
    whole: bool = False
    only: tuple[float, ...] = ()

    def allow(self, value: float) -> bool:
        """Whether a number may be used."""
        fits = value in self.only if self.only else self.low <= value <= self.high
        return fits and (not self.whole or float(value).is_integer())

    def __str__(self) -> str:
        if self.only:
            return f"be one of {', '.join(f'{value:g}' for value in self.only)}"
        kind = "be a whole number" if self.whole else "lie"
        return f"{kind} between {self.low:g} and {self.high:g}"


_UNIT = Limits(0, 1)
# Of blurs along a line, in pixels.
_RADIUS, _DEVIATION = Limits(1, 20, whole=True), Limits(0.1, 30)

LIMITS: dict[str, tuple[Limits, ...]] = {
    "brightness": (_UNIT,),
    "contrast": (_UNIT,),
    "defocus_blur": (Limits(0, 6.9), Limits(0.01, 1)),
    "elastic_transform": (
        Limits(0, 500),
        Limits(0, 200),
        Limits(0, 60),
        Limits(32, 224, whole=True, only=(32, 64, 224)),
    ),
    "fog": (Limits(0, 6), Limits(1, 6), Limits(32, 256, whole=True, only=(32, 64, 256))),
    "frost": (_UNIT, _UNIT, Limits(0.1, 1)),
    "gaussian_blur": (Limits(0, 12),),
    "gaussian_noise": (Limits(0.001, 1),),
    "glass_blur": (Limits(0, 3), Limits(1, 8, whole=True), Limits(1, 8, whole=True)),
    "impulse_noise": (Limits(0, 0.99),),
    "jpeg_compression": (Limits(1, 100, whole=True),),
    "motion_blur": (_RADIUS, _DEVIATION),
    "pixelate": (_UNIT,),
    "saturate": (Limits(0, 60), _UNIT),
    "shot_noise": (Limits(1, 2000),),
    "snow": (_UNIT, _UNIT, Limits(1, 5), _UNIT, _RADIUS, _DEVIATION, _UNIT),
    "spatter": (_UNIT, _UNIT, Limits(0.1, 8), _UNIT, Limits(0.1, 3), Limits(0, 1, whole=True)),
    "speckle_noise": (_UNIT,),
    "zoom_blur": (Limits(2, 50, whole=True), Limits(0.001, 0.06)),
}


def rule_broken(name: str, setting: tuple[float, ...]) -> str | None:
    """What is wrong with a setting that is none of the published ones; ``None`` if nothing is.

    Args:
        name: Of a published corruption.
        setting: As many numbers as its settings have.
    """
    limits = LIMITS[name]
    for place, (value, each) in enumerate(zip(setting, limits, strict=True), start=1):
        if not each.allow(value):
            which = f"number {place} of each" if len(limits) > 1 else "each"
            return f"{which} must {each}; got {value:g}"
    # The kernel for small disks takes the softened one to be of three by three pixels.
    if name == "defocus_blur" and 1 <= setting[0] < 2 and setting[1] > 0.2:
        return f"number 2 must be at most 0.2 where number 1 is from 1 to 2; got {setting}"
    return None

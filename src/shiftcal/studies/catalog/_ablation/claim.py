"""What the numbers say to the paper's ablation of SAC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shiftcal.studies.catalog._ablation.shares import Step, difference
from shiftcal.studies.catalog._pairs import in_points
from shiftcal.studies.record import Record
from shiftcal.studies.results import Mean
from shiftcal.studies.showing import severities_in_words

# The paper says "higher" and "low" intensities and no numbers.
_LOW, _HIGH = (0, 1), (3, 4, 5)


@dataclass(frozen=True)
class _Part:
    """One thing the paper says.

    Attributes:
        words: What, of which severities.
        step: Between which methods.
        severities: At which.
        sign: Of the difference: -1 it falls, 1 it rises, 0 it does not rise.
    """

    words: str
    step: Step
    severities: tuple[int, ...]
    sign: int

    def holds(self, found: Mean) -> bool:
        """Whether it does, beyond the interval if there is one."""
        low = found.value if found.low is None else found.low
        high = found.value if found.high is None else found.high
        return high < 0 if self.sign < 0 else low > 0 if self.sign > 0 else low <= 0


_PARTS = (
    _Part("STS improves on TS", Step("", "ts", "sts"), _HIGH, -1),
    _Part("STS loses to TS", Step("", "ts", "sts"), _LOW, 1),
    _Part("SAC improves more than STS", Step("", "sts", "sac"), _HIGH, -1),
    _Part("SAC keeps the calibration of TS", Step("", "ts", "sac"), _LOW, 0),
)


def claim_said(records: Sequence[Record]) -> Iterator[str]:
    """Each thing the paper says of TS, STS and SAC, judged by paired differences over the splits.

    The claim holds if all of it does, partly if some does.

    Args:
        records: Of the methods as the plan has them.
    """
    known = {record.severity for record in records}
    told, held = [], 0
    for part in _PARTS:
        here = [severity for severity in part.severities if severity in known]
        found = difference(records, part.step, here)
        if found is not None:
            right = part.holds(found)
            held += right
            told.append(
                f"{part.words} at {severities_in_words(here)}: {'yes' if right else 'no'}, "
                f"{part.step.after.upper()} minus {part.step.before.upper()} {in_points(found)}"
            )
    if told:
        word = "holds" if held == len(told) else "holds partly" if held else "does not hold"
        yield f"The paper's claim about the parts of SAC {word} here. {'; '.join(told)}."

"""Which corruption makes the surrogate sets: each in turn, always left out of the targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, final

from shiftcal import corruptions, methods
from shiftcal.errors import InputError
from shiftcal.report.gallery import PAPER
from shiftcal.studies.catalog._corruption_choice.remarks import remarks_of
from shiftcal.studies.catalog._corruption_choice.tables import (
    choices_table,
    severities_table,
    spread_table,
)
from shiftcal.studies.catalog._corruption_choice.views import View, choices_figure, spread_figure
from shiftcal.studies.catalog.base import Findings, Study, compared, targets_of
from shiftcal.studies.plan.methods import ORACLE
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.results import Results
from shiftcal.studies.variant import Ladder, Variant


@final
class CorruptionChoice(Study):
    """Cross-validation over the calibration corruption, as in the paper's appendix.

    Methods that learn from surrogate sets are evaluated once for every choice, on all targets but
    those of the chosen corruption. The others are evaluated once; beside a choice stands what they
    have on the targets of that choice.
    """

    title: ClassVar[str] = "The choice of the calibration corruption"
    options: ClassVar[Mapping[str, Any]] = {"choices": PAPER}

    def check(self, plan: Plan) -> None:
        """Refuse choices that are no corruptions, and plans in which nothing depends on them."""
        super().check(plan)
        choices = self.option(plan, "choices")
        texts = isinstance(choices, (list, tuple)) and all(isinstance(c, str) for c in choices)
        if not texts or not choices or len(set(choices)) < len(choices):
            raise InputError(
                "the option choices must be a list of different corruptions, such as "
                f'["pixelate", "fog"]; got {choices!r}.'
            )
        own = {ladder.name for ladder in plan.ladders}
        for name in choices:
            if name not in own:
                corruptions.get(name)  # raises, with the nearest name
        if not any(_uses_sets(each.name) for each in plan.methods):
            raise InputError(
                f"the study {plan.study!r} compares surrogate sets, and none of the plan's methods "
                'learns from them. Add {name = "sac", label = "SAC"} to methods.'
            )

    def variants(self, plan: Plan) -> list[Variant]:
        """Every choice for methods that use surrogate sets; the others once."""
        on = {name: targets_of(plan, calibration=name) for name in self.option(plan, "choices")}
        every = tuple(dict.fromkeys(target for targets in on.values() for target in targets))
        made: list[Variant] = []
        for each in compared(plan):
            if _uses_sets(each.method):
                made += [
                    replace(
                        each,
                        ladder=Ladder(name, plan.calibration.severities),
                        targets=targets,
                        setting=name,
                    )
                    for name, targets in on.items()
                ]
            else:
                clean_alone = Ladder(plan.calibration.corruption, ())
                made.append(replace(each, ladder=clean_alone, targets=every))
        return made

    def findings(self, results: Results) -> Findings:
        """Means and deviations over the choices, and every choice by itself."""
        view = View.of(results)
        if not view.choices or not view.severities:
            return Findings({}, {}, ("No choice was evaluated on a corrupted or clean target.",))
        tables = {"choice": spread_table(view), "severities": severities_table(view)}
        figures = {"choice": spread_figure(view)}
        if view.shifted:
            tables["choices"] = choices_table(view)
            figures["choices"] = choices_figure(view)
        return Findings(tables, figures, remarks_of(view))


def _uses_sets(method: str) -> bool:
    return method != ORACLE and bool(methods.get(method).uses_bank)

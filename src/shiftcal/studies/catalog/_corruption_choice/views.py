"""The choices of the calibration corruption, ordered for showing, and drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shiftcal.report.figures.lines import Lines, Panel, Series
from shiftcal.studies.catalog._corruption_choice.choices import Choice, Spread, choices_of, spread
from shiftcal.studies.catalog._corruption_choice.families import families_of
from shiftcal.studies.catalog._corruption_choice.reach import Reach, reach_of
from shiftcal.studies.results import Mean, Results
from shiftcal.studies.showing import ECE, OVER_SPLITS, SEVERITY, severities_in_words

TS = "ts"
OTHER_FAMILIES = "other families"
OTHER_FAMILIES_NOTE = (
    "Other families: without the targets of the choice's own family (noise, blur, weather or "
    "digital) too."
)
OVER_CHOICES = (
    "One standard deviation over the choices to either side. Methods without surrogate sets vary "
    "only because each choice leaves out another target."
)


@dataclass(frozen=True)
class View:
    """What tables, figures and remarks of the study are made of.

    Attributes:
        choices: Those first with which the leading method gains most on TS, targets for targets;
            in the order of the plan without TS. Means of one method are no order: every choice
            leaves out another target.
        labels: Of all variants, by key, in the order of the plan.
        varied: Keys of those that use surrogate sets, the leading one first: SAC if it is there.
        severities: All of them, rising.
        reach: How far the sets of each choice reach, as far as it is known.
        families: Of corruptions, by name.
        reference: The choice that the others are compared with: that of the plan's other
            settings, or else the first.
    """

    choices: Sequence[Choice]
    labels: Mapping[str, str]
    varied: Sequence[str]
    severities: Sequence[int]
    reach: Mapping[str, Reach]
    families: Mapping[str, str]
    reference: str

    @classmethod
    def of(cls, results: Results) -> View:
        """The view of a run."""
        labels = {record.variant: record.label for record in results.records}
        varied = list(dict.fromkeys(r.variant for r in results.records if r.setting))
        varied.sort(key=lambda key: key != "sac")
        choices = choices_of(results)
        names = [choice.name for choice in choices]
        usual = results.plan.calibration.corruption
        shifted = [s for s in results.severities if s] or results.severities
        if varied:
            choices.sort(key=lambda choice: _or_last(choice.minus(varied[0], TS, shifted)))
        found = {c.name: reach_of(results.plan, results.archive, c.name) for c in choices}
        reach = {name: each for name, each in found.items() if each is not None}
        return cls(
            choices=choices,
            labels=labels,
            varied=varied,
            severities=results.severities,
            reach=reach,
            families=families_of(results),
            reference=usual if usual in names else next(iter(names), ""),
        )

    @property
    def shifted(self) -> list[int]:
        """The severities from 1 on."""
        return [s for s in self.severities if s]

    @property
    def leading(self) -> str:
        """The key by which the choices are ordered."""
        return self.varied[0]

    @property
    def over(self) -> str:
        """The severities from 1 on, in words."""
        return severities_in_words(self.shifted)

    @property
    def with_ts(self) -> bool:
        """Whether there is TS to compare with."""
        return TS in self.labels

    def minus_ts(self, key: str, *, others: bool = False) -> dict[str, Mean]:
        """How much more ECE than TS a variant has with each choice, over the shifted targets.

        Args:
            key: Of the variant.
            others: Whether targets of the choice's own family are left out.
        """
        found = {}
        for choice in self.choices:
            kept = choice.without_family(self.families) if others else choice
            mean = kept.minus(key, TS, self.shifted)
            if mean is not None:
                found[choice.name] = mean
        return found


def _or_last(mean: Mean | None) -> float:
    return float("inf") if mean is None else mean.value


def spread_figure(view: View) -> Lines:
    """Mean ECE over the choices against severity, a line for each variant."""
    series = []
    for key, label in view.labels.items():
        found = [spread(view.choices, key, [s]) for s in view.severities]
        ends = [_ends(each) for each in found]
        series.append(
            Series(
                key=key,
                label=label,
                y=tuple(None if each is None else 100 * each.mean for each in found),
                low=tuple(low for low, _ in ends),
                high=tuple(high for _, high in ends),
            )
        )
    x = tuple(float(s) for s in view.severities)
    n = len(view.choices)
    return Lines(
        panels=(Panel(x=x, series=tuple(series), x_label=SEVERITY),),
        y_label=f"mean {ECE}",
        intervals="bands",
        title=f"Mean over {n} choices of the calibration corruption",
        note=f"Bands: {OVER_CHOICES[0].lower()}{OVER_CHOICES[1:]}",
    )


def choices_figure(view: View) -> Lines:
    """The difference to TS on the same targets for every choice; without TS the means."""
    names = tuple(choice.name for choice in view.choices)
    if view.with_ts:
        drawn = [_series(key, view.labels[key], names, view.minus_ts(key)) for key in view.varied]
        others = view.minus_ts(view.leading, others=True)
        label = f"{view.labels[view.leading]}, {OTHER_FAMILIES}"
        drawn.append(_series(f"{view.leading}-others", label, names, others))
        y_label = f"mean ECE minus that of {view.labels[TS]} (points)"
        note = (
            f" Differences are on the same targets: 0 is {view.labels[TS]}. {OTHER_FAMILIES_NOTE}"
        )
    else:
        drawn = [_series(key, view.labels[key], names, _means(view, key)) for key in view.labels]
        y_label, note = f"mean {ECE}", " Every choice has other targets."
    panel = Panel(
        x=names,
        series=tuple(drawn),
        x_label="calibration corruption, which is left out of the targets",
    )
    return Lines(
        panels=(panel,),
        y_label=y_label,
        title=f"Every choice of the calibration corruption, {view.over}",
        note=f"{OVER_SPLITS}{note}",
    )


def _means(view: View, key: str) -> dict[str, Mean]:
    found = {choice.name: choice.mean(key, view.shifted) for choice in view.choices}
    return {name: mean for name, mean in found.items() if mean is not None}


def _series(key: str, label: str, names: Sequence[str], means: Mapping[str, Mean]) -> Series:
    def percent(pick: str) -> tuple[float | None, ...]:
        numbers = [getattr(means.get(name), pick, None) for name in names]
        return tuple(None if number is None else 100 * number for number in numbers)

    return Series(
        key=key, label=label, y=percent("value"), low=percent("low"), high=percent("high")
    )


def _ends(found: Spread | None) -> tuple[float | None, float | None]:
    if found is None or found.sd is None:
        return None, None
    return 100 * (found.mean - found.sd), 100 * (found.mean + found.sd)

"""The choices of the calibration corruption, ordered for showing, and drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shiftcal.report.figures.lines import Lines, Panel, Series
from shiftcal.studies.catalog._corruption_choice.choices import Choice, Spread, choices_of, spread
from shiftcal.studies.catalog._corruption_choice.reach import Reach, reach_of
from shiftcal.studies.catalog._spans import in_words
from shiftcal.studies.results import Mean, Results
from shiftcal.studies.showing import ECE, OVER_SPLITS, SEVERITY

OVER_CHOICES = (
    "One standard deviation over the choices to either side. Methods without surrogate sets vary "
    "only because each choice leaves out another target."
)


@dataclass(frozen=True)
class View:
    """What tables, figures and remarks of the study are made of.

    Attributes:
        choices: The best of the leading method first.
        labels: Of all variants, by key, in the order of the plan.
        varied: Keys of those that use surrogate sets, the leading one first: SAC if it is there.
        severities: All of them, rising.
        reach: How far the sets of each choice reach, as far as it is known.
    """

    choices: Sequence[Choice]
    labels: Mapping[str, str]
    varied: Sequence[str]
    severities: Sequence[int]
    reach: Mapping[str, Reach]

    @classmethod
    def of(cls, results: Results) -> View:
        """The view of a run."""
        labels = {record.variant: record.label for record in results.records}
        varied = list(dict.fromkeys(r.variant for r in results.records if r.setting))
        varied.sort(key=lambda key: key != "sac")
        choices = choices_of(results)
        shifted = [s for s in results.severities if s] or results.severities
        if varied:
            choices.sort(key=lambda choice: _or_last(choice.mean(varied[0], shifted)))
        found = {c.name: reach_of(results.plan, results.archive, c.name) for c in choices}
        reach = {name: each for name, each in found.items() if each is not None}
        return cls(choices, labels, varied, results.severities, reach)

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
        return in_words(self.shifted)


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
    """Mean ECE over the shifted targets of every choice; Vanilla is told in the note."""
    shown = {key: label for key, label in view.labels.items() if key != "vanilla"}
    series = []
    for key, label in shown.items():
        means = [choice.mean(key, view.shifted) for choice in view.choices]
        ends = [(None, None) if m is None or m.low is None else (m.low, m.high) for m in means]
        series.append(
            Series(
                key=key,
                label=label,
                y=tuple(None if m is None else 100 * m.value for m in means),
                low=tuple(None if low is None else 100 * low for low, _ in ends),
                high=tuple(None if high is None else 100 * high for _, high in ends),
            )
        )
    panel = Panel(
        x=tuple(choice.name for choice in view.choices),
        series=tuple(series),
        x_label="calibration corruption, which is left out of the targets",
    )
    return Lines(
        panels=(panel,),
        y_label=f"mean {ECE}, {view.over}",
        title="Every choice of the calibration corruption",
        note=f"{OVER_SPLITS}{_of_vanilla(view)}",
    )


def _of_vanilla(view: View) -> str:
    if "vanilla" not in view.labels:
        return ""
    found = [choice.mean("vanilla", view.shifted) for choice in view.choices]
    values = [100 * mean.value for mean in found if mean is not None]
    if not values:
        return ""
    label = view.labels["vanilla"]
    return f" {label} is not drawn: {min(values):.1f} to {max(values):.1f} %."


def _ends(found: Spread | None) -> tuple[float | None, float | None]:
    if found is None or found.sd is None:
        return None, None
    return 100 * (found.mean - found.sd), 100 * (found.mean + found.sd)

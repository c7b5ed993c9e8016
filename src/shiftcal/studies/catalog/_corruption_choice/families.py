"""Which corruptions are of one kind: noise, blur, weather, digital."""

from __future__ import annotations

from shiftcal import corruptions
from shiftcal.studies.results import Results


def families_of(results: Results) -> dict[str, str]:
    """The family of every corruption that makes surrogate sets or targets.

    One with strengths of the plan's own has the family of the corruption beneath. The clean images
    and natural shifts have none, and are left out.
    """
    beneath = {ladder.name: ladder.corruption for ladder in results.plan.ladders}
    names = dict.fromkeys(
        name
        for record in results.records
        for name in (record.setting, record.corruption if record.severity else "")
        if name
    )
    published = corruptions.names()
    return {
        name: corruptions.get(beneath.get(name, name)).group
        for name in names
        if beneath.get(name, name) in published
    }

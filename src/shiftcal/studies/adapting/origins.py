"""Which images a study was run on: of the places that a plan names, the one that was there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from shiftcal.studies.adapting.plan import AdaptationPlan, DomainPlan


@dataclass(frozen=True)
class Origin:
    """Where the images of a domain were found.

    Attributes:
        name: Of the domain.
        title: In tables.
        images: Texts of what was found, joined end to end.
        n: How many images are used; ``None`` if that is not known any more.
        instead_of: What the plan would have had rather, and was not there.
    """

    name: str
    title: str
    images: tuple[str, ...]
    n: int | None = None
    instead_of: tuple[str, ...] = ()

    def __str__(self) -> str:
        many = "images" if self.n is None else f"{self.n:,} images"
        rather = ", nor ".join(f"`{text}`" for text in self.instead_of)
        instead = f" (what the plan names first is not there: {rather})" if rather else ""
        return f"{self.title}, {many} of `{_joined(self.images)}`{instead}"


def origin_of(domain: DomainPlan, found: tuple[str, ...], n: int) -> Origin:
    """That of a domain whose alternatives are all known.

    Args:
        domain: As the plan has it.
        found: The alternative that was there.
        n: How many images are used.
    """
    before = domain.images[: domain.images.index(found)]
    rather = tuple(_joined(texts) for texts in before)
    return Origin(domain.name, domain.title, found, n, rather)


def with_earlier(
    plan: AdaptationPlan, earlier: Mapping[str, Any], found: Sequence[Origin] = ()
) -> tuple[Origin, ...]:
    """Those of every domain, with what an earlier run in the same folder knew and this one cannot.

    Args:
        plan: The plan as it was run, with one alternative for each domain.
        earlier: What ``run.json`` said.
        found: By this run; nothing if it opened no images.
    """
    known = {origin.name: origin for origin in found}
    before = {origin.name: origin for origin in _read(earlier)}
    told = []
    for domain in plan.domains:
        own = known.get(domain.name) or Origin(domain.name, domain.title, domain.images[0])
        old = before.get(domain.name)
        if old is not None and old.images == own.images:
            n = old.n if own.n is None else own.n
            own = replace(own, n=n, instead_of=own.instead_of or old.instead_of)
        told.append(own)
    return tuple(told)


def sentence(origins: Sequence[Origin]) -> str:
    """What a report says of them, in Markdown."""
    return f"The images: {'; '.join(map(str, origins))}."


def _read(earlier: Mapping[str, Any]) -> list[Origin]:
    """What an earlier run wrote; nothing if it is damaged, or there is none."""
    with suppress(TypeError, KeyError, ValueError):
        return [
            Origin(
                str(each["name"]),
                str(each["title"]),
                tuple(map(str, each["images"])),
                None if each["n"] is None else int(each["n"]),
                tuple(map(str, each["instead_of"])),
            )
            for each in earlier["domains"]
        ]
    return []


def _joined(texts: Sequence[str]) -> str:
    return " + ".join(texts)

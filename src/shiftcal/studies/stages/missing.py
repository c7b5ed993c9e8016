"""What a study needs and does not find, told so that it can be got."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Places that are listed for one thing; a study may want a hundred ready-made sets.
_SHOWN = 3


@dataclass(frozen=True)
class Missing:
    """Something that is in none of the places a plan names.

    Attributes:
        what: In words.
        tried: Every place with the reason, a line each.
        fetch: What to get, and where to put it; may be empty.
        optional: Whether the study can be run without.
    """

    what: str
    tried: tuple[str, ...]
    fetch: str = ""
    optional: bool = False

    def __str__(self) -> str:
        more = len(self.tried) - _SHOWN
        lines = [f"    {line}" for line in self.tried[:_SHOWN]]
        lines += [f"    and {more} more"] if more > 0 else []
        return "\n".join([f"  {self.what}", *lines])


def told(missing: Sequence[Missing], *, skipping: bool) -> str:
    """All of it in one text; what is got in the same way stands together.

    Args:
        missing: At least one.
        skipping: Whether what is optional is left out already.
    """
    blocks = ["the study needs what is not there:"]
    for fetch in dict.fromkeys(each.fetch for each in missing):
        blocks += [str(each) for each in missing if each.fetch == fetch]
        blocks += [f"  To get it: {fetch}"] if fetch else []
    elsewhere = "ame another folder with --data, or edit the plan."
    end = f"N{elsewhere}"
    if any(each.fetch for each in missing):
        end = f"Then run the same command again; or n{elsewhere}"
    if not skipping and any(each.optional for each in missing):
        names = "; ".join(each.what for each in missing if each.optional)
        end += f" --skip-missing runs without: {names}."
    return "\n".join([*blocks, end])

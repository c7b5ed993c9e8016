"""The page of a figure: its size, title and legend above, its note below; no two overlap."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

from shiftcal._drawing.palette import MUTED
from shiftcal._optional import require
from shiftcal.report.figures._style import LARGE, SMALL

# Inches: the text width of most journals and of A4 with its margins.
WIDTH = 7.0
_WITHIN = WIDTH - 0.1
_EDGE = 0.04
# A letter of a short label is about this many times as wide as its size, a line so many as high.
_LETTER, _LINE = 0.56, 1.35
_POINTS = 72


def letters(inches: float, size: float = SMALL) -> int:
    """How many letters of a size fit into a width."""
    return max(1, int(inches * _POINTS / (_LETTER * size)))


def wrapped(text: str, inches: float, size: float = SMALL, *, hyphens: bool = False) -> str:
    """The text in lines that fit into a width; its own line breaks stay, long words too."""
    return "\n".join(
        textwrap.fill(line, letters(inches, size), break_long_words=False, break_on_hyphens=hyphens)
        for line in text.split("\n")
    )


class Page:
    """A figure of the usual width; :meth:`finish` adds strips for title, legend and note.

    The strips come on top of the height, so that words never press the picture.

    Args:
        height: Of the picture itself, in inches.
        share: Of the width that the picture takes, in the middle.
    """

    def __init__(self, height: float, *, share: float = 1.0) -> None:
        figures = require("matplotlib.figure", extra="plot", needed_by="a figure")
        canvas = require("matplotlib.backends.backend_agg", extra="plot", needed_by="a figure")
        self.height, self.share = height, share
        self.figure: Any = figures.Figure(figsize=(WIDTH, height), layout="constrained")
        self._renderer = canvas.FigureCanvasAgg(self.figure).get_renderer()

    def finish(
        self, handles: Sequence[Any], labels: Sequence[str], *, title: str, note: str
    ) -> Any:
        """The figure with its words around the picture: title and legend above, note below.

        Args:
            handles: What the legend explains.
            labels: As many.
            title: May be empty.
            note: May be empty.
        """
        title, note = self._broken(title, LARGE, "bold"), self._broken(note, SMALL, "normal")
        legend, tall = self._legend(handles, [wrapped(label, WIDTH - 0.6) for label in labels])
        above, below = _strip(title, LARGE), _strip(note, SMALL)
        total = above + tall + self.height + below
        self.figure.set_size_inches(WIDTH, total)
        area = ((1 - self.share) / 2, below / total, self.share, self.height / total)
        self.figure.get_layout_engine().set(rect=area, w_pad=_EDGE, h_pad=_EDGE)
        legend.set_bbox_to_anchor((0.5, 1 - above / total), self.figure.transFigure)
        put = {"x": 0.06 / WIDTH, "ha": "left", "in_layout": False, "linespacing": _LINE - 0.15}
        if title:
            y = 1 - 0.06 / total
            self.figure.text(y=y, s=title, va="top", size=LARGE, weight="bold", **put)
        if note:
            self.figure.text(y=0.06 / total, s=note, va="bottom", size=SMALL, color=MUTED, **put)
        return self.figure

    def _broken(self, text: str, size: float, weight: str) -> str:
        """The text in lines as long as the page is wide; its own line breaks stay."""
        fonts = require("matplotlib.font_manager", extra="plot", needed_by="a figure")
        font = fonts.FontProperties(size=size, weight=weight)
        lines: list[str] = []
        for given in text.split("\n"):
            line = ""
            for word in given.split(" "):
                longer = f"{line} {word}" if line else word
                width, _, _ = self._renderer.get_text_width_height_descent(longer, font, False)
                if line and width > _WITHIN * self.figure.dpi:
                    lines.append(line)
                    line = word
                else:
                    line = longer
            lines.append(line)
        return "\n".join(lines)

    def _legend(self, handles: Sequence[Any], labels: Sequence[str]) -> tuple[Any, float]:
        """The legend in as few rows as fit, and its height in inches."""
        for rows in range(1, len(labels) + 1):
            legend = self.figure.legend(
                handles,
                labels,
                loc="upper center",
                ncols=math.ceil(len(labels) / rows),
                columnspacing=1.4,
                handlelength=2.0,
                handletextpad=0.5,
                borderpad=0.2,
                borderaxespad=0.3,
            )
            legend.set_in_layout(False)  # its strip is kept free for it
            box = legend.get_window_extent(self._renderer)
            if box.width <= _WITHIN * self.figure.dpi or rows == len(labels):
                break
            legend.remove()
        return legend, box.height / self.figure.dpi + 0.08


def _strip(text: str, size: float) -> float:
    lines = text.count("\n") + 1 if text else 0
    return lines * _LINE * size / _POINTS + (0.08 if text else 0.0)

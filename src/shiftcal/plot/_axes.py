"""The axes a plot is drawn on: the caller's, or those of a new figure; their words and legend."""

from __future__ import annotations

from typing import Any

from shiftcal._optional import require
from shiftcal.errors import InputError

_MANY = " plt.subplots(2, 2) gives an array of them: pass one, such as ax=axes[0, 0]."
_FIGURE = " Pass one of its axes: figure.add_subplot()."


def check_axes(ax: object, *, plot: str) -> None:
    """Refuse what cannot be drawn on, before anything is computed.

    Args:
        ax: A matplotlib ``Axes``, or ``None``.
        plot: Who asks, for messages.

    Raises:
        MissingExtra: If matplotlib is not installed.
        InputError: If ``ax`` is something else.
    """
    axes = require("matplotlib.axes", extra="plot", needed_by=f"plot.{plot}")
    if ax is None or isinstance(ax, axes.Axes):
        return
    hint = _MANY if hasattr(ax, "shape") or isinstance(ax, list | tuple) else ""
    hint = _FIGURE if hasattr(ax, "add_subplot") else hint
    raise InputError(f"ax must be a matplotlib Axes; got {type(ax).__name__}.{hint}")


def axes_for(ax: Any, *, size: tuple[float, float]) -> Any:
    """``ax`` itself, or the axes of a new figure.

    A new figure is one of pyplot's, so that notebooks show it; where pyplot cannot have the window
    that it is set to, a figure without one, which can be saved all the same. It is made when all
    is computed: bad input leaves no empty figure behind.

    Args:
        ax: A matplotlib ``Axes``, or ``None``.
        size: Of a new figure, in inches.
    """
    return _new_figure(size).add_subplot() if ax is None else ax


def _new_figure(size: tuple[float, float]) -> Any:
    from matplotlib import pyplot
    from matplotlib.figure import Figure

    try:
        return pyplot.figure(figsize=size, layout="constrained")
    except ImportError:  # a window was asked for, by MPLBACKEND or matplotlibrc, and there is none
        return Figure(figsize=size, layout="constrained")


def name_axes(axes: Any, *, x: str, y: str) -> None:
    """Say what is on the axes, where the user has not."""
    if not axes.get_xlabel():
        axes.set_xlabel(x)
    if not axes.get_ylabel():
        axes.set_ylabel(y)


def show_legend(axes: Any, *, where: str = "best") -> None:
    """The legend of everything on the axes that has a label; a dollar in a label is a dollar."""
    handles, labels = axes.get_legend_handles_labels()
    legend = axes.legend(handles, labels, loc=where)
    legend.set_in_layout(False)  # a long one must not press small axes to nothing
    for text in legend.get_texts():
        text.set_parse_math(False)


def legend_text(label: object) -> str:
    """A label that matplotlib takes into a legend: it leaves out those that begin with ``_``."""
    text = str(label)
    return f" {text}" if text.startswith("_") else text

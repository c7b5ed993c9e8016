"""Calibration cards: for a calibration what a model card is for a model.

:func:`make_card` makes one of a method, its bank and a target, :meth:`CalibrationCard.save` writes
it as markdown and as JSON, and :func:`read_card` reads the JSON back.
"""

from shiftcal.cards.card import CalibrationCard, read_card
from shiftcal.cards.make import make_card
from shiftcal.cards.parts import (
    Applied,
    BankSet,
    Calibration,
    Judging,
    Limit,
    Measure,
    Measured,
    Model,
    Provenance,
    Target,
)

__all__ = [
    "Applied",
    "BankSet",
    "Calibration",
    "CalibrationCard",
    "Judging",
    "Limit",
    "Measure",
    "Measured",
    "Model",
    "Provenance",
    "Target",
    "make_card",
    "read_card",
]

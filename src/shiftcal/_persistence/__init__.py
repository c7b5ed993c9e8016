"""Fitted estimators as versioned JSON, with large arrays in a safetensors file beside it.

What may stand in a file is what the class declares: settings are the arguments of ``__init__``,
learnt values the annotated attributes that end in ``_``, and nested maps are looked up by name
among the files of :mod:`shiftcal.maps`. Nothing is ever unpickled or imported by a file's wish.
"""

from shiftcal._persistence.document import load, save

__all__ = ["load", "save"]

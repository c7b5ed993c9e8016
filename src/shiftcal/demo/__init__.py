"""The demonstration: a real model, real corruptions, the methods, a report, in a minute.

:func:`run_demo` takes a :class:`Subject`, which :func:`digits_subject` or :func:`cifar_subject`
makes, and leaves files that every other command can be tried on.
"""

from __future__ import annotations

from shiftcal.demo.cifar import cifar_subject
from shiftcal.demo.digits import digits_subject
from shiftcal.demo.found import Found, Met
from shiftcal.demo.run import run_demo
from shiftcal.demo.subject import Subject, Target

__all__ = ["Found", "Met", "Subject", "Target", "cifar_subject", "digits_subject", "run_demo"]

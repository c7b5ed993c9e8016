"""The HTML report: everything known of a calibration on one offline page.

Two steps: :func:`make_facts` computes all numbers, :func:`render` shows them and computes nothing.
"""

from __future__ import annotations

from shiftcal.report.html.facts import ReportFacts
from shiftcal.report.html.make import make_facts
from shiftcal.report.html.parts import Judging, Provenance
from shiftcal.report.html.render import render, write_report

__all__ = ["Judging", "Provenance", "ReportFacts", "make_facts", "render", "write_report"]

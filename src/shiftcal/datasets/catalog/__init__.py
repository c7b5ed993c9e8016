"""Published data sets by their real layouts. One file is one data set.

A file defines ``ABOUT`` (:class:`shiftcal.datasets.about.About`) and a function of its own name,
``function(root, **options)``, that gives an :class:`shiftcal.datasets.ImageSet`.
"""

from __future__ import annotations

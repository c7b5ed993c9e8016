"""PyTorch, which everything below imports from here; importing this file imports it."""

from __future__ import annotations

from typing import Any

from shiftcal._optional import require

_NEEDED_BY = "domain adaptation"

torch: Any = require("torch", extra="torch", needed_by=_NEEDED_BY)
nn: Any = require("torch.nn", extra="torch", needed_by=_NEEDED_BY)
functional: Any = require("torch.nn.functional", extra="torch", needed_by=_NEEDED_BY)

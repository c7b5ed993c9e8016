"""A package as if it were not installed."""

from __future__ import annotations

import sys


def hide(monkeypatch, package):
    """Make every import of the package fail as it does where the package is absent."""

    class Hidden:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == package:
                raise ModuleNotFoundError(f"No module named {package!r}", name=package)

    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Hidden(), *sys.meta_path])

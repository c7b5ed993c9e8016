"""Imports every public module and name of shiftcal, and prints what became of each as JSON.

Run in a clean environment: ``{name: ""}`` for what is there, ``{name: "MissingExtra: ..."}`` and so
on for what is not.
"""

import importlib
import json
import sys
from pathlib import Path

import shiftcal


def public_modules():
    """Files of the package without an underscore at the start of any part of their names."""
    folder = Path(shiftcal.__file__).parent
    for file in sorted(folder.rglob("*.py")):
        parts = file.relative_to(folder.parent).with_suffix("").parts
        words = parts[:-1] if parts[-1] == "__init__" else parts
        if not any(word.startswith("_") for word in words):
            yield ".".join(words)


def outcome(what):
    """What a call raises, in a line; nothing if it raises nothing."""
    try:
        what()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def outcomes():
    """By name: of every public module, and of every name that it lists."""
    found = {}
    for name in public_modules():
        found[name] = outcome(lambda name=name: importlib.import_module(name))
        if not found[name]:
            module = importlib.import_module(name)
            for one in getattr(module, "__all__", ()):
                found[f"{name}:{one}"] = outcome(lambda m=module, one=one: getattr(m, one))
    return found


if __name__ == "__main__":
    json.dump(outcomes(), sys.stdout)

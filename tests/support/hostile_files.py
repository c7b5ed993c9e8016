"""Files that run a command in whoever unpickles or evaluates them."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile


class Trap:
    """Unpickling this makes a file."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (os.system, (f"touch {self.mark}",))


def trap(mark):
    """A pickle that makes the file ``mark``."""
    return pickle.dumps(Trap(mark))


def rewritten(source, target, changes):
    """A copy of a zip file with some records changed, added, or (``None``) left out.

    Args:
        source: The file.
        target: Its copy.
        changes: Name below the top folder -> bytes, or a function of the JSON in the record.
    """
    with zipfile.ZipFile(source) as given:
        root = given.namelist()[0].partition("/")[0]
        records = {name.partition("/")[2]: given.read(name) for name in given.namelist()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for name in [*records, *(name for name in changes if name not in records)]:
            change = changes.get(name, records.get(name))
            if callable(change):
                content = json.loads(records[name])
                change(content)
                change = json.dumps(content)
            if change is not None:
                made.writestr(f"{root}/{name}", change)
    target.write_bytes(buffer.getvalue())
    return target


def rewritten_records(path, record, replacements):
    """Replace bytes in one record of a zip file, in place."""
    with zipfile.ZipFile(path) as given:
        records = {name: given.read(name) for name in given.namelist()}
    for old, new in replacements:
        records[record] = records[record].replace(old, new)
    with zipfile.ZipFile(path, "w") as made:
        for name, data in records.items():
            made.writestr(name, data)

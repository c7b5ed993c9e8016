"""Files that run a command in whoever unpickles or evaluates them."""

from __future__ import annotations

import os
import pickle


class Trap:
    """Unpickling this makes a file."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (os.system, (f"touch {self.mark}",))


def trap(mark):
    """A pickle that makes the file ``mark``."""
    return pickle.dumps(Trap(mark))

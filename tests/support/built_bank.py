"""Small banks on disk, made in this process."""

from __future__ import annotations

from pathlib import Path

from exact_model import Exact, exact, labelled

from shiftcal.surrogates.build import build_bank, conditions_of

IMAGES, LABELS = labelled(20, seed=9, size=(16, 16))


class Fails(Exact):
    def __init__(self, after):
        super().__init__()
        self.after = after

    def __call__(self, batch):
        if len(self.calls) == self.after:
            raise RuntimeError("no more")
        return super().__call__(batch)


def built(folder, model=None, *, images=IMAGES, labels=LABELS, corruption="pixelate",
          severities=(1, 2), **options):  # fmt: skip
    model = model or exact()
    done = build_bank(
        model,
        images,
        folder,
        labels=labels,
        conditions=conditions_of(corruption, severities),
        **{"shard_size": 8, **options},
    )
    return done, model.function.seen


def files(folder):
    return {f.relative_to(folder).as_posix(): f.read_bytes() for f in Path(folder).rglob("*")}

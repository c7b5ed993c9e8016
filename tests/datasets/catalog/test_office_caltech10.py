"""Office-Caltech10: a real copy, and the spellings of others."""

from __future__ import annotations

import numpy as np
from tiny_pictures import write_pictures

from shiftcal.datasets.catalog.domains import OFFICE_CALTECH10 as ABOUT
from shiftcal.datasets.catalog.domains import office_caltech10


def test_the_real_copy_has_the_published_counts(shared_data):
    root = shared_data / "office-caltech10"
    for part in ABOUT.parts:
        images = office_caltech10(root, **part.options)
        assert len(images) == part.n
        assert len(np.unique(images.labels)) == ABOUT.n_classes == 10
    whole = office_caltech10(root)
    assert len(whole) == 2533
    names, counts = np.unique(whole.fields["domain"], return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == {
        "amazon": 958,
        "Caltech": 1123,
        "dslr": 157,
        "webcam": 295,
    }


def test_other_spellings_of_folders_are_found(tmp_path):
    paths = [
        "amazon/back_pack/frame_0001.png",
        "amazon/laptop_computer/frame_0001.png",
        "caltech/laptop/frame_0001.png",
        "dslr/mug/frame_0001.png",
        "webcam/projector/frame_0001.png",
    ]
    write_pictures(tmp_path / "office_caltech_10", paths)
    images = office_caltech10(tmp_path)
    assert images.labels.tolist() == [0, 5, 5, 8, 9]
    assert images.fields["domain"].tolist() == ["amazon", "amazon", "Caltech", "dslr", "webcam"]
    assert images.classes[5] == "laptop_computer"
    assert (images[2] == 20).all()

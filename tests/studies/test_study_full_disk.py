"""A disk that is full at every stage of a study."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_disk import way
from study_disk import play
from toy_study import PLAIN

from shiftcal import studies
from shiftcal.studies.record import read_records


@pytest.mark.slow
@pytest.mark.skipif(way() is None, reason="no disk of one's own can be mounted here")
def test_a_run_on_a_full_disk_says_so_and_goes_on_when_there_is_room(tmp_path, once):
    told = play(tmp_path)
    assert all("No space left" in text for text in told["said"])
    for stage in ("scores", "splits", "evaluated", "records.csv"):
        assert any(stage in text for text in told["said"]), stage
    assert told["half"] == []
    file = tmp_path / "records.csv"
    file.write_text(told["records"], "utf-8")
    drop = {"arrays": "", "key": ""}
    wanted = [r for r in studies.Run(once.folder).records if r.method in PLAIN]
    assert [replace(r, **drop) for r in read_records(file)] == [replace(r, **drop) for r in wanted]

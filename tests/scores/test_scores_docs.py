"""The examples of the page on file formats are true."""

from __future__ import annotations

import re
from pathlib import Path

from shiftcal.scores import read_scores

PAGE = Path(__file__).resolve().parents[2] / "docs" / "file-formats.md"


def blocks(language):
    section = PAGE.read_text("utf-8").partition("## Scores files\n")[2].partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.DOTALL | re.MULTILINE)


def test_the_table_on_the_page_is_read(tmp_path):
    (content,) = blocks("csv")
    (tmp_path / "x.csv").write_text(content, "utf-8")
    scores = read_scores(tmp_path / "x.csv")
    assert scores.classes == ("cat", "dog", "red fox")
    assert scores.ids.tolist() == ["0001.png", "a, b.png"]
    assert scores.labels.tolist() == [1, 0]


def test_every_file_the_lines_of_python_write_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec("\n".join(blocks("python")), {})
    files = sorted(tmp_path.iterdir())
    assert files
    for file in files:
        scores = read_scores(file)
        assert scores.labels is not None
        assert scores.classes == ("cat", "dog", "fox")

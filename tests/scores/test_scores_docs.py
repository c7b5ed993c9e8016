"""The examples of the page on file formats are true."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from shiftcal.scores import read_scores

PAGE = Path(__file__).resolve().parents[2] / "docs" / "file-formats.md"
LOGITS = np.array([[2.0, -1.0, 0.5], [0.0, 3.0, 1.0]], dtype=np.float32)


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


@pytest.mark.parametrize("code", blocks("python"))
def test_the_lines_of_python_on_the_page_write_a_file_that_is_read(tmp_path, monkeypatch, code):
    monkeypatch.chdir(tmp_path)
    logits, labels = LOGITS, np.array([0, 2])
    if "torch" in code:
        torch = pytest.importorskip("torch")
        logits, labels = torch.tensor(LOGITS), torch.tensor([0, 2])
    exec(code, {"logits": logits, "labels": labels})
    (file,) = tmp_path.iterdir()
    scores = read_scores(file)
    np.testing.assert_array_equal(scores.values, LOGITS)
    assert scores.labels.tolist() == [0, 2]
    assert scores.classes == ("cat", "dog", "fox")

"""The files of a table."""

from __future__ import annotations

import pytest

from shiftcal.errors import FileError, InputError
from shiftcal.report.tables import (
    Cell,
    Column,
    Row,
    Table,
    read_csv,
    to_csv,
    to_latex,
    to_markdown,
    write_table,
)

TABLE = Table("ECE", (Column("x", digits=1),), (Row("α", (Cell(0.15, 0.1, 0.2),)),))


def test_three_files_hold_what_the_writers_give(tmp_path):
    files = write_table(TABLE, tmp_path / "new" / "tables", "main-ece")
    assert [file.name for file in files] == ["main-ece.md", "main-ece.csv", "main-ece.tex"]
    markdown, csv, latex = (file.read_bytes().decode("utf-8") for file in files)
    assert markdown == to_markdown(TABLE)
    assert csv == to_csv(TABLE)
    assert latex == to_latex(TABLE, label="tab:main-ece")
    assert read_csv(files[1]) == {"label": ["α"], "x": [0.15], "x low": [0.1], "x high": [0.2]}
    assert sorted(tmp_path.rglob("*.tmp")) == []


def test_writing_again_replaces(tmp_path):
    write_table(Table("", TABLE.columns, ()), tmp_path, "t")
    files = write_table(TABLE, tmp_path, "t")
    assert read_csv(files[1])["x"] == [0.15]


@pytest.mark.parametrize("name", ["", "a/b", "../a", ".hidden", "a b", "50%"])
def test_a_name_that_is_none_for_a_file_is_refused_before_anything_is_made(tmp_path, name):
    with pytest.raises(InputError, match="name of a table must be of letters"):
        write_table(TABLE, tmp_path / "new", name)
    assert not (tmp_path / "new").exists()


def test_a_file_in_place_of_the_folder_is_told(tmp_path):
    (tmp_path / "taken").touch()
    with pytest.raises(FileError, match=r"folder .*taken of a table could not be made"):
        write_table(TABLE, tmp_path / "taken", "t")

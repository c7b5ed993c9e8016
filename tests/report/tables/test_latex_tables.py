r"""LaTeX of tables: compiled where LaTeX is installed, and read by a small parser everywhere.

The parser knows TeX's rules of balance (braces, environments, math) and of ``\\`` and ``&``;
it shares nothing with the writer.
"""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftcal.errors import InputError
from shiftcal.report.tables import Cell, Column, Row, Table, to_latex

TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[{}$&%#_^~\[\]]|\n|[^\\{}$&%#_^~\[\]\n]+", re.DOTALL)
PRINTS = {
    r"\textbackslash": "\\", r"\textasciitilde": "~", r"\textasciicircum": "^",
    r"\textless": "<", r"\textgreater": ">", r"\textbar": "|", r"\dots": "…",
    r"\pm": "±", r"\infty": "∞", r"\leq": "≤", r"\alpha": "α",
    r"\{": "{", r"\}": "}", r"\#": "#", r"\$": "$", r"\%": "%", r"\&": "&", r"\_": "_", r"\ ": " ",
}  # fmt: skip
RULES = (r"\toprule", r"\midrule", r"\bottomrule")


def check_balance(text):
    """Assert that braces, math and environments close in order, and nothing active is loose."""
    open_ = []
    for token in TOKEN.findall(text):
        if token == "{":
            open_.append("{")
        elif token == "}":
            assert open_.pop() == "{"
        elif token == "$" and open_[-1:] == ["$"]:
            open_.pop()
        elif token == "$":
            open_.append("$")
        assert token not in {"%", "#", "_", "~"}, f"{token} would not print"
        assert token != "^" or "$" in open_, "a power outside of math"
    assert open_ == []
    stack = []
    for what, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if what == "begin":
            stack.append(name)
        else:
            assert stack.pop() == name
    assert stack == []


def body(text):
    """Rows of the tabular as lists of source cells, rules left out."""
    inside = re.search(r"\\begin\{tabular\}\{[lr]+\}(.*)\\end\{tabular\}", text, re.DOTALL)[1]
    rows, row, cell, depth = [], [], "", 0
    for token in TOKEN.findall(inside):
        depth += (token == "{") - (token == "}")
        if token == "&" and depth == 0:
            row.append(cell.strip())
            cell = ""
        elif token == r"\\":
            rows.append([*row, cell.strip()])
            row, cell = [], ""
        elif token not in RULES and token != "\n":
            # What stands first after \\ or a rule must not be its optional argument.
            assert cell.strip() or row or token.strip()[:1] not in {"[", "*"}
            cell += token
    assert cell.strip() == ""
    return rows


def shown(source):
    """What a cell prints, one character for each command of PRINTS."""
    text = ""
    for token in TOKEN.findall(source):
        if token in PRINTS:
            text += PRINTS[token]
        elif token in {"{", "}"}:
            text += "\0"  # parts ligatures
        elif token not in {"$", r"\textbf", r"\mathbf"}:
            text += token
    return text


def printed_text(source):
    text = shown(source).replace("``", "“")
    text = text.replace("---", "—").replace("--", "–").replace("''", '"')
    return " ".join(text.replace("\0", "").split())


NATURAL = Table(
    "Shifts & 100% of them",
    (
        Column("clean", unit="%", lower_is_better=True),
        Column("matched", unit="%", group="ImageNet-V2", lower_is_better=True),
        Column("top", unit="%", group="ImageNet-V2", lower_is_better=True),
        Column("remark"),
    ),
    (
        Row("[TS]", (Cell(4.444, 4.32, 4.568), Cell(-12.0, -12.5, -10.5), Cell(3.0), Cell("a_b"))),
        Row("*SAC", (Cell(2.0), Cell(None), Cell(3.0), Cell(None)), rule_before=True),
    ),
    note="Mean ± 95 %, p ≤ 0.05.",
    corner="Method",
).marked()


def test_a_table_prints_as_written_here():
    assert to_latex(NATURAL, label="tab:natural") == "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            r"\caption{Shifts \& 100\% of them}\label{tab:natural}",
            r"\begin{tabular}{lrrrl}",
            r"\toprule",
            r" &  & \multicolumn{2}{c}{ImageNet-V2} &  \\",
            r"\cmidrule(lr){3-4}",
            r"Method & clean (\%) & matched (\%) & top (\%) & remark \\",
            r"\midrule",
            r"{[}TS] & $4.44 \pm 0.12$ & $\mathbf{-12.00}\ [-12.50, -10.50]$ & $\mathbf{3.00}$"
            r" & a\_b \\",
            r"\midrule",
            r"{*}SAC & $\mathbf{2.00}$ & -- & $\mathbf{3.00}$ & -- \\",
            r"\bottomrule",
            r"\end{tabular}",
            r"\par\smallskip{\footnotesize Mean $\pm$ 95 \%, p $\leq$ 0.05.\par}",
            r"\end{table}",
            "",
        ]
    )


def test_the_parser_finds_the_structure_it_should():
    text = to_latex(NATURAL)
    check_balance(text)
    rows = body(text)
    spanned = sum(int(count) - 1 for count in re.findall(r"\\multicolumn\{(\d+)\}", text))
    assert len(rows[0]) + spanned == 5
    assert [len(row) for row in rows[1:]] == [5, 5, 5]
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == 1


def test_the_parser_refuses_what_is_broken():
    broken = [r"a_b", r"\textbf{a", r"$a", r"50%", r"\begin{table}\end{tabular}"]
    for text in broken:
        with pytest.raises((AssertionError, IndexError)):
            check_balance(text)


@settings(max_examples=200)
@given(st.text("\\{}#$%&_~^<>|[]*`'\"-ab1 \n…≤α–—±", max_size=14))
def test_every_text_prints_as_it_is(word):
    table = Table(
        word,
        (Column("x"), Column("y", group=word or "g")),
        (Row(word, (Cell(word), Cell(1.0))),),
        note=word,
    )
    text = to_latex(table)
    check_balance(text)
    row = body(text)[-1]
    expected = " ".join(word.split())
    assert [printed_text(source) for source in row[:2]] == [expected, expected]


def test_without_title_label_and_note_it_is_a_bare_tabular():
    table = Table("", (Column("x"),), (Row("a", (Cell(1.0),)),))
    text = to_latex(table)
    assert text.startswith(r"\begin{tabular}{lr}")
    assert "cmidrule" not in text
    assert r"\begin{table}" in to_latex(table, label="tab:x")


def test_a_caption_of_ones_own_replaces_the_title():
    table = Table("title", (Column("x"),), ())
    assert r"\caption{title}" in to_latex(table)
    assert r"\caption{A \& B}" in to_latex(table, caption="A & B")
    assert "caption" not in to_latex(table, caption="")


def test_a_rule_before_the_first_row_is_the_one_of_the_header():
    table = Table("", (Column("x"),), (Row("a", (Cell(1.0),), rule_before=True),))
    assert to_latex(table).count(r"\midrule") == 1


def test_infinite_numbers_print_as_infinity():
    rows = (Row("a", (Cell(float("inf")),)), Row("b", (Cell(1.0, -float("inf"), float("inf")),)))
    text = to_latex(Table("", (Column("x"),), rows))
    assert r"$\infty$" in text
    assert r"$1.00 \pm \infty$" in text


@pytest.mark.parametrize("label", ["tab:a%b", "a b", "{x}", ":x"])
def test_a_label_latex_cannot_take_is_refused(label):
    with pytest.raises(InputError, match="label must be of letters"):
        to_latex(NATURAL, label=label)


@pytest.mark.skipif(
    not (shutil.which("pdflatex") or shutil.which("tectonic")), reason="LaTeX is not installed"
)
@pytest.mark.slow
def test_it_compiles(tmp_path):
    all_ascii = "".join(map(chr, range(32, 127)))
    nasty = Table(all_ascii, (Column(all_ascii, group="g"),), (Row(all_ascii, (Cell(1.0),)),))
    source = "\n".join(
        [
            r"\documentclass{article}\usepackage{booktabs}\begin{document}",
            to_latex(NATURAL, label="tab:natural"),
            to_latex(nasty),
            r"\end{document}",
        ]
    )
    (tmp_path / "page.tex").write_text(source, encoding="utf-8")
    command = (
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
        if shutil.which("pdflatex")
        else ["tectonic", "page.tex"]
    )
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_a_range_is_printed_by_its_ends_however_even_it_is():
    row = Row("a", (Cell(6.0, 4.0, 8.0, by_ends=True), Cell(6.0, 4.0, 8.0)))
    text = to_latex(Table("", (Column("range"), Column("interval")), (row,)))
    assert r"$6.00\ [4.00, 8.00]$" in text
    assert r"$6.00 \pm 2.00$" in text

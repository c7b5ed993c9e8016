"""Tables: numbers with their intervals in, markdown, CSV and LaTeX out."""

from shiftcal.report.tables.csv import read_csv, to_csv
from shiftcal.report.tables.latex import to_latex
from shiftcal.report.tables.markdown import to_markdown
from shiftcal.report.tables.table import Cell, Column, Row, Table
from shiftcal.report.tables.write import write_table

__all__ = [
    "Cell",
    "Column",
    "Row",
    "Table",
    "read_csv",
    "to_csv",
    "to_latex",
    "to_markdown",
    "write_table",
]

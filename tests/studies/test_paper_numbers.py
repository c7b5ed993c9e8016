"""The paper's numbers, as its own text prints them."""

from __future__ import annotations

import pytest

from shiftcal.studies.paper import CLAIMS, METHODS, TABLE_2, claims_of, published

COLUMNS = ("imagenet-v2-mf", "imagenet-v2-thr", "imagenet-v2-ti", "imagenet-sketch")
# Rows as printed.
PRINTED = """
Vanilla 8.77 4.88 3.23 22.29
TS 4.81 2.49 1.87 16.09
CPCS 5.29 3.26 5.85 38.79
TransCal 12.26 4.43 1.99 52.24
SAC 4.44 2.49 1.86 10.71
STS 4.71 2.39 1.90 15.86
"""


def test_table_2_has_the_rows_of_the_paper():
    found = [
        " ".join([label, *(f"{TABLE_2[column].ece[method]:.2f}" for column in COLUMNS)])
        for method, label in METHODS.items()
    ]
    assert found == PRINTED.split("\n")[1:-1]


def test_the_best_of_every_column_is_what_the_paper_prints_bold():
    best = {column: min(TABLE_2[column].ece, key=TABLE_2[column].ece.get) for column in COLUMNS}
    assert list(best.values()) == ["sac", "sts", "sac", "sac"]


@pytest.mark.parametrize(
    ("column", "variant", "method", "expected"),
    [
        ("imagenet-v2-mf", "sac", "sac", 4.44),
        ("imagenet-v2-mf", "sac-ks", "sac", None),
        ("imagenet-v2-mf", "transcal-free", "transcal", 12.26),
        ("imagenet-v2-mf", "oracle", "oracle", None),
        ("another", "sac", "sac", None),
        (None, "sac", "sac", None),
    ],
)
def test_the_papers_number_is_given_for_the_papers_methods_only(column, variant, method, expected):
    assert published(column, variant, method) == expected


def test_every_study_of_the_paper_has_a_claim_that_says_where_it_stands():
    studies = {
        "ablation", "corruption-choice", "distances", "natural", "peek", "synthetic",
        "why-it-works",
    }  # fmt: skip
    assert {claim.study for claim in CLAIMS} == studies
    assert all(claim.where and claim.text.endswith(".") for claim in CLAIMS)
    assert claims_of("peek")[0].text.startswith("100 random samples")


def test_what_the_paper_says_of_one_example_is_not_made_a_rule():
    (claim,) = claims_of("why-it-works")
    assert "In the one example" in claim.text
    assert "typically" in claim.text

"""Facts of reports, made once: labelled, unlabelled, and with hostile names."""

from __future__ import annotations

import functools

import numpy as np
from digits_bank import digits_bank, digits_target
from ladder_data import STEPS, draw

from shiftcal import Scores, SurrogateBank, SurrogateSet
from shiftcal.report.facts import Judging, Provenance, make_facts

JUDGING = Judging(n_resamples=60)
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "\"quoted\" 'twice' & <!-- so -->",
    "\u05e9\u05dc\u05d5\u05dd \u0627\u0644\u0639\u0631\u0628\u064a\u0629",
    "over\u202eridden\x07{{ 7 * 7 }}",
    "long" * 400,
)


@functools.cache
def labelled():
    """Of scikit-learn's digits under noise, with labels."""
    return make_facts(digits_bank(), digits_target(), judging=JUDGING, provenance=PROVENANCE)


@functools.cache
def unlabelled():
    """The same without."""
    target = digits_target(labelled=False)
    return make_facts(digits_bank(), target, method="sac", judging=JUDGING, provenance=PROVENANCE)


@functools.cache
def hostile():
    """A small ladder whose names, of all kinds, are hostile; with images."""
    sets = []
    for j, strength in enumerate((STEPS[0], STEPS[2], STEPS[4])):
        logits, labels = draw(300, strength, seed=11)
        sets.append(SurrogateSet(logits, labels, HOSTILE[j], severity=j, corruption=HOSTILE[0]))
    logits, labels = draw(400, STEPS[3], seed=5)
    target = Scores(
        logits,
        labels=labels,
        classes=HOSTILE,
        ids=np.array([f"{HOSTILE[1]} {i}" for i in range(400)]),
        source="folder/</title><script>alert(3)</script>.npz",
    )
    provenance = Provenance(command=f"shiftcal report {HOSTILE[1]}", files={HOSTILE[0]: "00"})
    return make_facts(
        SurrogateBank(sets, classes=HOSTILE),
        target,
        title=HOSTILE[1],
        judging=JUDGING,
        provenance=provenance,
    )


PROVENANCE = Provenance(
    date="2024-05-31",
    command="shiftcal report --bank bank --target target.npz -o report.html",
    usage="shiftcal fit --bank bank -o calibration.json",
    files={"bank/bank.json": "ab" * 32},
)

"""What is said of domain adaptation follows from the numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from adaptation_records import evaluated, everywhere, facts, plan, results

from shiftcal.studies.adapting.paper import papers_variants
from shiftcal.studies.adapting.plan import DomainPlan, TrainerPlan
from shiftcal.studies.adapting.remarks import remarks
from shiftcal.studies.adapting.results import Failure
from shiftcal.studies.adapting.sureness import blindness
from shiftcal.studies.plan.plan import MethodPlan

LOWEST = {"source-only": "ts", "dan": "sac", "cdan": "transcal"}
ORDER = {name: i for i, name in enumerate(("sts", "sac", "ts", "vanilla", "cpcs", "transcal"))}


def ece(trainer, task, seed, method):
    """STS, SAC, TS and so on, with a seed's own noise; the oracle is far below all."""
    return 0.001 * seed + (0.01 if method == "oracle" else 0.1 + 0.02 * ORDER[method])


def said(found, start):
    """The one remark that begins so."""
    (sentence,) = (remark for remark in remarks(found) if remark.startswith(start))
    return sentence


def test_adaptation_is_compared_with_training_on_the_source_alone():
    def right(trainer, task, seed, method):
        gain = {"source-only": 0.0, "dan": -0.01, "cdan": 0.1}[trainer]
        return 0.5 + gain + 0.001 * seed * (trainer == "cdan")

    sentence = said(results(everywhere(plan(), accuracy=right)), "Adaptation beats")
    assert "(50.0 % right on the target)" in sentence
    assert "with 1 of 2 trainers, with 1 clearly" in sentence
    assert "DAN -1.00 ± 0.00 points" in sentence
    assert "CDAN +10.05 ±" in sentence
    alone = plan(trainers=(TrainerPlan("cdan", "CDAN"),))
    without = results(everywhere(alone, accuracy=right), trainers=alone.trainers)
    assert not [each for each in remarks(without) if each.startswith("Adaptation beats")]


def test_methods_are_ranked_over_trainers_that_adapt():
    def other(trainer, task, seed, method):
        return 0.9 if trainer == "source-only" else ece(trainer, task, seed, method)

    sentence = said(results(everywhere(plan(), ece=other)), "Mean ECE")
    assert sentence.startswith("Mean ECE with 2 trainers over 2 tasks, lowest first: Oracle 1.05 %")
    assert sentence.index("STS 10.05") < sentence.index("SAC 12.05") < sentence.index("TS 14.05")


@pytest.mark.parametrize(
    ("wins", "held"),
    [({"dan": 2, "cdan": 1}, "holds"), ({"dan": 0, "cdan": 1}, "holds partly"), ({}, "does not")],
)
def test_on_how_many_tasks_sts_is_the_best(wins, held):
    tasks = ["art_to_clipart", "art_to_product"]

    def number(trainer, task, seed, method):
        best = tasks.index(task) < wins.get(trainer, 0)
        return 0.05 if method == "sts" and best else 0.1 if method != "sts" else 0.2

    found = results(everywhere(plan(), ece=number))
    sentence = said(found, "The paper's finding that STS is the best on half of the tasks")
    assert f"{held}" in sentence
    told = ", ".join(f"{name.upper()} {wins.get(name, 0)}" for name in ("dan", "cdan"))
    assert sentence.endswith(f"lowest mean ECE of the paper's methods on: {told}.")


@pytest.mark.parametrize(
    ("swap", "held", "told"),
    [
        ({}, "holds", "of its methods the lowest is STS, the next SAC"),
        ({"sac": "ts", "ts": "sac"}, "holds partly", "the lowest is STS, the next TS"),
        ({"sts": "vanilla", "vanilla": "sts"}, "holds partly", "the lowest is Vanilla"),
        ({"sts": "cpcs", "cpcs": "sts", "sac": "ts", "ts": "sac"}, "does not hold", "is CPCS"),
    ],
)
def test_the_order_of_the_papers_table_4_is_put_to_the_test(swap, held, told):
    def number(trainer, task, seed, method):
        return ece(trainer, task, seed, swap.get(method, method))

    sentence = said(
        results(everywhere(plan(), ece=number)), "The paper's finding that STS has the lowest ECE"
    )
    assert f"trainers) {held} here" in sentence
    assert told in sentence


FREE = MethodPlan("transcal", "TransCal free", {"reading": "free"})
KS = MethodPlan("sac", "SAC, KS", {"distance": "ks"})


def test_the_papers_findings_are_judged_among_the_papers_methods():
    the_plan = plan()
    more = (*the_plan.methods[:3], FREE, KS, *the_plan.methods[3:])
    records = everywhere(the_plan, ece=ece)
    # Far below all others, and no methods of the paper's.
    records += [
        replace(record, variant=variant, label=label, ece=0.001)
        for record in records
        if record.variant == "ts"
        for variant, label in (("transcal-free", FREE.label), ("sac-ks", KS.label))
    ]
    found = results(records, methods=more)
    sentence = said(found, "The paper's finding that STS is the best on half of the tasks")
    assert "Office-Home) holds here" in sentence
    assert sentence.endswith("methods on: DAN 2, CDAN 2.")
    sentence = said(found, "The paper's finding that STS has the lowest ECE")
    assert "of its methods the lowest is STS, the next SAC." in sentence
    # What is lowest of all is still told.
    assert "DAN TransCal free 0.10 %" in said(found, "The lowest mean ECE")


def test_of_several_readings_the_published_one_is_the_papers():
    plain = MethodPlan("transcal", "TransCal")
    assert papers_variants([FREE, KS, plain, MethodPlan("oracle", "Oracle")]) == ["transcal"]
    assert papers_variants([FREE, KS]) == ["transcal-free"]


def network(trainer, chosen, seed=0, **numbers):
    """SAC's record of a network, and its facts."""
    told = {"trainer": trainer, "seed": seed}
    return evaluated(method="sac", chosen=chosen, **told), facts(**told, **numbers)


@pytest.mark.parametrize(
    ("chosen", "held"),
    [
        (("clean", "clean", "clean"), "holds"),
        (("clean", "pixelate-1", "pixelate-1"), "holds partly"),
        (("pixelate-1", "pixelate-2", "pixelate-1"), "does not hold"),
    ],
)
def test_whether_sac_sees_networks_that_are_too_sure_on_the_target(chosen, held):
    made = [network("cdan", name, seed) for seed, name in enumerate(chosen)]
    # Not too sure, and so not counted.
    made += [network("dan", "clean", target_accuracy=0.91)]
    made += [network("source-only", "pixelate-5")]
    records, known = zip(*made, strict=True)
    first, second = blindness(results(records, facts=known))
    clean = chosen.count("clean")
    assert f"with adapted networks in {clean + 1} of 4 evaluations" in first
    assert "without adaptation in 0 of 1 evaluations" in first
    assert f"adaptation; that {held} here." in second
    assert f"It chose the clean set for {clean} of the adapted" in second
    assert "3 of 4. These are right on 90.0 % of the source with a mean confidence of 95.0 %" in (
        second
    )
    assert second.endswith("and on 60.0 % of the target with 95.0 %.")


def test_a_network_that_is_not_sure_enough_on_the_source_need_not_be_too_sure_on_the_target():
    record, known = network(
        "cdan", "clean", source_accuracy=0.9, source_confidence=0.6,
        target_accuracy=0.7, target_confidence=0.65,
    )  # fmt: skip
    assert known.overconfidence == pytest.approx(-0.05)
    _, second = blindness(results([record], facts=[known]))
    assert second.startswith("No adapted network is too sure on the target by 5 points more")


def test_ours_and_the_papers_means_are_told_if_all_tasks_are_there():
    the_plan = plan(
        paper="visda",
        domains=(DomainPlan("s", "S", "s", (("s",),)), DomainPlan("r", "R", "r", (("r",),))),
        tasks=(("s", "r"),),
    )
    same = {"paper": "visda", "domains": the_plan.domains, "tasks": the_plan.tasks}
    found = results(everywhere(the_plan, ece=ece), **same)
    sentence = said(found, "DAN, ours and the paper's mean ECE")
    assert "Vanilla 16.05 and 21.10 %" in sentence
    assert "STS 10.05 and 5.33 %" in sentence
    assert "Oracle" not in sentence
    assert said(found, "Ours differ from the paper's in") == (
        "Ours differ from the paper's in: the backbone net, which is frozen, recipe default."
    )
    assert any("with 2 trainers on one task" in each for each in remarks(found))


def test_trainings_that_diverged_are_told_first_with_the_reasons_of_some():
    failures = [
        Failure("art_to_product", "dan", seed, f"the training diverged: in step {seed}.")
        for seed in range(5)
    ]
    found = results(everywhere(plan(), ece=ece), failures=failures)
    first = remarks(found)[0]
    assert first.startswith("5 of 12 trainings diverged and are left out. DAN on A2P, seed 0: the")
    assert first.endswith("in step 2. And 2 more.")


def test_the_lowest_of_every_trainer_is_named_the_oracle_aside():
    def number(trainer, task, seed, method):
        return 0.0 if method == "oracle" else 0.01 + 0.1 * (method != LOWEST[trainer])

    sentence = said(results(everywhere(plan(), ece=number)), "The lowest mean ECE")
    assert sentence.endswith(
        "trainer by trainer: source only TS 1.00 %, DAN SAC 1.00 %, CDAN TransCal 1.00 %."
    )

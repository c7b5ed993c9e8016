"""A training from its beginning to its end."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import final

import pytest
import torch
import training_process
from torch.nn import functional
from training_process import Additive, Moments, data, network, same, settings, training, weights

from shiftcal.adaptation.base import Trainer
from shiftcal.adaptation.devices import cpu_threads
from shiftcal.adaptation.feeds.arrays import ArrayFeed
from shiftcal.adaptation.feeds.base import Feed
from shiftcal.adaptation.training import ledger
from shiftcal.adaptation.training.history import read_history
from shiftcal.adaptation.training.loop import Course, train
from shiftcal.adaptation.training.randomness import seeded
from shiftcal.errors import FitError, InputError


@pytest.fixture(autouse=True)
def one_thread():
    with cpu_threads(1):
        yield


@pytest.mark.parametrize("kind", ["features", "images"])
def test_weights_are_those_of_a_loop_written_by_hand(tmp_path, kind):
    trainer = Moments(dropout=0.0, trade_off=0.3)
    ours, done = training(tmp_path, kind=kind, trainer=trainer)
    assert done.steps == done.selected_step == 60
    assert done.resumed_at == 0
    assert done.images_per_second > 0

    theirs = network(kind, trainer)
    named = list(theirs.named_parameters())
    backbone = [p for name, p in named if "backbone" in name]
    added = [p for name, p in named if "backbone" not in name]
    groups = [{"params": added, "lr": 1.0}, {"params": backbone, "lr": 0.1}]
    sgd = torch.optim.SGD(
        groups[: 1 + bool(backbone)], momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    falling = torch.optim.lr_scheduler.LambdaLR(sgd, lambda t: 0.05 * (1 + 3e-4 * t) ** -0.75)
    for batch in ArrayFeed(*data(kind), batch_size=8, seed=3).batches(0, 60):
        sgd.zero_grad()
        both = theirs.classifier.both(torch.cat([batch.source, batch.target]))
        loss = functional.cross_entropy(both.logits[:8], batch.labels)
        seen = theirs.extra(both.features)
        loss = loss + 0.3 * (seen[:8].mean(0) - seen[8:].mean(0)).square().sum()
        loss.backward()
        sgd.step()
        falling.step()
    for name, tensor in weights(theirs).items():
        # Torch's kinds of descent round differently, some 1e-7 a step.
        torch.testing.assert_close(weights(ours)[name], tensor, atol=2e-5, rtol=2e-5)


def test_two_trainings_are_equal_to_the_last_bit_and_another_seed_is_not(tmp_path):
    one, _ = training(tmp_path / "one")
    two, _ = training(tmp_path / "two")
    other, _ = training(tmp_path / "other", seed=4)  # of dropout alone
    assert same(one, two)
    assert not same(one, other)


def test_the_network_learns_and_ends_in_evaluation_mode(tmp_path):
    objective, done = training(tmp_path, changes={"iterations": 200})
    source, labels, _ = data("features")
    accuracy = (objective.classifier(torch.from_numpy(source)).argmax(1).numpy() == labels).mean()
    assert accuracy > 0.8
    assert not any(module.training for module in objective.modules())
    rows = read_history(tmp_path)
    assert rows[-1].classification < 0.8 * rows[0].classification
    assert done.losses.step == 200


def test_a_trainer_that_looks_at_no_target_needs_none(tmp_path):
    @final
    @dataclass(frozen=True, kw_only=True)
    class Plain(Trainer):
        label, adapts = "Plain", False

        def transfer(self, source, target, extra, step):
            raise AssertionError

    trainer = Plain()
    feed = ArrayFeed(*data("features")[:2], batch_size=8, seed=3)
    course = Course(device="cpu")
    done = train(
        network("features", trainer), feed, settings(iterations=5), tmp_path, course, identity={}
    )
    assert done.losses.transfer == 0
    assert done.losses.total == done.losses.classification


def test_random_numbers_of_the_caller_are_left_alone(tmp_path):
    torch.default_generator.manual_seed(1)
    before = torch.get_rng_state()
    training(tmp_path)
    with seeded(5):
        first = torch.rand(3)
    assert torch.equal(torch.get_rng_state(), before)
    with seeded(5):
        assert torch.equal(torch.rand(3), first)
    with seeded(6):
        assert not torch.equal(torch.rand(3), first)


def test_dropout_is_a_function_of_the_iteration(tmp_path):
    masks = {}

    def draw(step):
        torch.rand(7)

    @final
    @dataclass(frozen=True, kw_only=True)
    class Watching(Trainer):
        label = "Watching"

        def transfer(self, source, target, extra, step):
            masks.setdefault(step, []).append(torch.rand(4).tolist())
            return source.features.sum() * 0

    for folder, disturbed in (("one", False), ("two", True)):
        training(
            tmp_path / folder,
            trainer=Watching(),
            before=draw if disturbed else None,
            changes={"iterations": 30},
        )
    assert all(one == two for one, two in masks.values())
    assert len({tuple(one) for one, _ in masks.values()}) == 30


def test_the_best_on_the_source_is_selected_and_the_latest_of_equals(tmp_path):
    # After 3, 6 ... 48 and 50 iterations: the best are those of 30 and 33.
    accuracies = iter([0.5] * 9 + [0.9, 0.9] + [0.4] * 6)
    asked = []

    def validate(classifier):
        assert not classifier.training
        assert not torch.is_grad_enabled()
        asked.append(classifier)
        return next(accuracies)

    ours, done = training(
        tmp_path / "ours",
        validate=validate,
        select="source-validation",
        checkpoint_every=16,
        changes={"iterations": 50},
    )
    assert len(asked) == 17
    assert done.selected_step == 33
    until, _ = training(tmp_path / "until", changes={"iterations": 33})
    assert same(ours, until)
    kept = sorted(path.name for path in (tmp_path / "ours").glob("*.safetensors"))
    assert kept == ["checkpoint-33.safetensors", "checkpoint-50.safetensors"]
    measured = {row.step: row.source_validation for row in read_history(tmp_path / "ours")}
    assert [measured[step] for step in (3, 16, 30, 33, 50)] == [0.5, None, 0.9, 0.9, 0.4]
    again, done = training(
        tmp_path / "ours",
        validate=validate,
        select="source-validation",
        checkpoint_every=9,  # which decides nothing
        changes={"iterations": 50},
    )
    assert done.selected_step == 33
    assert done.resumed_at == 50
    assert same(again, until)


@pytest.mark.parametrize(("iterations", "times"), [(7, 7), (20, 20), (39, 20), (1000, 20)])
def test_the_accuracy_is_measured_some_twenty_times(iterations, times):
    every = ledger.validate_every(settings(iterations=iterations))
    assert -(-iterations // every) == times


def test_validation_changes_nothing_about_the_training(tmp_path):
    def validate(classifier):
        torch.rand(5)
        classifier(torch.rand(9, 7))
        return 0.5

    plain, _ = training(tmp_path / "plain")
    watched, done = training(tmp_path / "watched", validate=validate)
    assert same(plain, watched)
    assert done.selected_step == 60
    assert done.losses.source_validation == 0.5


def test_a_finished_training_is_not_done_again(tmp_path):
    one, first = training(tmp_path)
    two, second = training(tmp_path, before=pytest.fail)
    assert same(one, two)
    assert second.resumed_at == 60
    assert second.losses == first.losses
    assert second.images_per_second == 0


@pytest.mark.parametrize("loss", ["classification", "transfer"])
def test_a_loss_that_is_not_finite_is_told_with_its_step(tmp_path, loss, monkeypatch):
    @final
    @dataclass(frozen=True, kw_only=True)
    class Breaking(Trainer):
        label = "Breaking"

        def transfer(self, source, target, extra, step):
            wrong = float("nan") if step == 36 and loss == "transfer" else 1.0
            return source.features.mean() * wrong

    def before(step):
        if step == 36 and loss == "classification":
            # Its weights are broken by the step before, so that logits are NaN in this.
            for p in watched.parameters():
                p.data.fill_(float("inf"))

    trainer = Breaking()
    watched = network("features", trainer)
    feed = training_process.Watched(ArrayFeed(*data("features"), batch_size=8, seed=3), before)
    course = Course(seed=3, device="cpu", checkpoint_every=16)
    monkeypatch.setattr(ledger, "_SHARE", float("inf"))
    with pytest.raises(FitError) as caught:
        train(watched, feed, settings(), tmp_path, course, identity={})
    message = str(caught.value)
    assert "in step 37 of 60 the loss is nan" in message
    assert f"{loss} nan" in message
    assert f"learning rate {0.05 * (1 + 3e-4 * 36) ** -0.75:.3g}" in message
    assert f"The checkpoint of step 32 is kept in {tmp_path}." in message
    assert "smaller lr or trade_off" in message
    assert (tmp_path / "checkpoint-32.safetensors").exists()
    assert len(list(tmp_path.glob("*.safetensors"))) == 1


def test_weights_that_are_not_finite_are_never_kept(tmp_path):
    @final
    @dataclass(frozen=True, kw_only=True)
    class Overflowing(Trainer):
        label = "Overflowing"

        def extra(self, width, n_classes):
            return torch.nn.Linear(1, 1)  # nothing depends on it

        def transfer(self, source, target, extra, step):
            if step == 5:
                extra.weight.data.fill_(float("inf"))
            return source.features.mean()

    with pytest.raises(
        FitError, match=r"after step 8 of 60 extra\.weight holds NaN or infinite.*no checkpoint yet"
    ):
        training(tmp_path, trainer=Overflowing())
    assert not list(tmp_path.glob("checkpoint*"))


def test_a_feed_that_ends_early_is_told(tmp_path):
    class Short(Feed):
        def batches(self, first, last):
            yield from ArrayFeed(*data("features"), batch_size=8, seed=3).batches(first, 23)

    with pytest.raises(InputError, match="a batch for each of 60 steps; it ended after 23"):
        train(
            network("features", Moments()),
            Short(),
            settings(),
            tmp_path,
            Course(device="cpu"),
            identity={},
        )


def test_a_training_may_run_in_another_thread(tmp_path):
    done = []
    thread = threading.Thread(target=lambda: done.append(training(tmp_path / "there")))
    thread.start()
    thread.join(60)
    here, _ = training(tmp_path / "here")
    assert same(done[0][0], here)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_mixed_precision_trains_and_goes_on_to_the_same_weights(tmp_path, precision):
    def stop(step):
        if step == 29:
            raise RuntimeError("stop")

    options = {"precision": precision, "trainer": Additive()}
    whole, _ = training(tmp_path / "whole", **options)
    rows = read_history(tmp_path / "whole")
    assert rows[-1].total < 0.8 * rows[0].total
    with pytest.raises(RuntimeError, match="stop"):
        training(tmp_path / "parts", before=stop, **options)
    parts, done = training(tmp_path / "parts", **options)
    assert done.resumed_at == 24
    assert same(whole, parts)
    exact, _ = training(tmp_path / "exact", trainer=Additive())
    assert not same(exact, whole)
    if precision == "bfloat16":  # in float16 the first steps are left out, till the scale is found
        for name, tensor in weights(exact).items():
            # Eight bits of mantissa, sixty steps.
            torch.testing.assert_close(weights(whole)[name], tensor, atol=0.1, rtol=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "seed must be a whole number"),
        ({"checkpoint_every": 0}, "checkpoint_every must be a whole number"),
        ({"checkpoint_seconds": 0}, "checkpoint_seconds must be a number above 0"),
        ({"select": "target"}, "select must be one of 'last', 'source-validation'; got 'target'"),
        ({"precision": "half"}, "precision must be one of 'bfloat16', 'float16'; got 'half'"),
    ],
)
def test_a_course_that_cannot_be_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        Course(**options)


def test_there_must_be_something_to_select_by(tmp_path):
    with pytest.raises(InputError, match=r"select='source-validation' needs .*pass validate"):
        training(tmp_path, select="source-validation")

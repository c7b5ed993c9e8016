"""The limit on numpy's threads holds as long as anybody needs it, and no longer."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from shiftcal.datasets import as_image_set
from shiftcal.models import as_model
from shiftcal.scoring import LocalEngine, score
from shiftcal.scoring.work import one_blas_thread


def threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if threads() != {2}:
            pytest.skip("this numpy's BLAS has no threads")
        yield


def test_the_limit_is_lifted_by_the_last_who_leaves(two_threads):
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    assert threads() == {1}
    first.__exit__(None, None, None)
    assert threads() == {1}
    second.__exit__(None, None, None)
    assert threads() == {2}


def linear(batch):
    weights = np.random.default_rng(1).standard_normal((3072, 10)).astype(np.float32)
    return batch.reshape(len(batch), -1) @ weights


def test_float_products_are_the_same_to_the_bit_with_one_worker_and_with_two(two_threads):
    images = np.random.default_rng(0).integers(0, 256, (600, 32, 32, 3), np.uint8)
    model = as_model(linear, key="linear", batch_size=300)
    one = score(model, as_image_set(images), shard_size=300)
    two = score(model, as_image_set(images), shard_size=300, engine=LocalEngine(workers=2))
    np.testing.assert_array_equal(one.values, two.values)
    assert threads() == {2}

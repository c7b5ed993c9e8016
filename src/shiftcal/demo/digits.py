"""The digits that ship with scikit-learn, enlarged to pictures, and a small network."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Floats, Images
from shiftcal.datasets import as_image_set
from shiftcal.datasets.splits import calibration_split
from shiftcal.demo.subject import Subject, Target
from shiftcal.models import Model, as_model
from shiftcal.models._fingerprint import digest
from shiftcal.scoring.one_blas_thread import one_blas_thread

# Of 1,797 digits a third each; those left over are new.
TRAINED_ON, CALIBRATED_ON = 600, 598
_ENLARGED, _BRIGHTEST = 4, 16.0
_ROUNDS = 40
_CORRUPTIONS = ("brightness", "gaussian_noise", "impulse_noise", "motion_blur")
_TARGETS = (
    Target("fog", "new digits in fog, which the bank does not have", "fog", 1),
    Target("mixture", "a mixture: every second of them in fog", "fog", 1, mixture=True),
    Target("blur", "new digits, slightly blurred, where calibrating does harm", "gaussian_blur", 3),
)


class Network:
    """A trained network of scikit-learn as a function from pixels to logits and features.

    Args:
        classifier: The fitted ``MLPClassifier``.
    """

    def __init__(self, classifier: Any) -> None:
        self.weights = [np.asarray(w, np.float64) for w in classifier.coefs_]
        self.biases = [np.asarray(b, np.float64) for b in classifier.intercepts_]

    @property
    def key(self) -> str:
        """A digest of all weights."""
        layers = (*self.weights, *self.biases)
        return f"digits-{digest(np.ascontiguousarray(w).tobytes() for w in layers)[:32]}"

    def __call__(self, images: NDArray[Any]) -> tuple[Floats, Floats]:
        """Logits ``(n, 10)`` and what the last hidden layer gave ``(n, 64)``.

        Args:
            images: uint8 ``(n, 32, 32, 3)``, grey, so that one channel says all.
        """
        hidden = rows_of(images[..., 0])
        for weights, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = np.maximum(hidden @ weights + bias, 0.0)
        return hidden @ self.weights[-1] + self.biases[-1], hidden


def digits_subject() -> Subject:
    """The subject: a network of two hidden layers, trained on a third of the digits."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images, labels = enlarged(bunch.images), np.asarray(bunch.target, np.intp)
    train, rest = calibration_split(labels, n=TRAINED_ON)
    first, second = calibration_split(labels[rest], n=CALIBRATED_ON, seed=1)
    calibration, new = rest[first], rest[second]
    whole = as_image_set(images, labels=labels, classes=[str(i) for i in range(10)])
    return Subject(
        data="digits",
        things="digits",
        model=model_of(trained(images[train], labels[train])),
        made=f"a network trained on {len(train)} digits",
        calibration=whole.subset(calibration, name="digits to calibrate on"),
        new=images[new],
        new_labels=labels[new],
        train=whole.subset(train, name="digits trained on"),
        corruptions=_CORRUPTIONS,
        # Strokes four pixels wide bear more than photographs of 32 pixels do.
        table="imagenet",
        targets=_TARGETS,
        remark=(
            "An example, not a measurement: bank and targets were picked from several that were "
            "tried, with labels in sight; fog, since the network is far too sure in it, and the "
            "blur, since calibrating does harm there."
        ),
    )


def enlarged(images: NDArray[np.float64]) -> Images:
    """Digits ``(n, 8, 8)`` from 0 to 16 as grey pictures ``(n, 32, 32)``, bilinear."""
    from scipy.ndimage import zoom

    factors = (1, _ENLARGED, _ENLARGED)
    large = zoom(images * (255 / _BRIGHTEST), factors, order=1, mode="nearest", grid_mode=True)
    return np.clip(np.rint(large), 0, 255).astype(np.uint8)


def rows_of(images: Images) -> Floats:
    """Grey pictures as rows from 0 to 1, as the network takes them."""
    return np.asarray(images.reshape(len(images), -1), np.float64) / 255.0


def trained(images: Images, labels: NDArray[np.intp]) -> Network:
    """The network, the same whenever it is trained on one machine."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    classifier = MLPClassifier(
        (128, 64),
        learning_rate_init=0.003,
        batch_size=100,
        max_iter=_ROUNDS,
        tol=0.0,
        n_iter_no_change=_ROUNDS,
        random_state=0,
    )
    # Matrices this small are multiplied faster by one thread than by several.
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier.fit(rows_of(images), labels)
    return Network(classifier)


def model_of(network: Network) -> Model:
    """The network as a model that can be scored with, known by its weights."""
    return as_model(
        network, raw=True, key=network.key, classes=[str(i) for i in range(10)], batch_size=256
    )

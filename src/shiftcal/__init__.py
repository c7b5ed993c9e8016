"""Classifier confidences that hold when the data shifts, without labels.

The names below stand in the order of the data: images and their corruptions, models and what they
give for images, sets of labelled logits, the methods that learn from them and adapt to an
unlabelled target, the metrics that judge the result.
Nothing heavy is imported until it is used.
"""

from __future__ import annotations

from shiftcal.lazy import lazy

# Type checkers know this name; importing typing for it would take longer than all the rest.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from shiftcal import (
        adaptation,
        corruptions,
        datasets,
        errors,
        estimates,
        export,
        grouping,
        integrations,
        maps,
        methods,
        metrics,
        models,
        monitoring,
        plot,
        scoring,
        studies,
    )
    from shiftcal.corruptions import corrupt
    from shiftcal.demo import load_example
    from shiftcal.estimates import selective
    from shiftcal.export import CalibratedClassifier
    from shiftcal.grouping import GroupedCalibration
    from shiftcal.methods.realign import Realign
    from shiftcal.methods.rehearsal import Rehearsal
    from shiftcal.methods.sac import SAC
    from shiftcal.methods.simple import ACE, STS, TS, PseudoCal, Vanilla
    from shiftcal.methods.weighted import CPCS, ImportanceWeights, TransCal
    from shiftcal.metrics import (
        accuracy,
        aurc,
        bin_table,
        bootstrap,
        brier,
        classwise_ece,
        debiased_ece,
        ece,
        ks_error,
        mce,
        nll,
        smooth_ece,
        top1_brier,
    )
    from shiftcal.monitoring import Monitor
    from shiftcal.performance import Performance
    from shiftcal.persistence import load
    from shiftcal.scores import Scores, read_features, read_labels, read_scores, write_scores
    from shiftcal.scoring import ScoreStatistics, score
    from shiftcal.surrogates import SurrogateBank, SurrogateSet

__all__ = ["__version__", "corrupt", "load", "load_example", "score", "selective"]
__all__ += ["Scores", "read_features", "read_labels", "read_scores", "write_scores"]
__all__ += ["GroupedCalibration", "Monitor", "ScoreStatistics", "SurrogateBank", "SurrogateSet"]
__all__ += ["ACE", "CPCS", "SAC", "STS", "TS", "PseudoCal", "Realign", "Rehearsal", "TransCal"]
__all__ += ["Performance", "Vanilla"]
__all__ += ["ImportanceWeights", "accuracy", "aurc", "bin_table", "bootstrap", "brier", "ece"]
__all__ += ["classwise_ece", "debiased_ece", "ks_error", "mce", "nll", "smooth_ece", "top1_brier"]
__all__ += ["adaptation", "corruptions", "datasets", "errors", "estimates", "export", "grouping"]
__all__ += ["CalibratedClassifier", "integrations"]
__all__ += ["maps", "methods", "metrics", "models", "monitoring", "plot", "scoring", "studies"]

_get, __dir__ = lazy(
    __name__,
    {
        "corruptions": "corrupt",
        "demo": "load_example",
        "export": "CalibratedClassifier",
        "estimates": "selective",
        "scoring": "score ScoreStatistics",
        "scores": "Scores read_scores read_labels read_features write_scores",
        "surrogates": "SurrogateBank SurrogateSet",
        "methods.weighted": "ImportanceWeights CPCS TransCal",
        "methods.simple": "Vanilla TS STS ACE PseudoCal",
        "methods.sac": "SAC",
        "methods.realign": "Realign",
        "methods.rehearsal": "Rehearsal",
        "grouping": "GroupedCalibration",
        "monitoring": "Monitor",
        "performance": "Performance",
        "persistence": "load",
        "metrics": "accuracy aurc bin_table bootstrap brier classwise_ece debiased_ece ece "
        "ks_error mce nll smooth_ece top1_brier",
    },
    modules="adaptation corruptions datasets errors estimates export grouping integrations maps "
    "methods metrics models monitoring plot scoring studies",
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("shiftcal")
    return _get(name)

"""Area under the risk-coverage curve."""

from __future__ import annotations

from shiftcal.metrics.base import Facts, check_top1, metric
from shiftcal.numerics.binning.groups import tie_groups
from shiftcal.numerics.risk_coverage import area_under_risk


@metric(Facts(reads="top1"))
def aurc(confidence: object, correct: object) -> float:
    """Area under the risk-coverage curve: the mean error rate when only the surest are answered.

    ``1/n sum_{i=1}^n (errors among the i most confident) / i``. It judges how well confidence
    ranks the rows, not whether it is calibrated: any increasing change of the confidences leaves
    it as it is. Rows of equal confidence count with the mean over all their orders.

    Args:
        confidence: ``(n,)`` any confidence in [0, 1].
        correct: ``(n,)`` whether the predicted class was right.
    """
    return area_under_risk(tie_groups(*check_top1(confidence, correct)))

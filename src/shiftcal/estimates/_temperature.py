"""The temperature of the clean set, for estimators that calibrate first."""

from __future__ import annotations

import warnings

from shiftcal._checks import check_flag
from shiftcal.errors import FitWarning
from shiftcal.maps.temperature import Temperature
from shiftcal.surrogates import SurrogateBank


def clean_temperature(bank: SurrogateBank, *, calibrated: bool) -> float:
    """The temperature of least NLL on the clean set; 1 if nothing is to be calibrated."""
    if not check_flag(calibrated, name="calibrated"):
        return 1.0
    clean = bank.clean
    scaling = Temperature().fit_checked(clean.logits, clean.labels, None)
    if not scaling.status_.converged:
        # 1 here, 2 _fit, 3 AccuracyEstimator.fit, 4 the caller's line
        warnings.warn(f"{clean.name}: {scaling.status_.message}", FitWarning, stacklevel=4)
    return scaling.temperature_

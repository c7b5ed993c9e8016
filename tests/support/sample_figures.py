"""One small figure of every kind, with everything a figure of its kind can have."""

from __future__ import annotations

from shiftcal.report.figures import (
    Boxes,
    BoxSeries,
    CalibrationPlots,
    Densities,
    FigureData,
    Lines,
    Panel,
    Reliability,
    Series,
    Surrogate,
)


def lines(**changed: object) -> Lines:
    ts = Series(
        key="ts", label="TS", y=(1.5, None, 9.0), low=(1.0, None, 8.0), high=(2.0, None, 11.0)
    )
    sac = Series(key="sac", label="SAC", y=(1.25, 2.5, 4.0))
    numbers = Panel(x=(0.0, 1.0, 5.0), series=(ts, sac), x_label="severity", title="left")
    names = Panel(x=("a", "b", "c"), series=(sac,), x_label="map", title="right")
    given = {"panels": (numbers, names), "y_label": "ECE (%)", "title": "Two", "note": "A note."}
    return Lines(**{**given, **changed})


def boxes() -> Boxes:
    ts = BoxSeries(key="ts", label="TS", values=((1.0, 2.0, 3.0, 4.0, 50.0), (7.0,)))
    own = BoxSeries(key="own", label="my own", values=((5.0, 5.0), ()))
    return Boxes(groups=("0", "1"), series=(ts, own), x_label="severity", y_label="ECE (%)")


def densities() -> Densities:
    first = Surrogate(
        label="clean", density=(0.0, 1.0, 2.0), mean=0.75, accuracy=55.0, confidence=70.0, ece=15.5
    )
    second = Surrogate(
        label="pixelate 1",
        density=(0.5, 1.5, 1.0),
        mean=0.5,
        accuracy=55.0,
        confidence=56.0,
        ece=1.25,
        chosen=True,
    )
    return Densities(
        grid=(0.0, 0.5, 1.0),
        target=(0.25, 1.25, 1.5),
        target_mean=0.625,
        target_label="fog 2",
        surrogates=(first, second),
    )


def calibration() -> CalibrationPlots:
    vanilla = Reliability(
        key="vanilla",
        label="Vanilla",
        edges=(0.0, 0.25, 0.5, 1.0),
        accuracy=(None, 30.0, 60.0),
        confidence=(None, 40.0, 85.0),
        count=(0, 25, 75),
        ece=21.25,
    )
    ts = Reliability(
        key="ts",
        label="TS",
        edges=(0.0, 0.5, 1.0),
        accuracy=(30.0, 60.0),
        confidence=(35.0, 62.0),
        count=(50, 50),
        ece=3.5,
        temperature=1.5,
    )
    return CalibrationPlots(panels=(vanilla, ts))


def one_of_each() -> dict[str, FigureData]:
    made = (lines(), boxes(), densities(), calibration())
    return {figure.kind: figure for figure in made}

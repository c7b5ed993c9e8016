"""``shiftcal train``: labelled source and unlabelled target images in, an adapted network out."""

from __future__ import annotations

import shlex
from typing import Annotated, Literal

from typer import Option

from shiftcal.cli import inputs, options
from shiftcal.cli.output import Report, facts, stdout_kept_for_results
from shiftcal.errors import InputError

Images = Annotated[str, Option(metavar="PATH")]


def train(
    source: Images,
    target: Images,
    backbone: Annotated[str, Option(metavar="SPEC")],
    output: options.OutputFolder,
    method: Annotated[str, Option("--trainer", "--method", metavar="NAME")] = "cdan",
    frozen: bool = False,
    recipe: options.Name = None,
    set_: options.Settings = None,
    transform: Literal["default", "center-crop", "random-crop", "none"] | None = None,
    seed: options.Seed = 0,
    corruption: Annotated[str, Option(metavar="NAME")] = "pixelate",
    severity: options.Severities = "all",
    device: Annotated[str, Option(metavar="NAME")] = "auto",
    checkpoint_every: options.Count = 500,
    workers: Annotated[int, Option(metavar="N", min=0)] = 0,
    features: options.Folder = None,
) -> Report:
    """Adapt a network to unlabelled images. Resumes if run again.

    Example:
        shiftcal train --source photos/ --target sketches/ --backbone resnet50 -o run/

    Args:
        source: Labelled images: a folder of class folders, or NAME:PATH?option=value for a
            published data set (`shiftcal data list`).
        target: Images of the same classes. Labels, if any, are only used to evaluate.
        backbone: The backbone: resnet50, resnet101, digits-cnn, or a model as
            for `shiftcal bank`; with --frozen any with ?features_from=LAYER.
        output: Folder of the run.
        method: The trainer; `shiftcal list trainers` lists them and their recipes.
        frozen: Keep the backbone fixed: compute features once, then train heads on them.
        recipe: Settings for a data set, such as office-home or visda, or default. Default: frozen
            with --frozen, digits with digits-cnn, else default.
        set_: An option of the trainer or a setting of the training. Repeatable.
        transform: How training images are cropped; default: as in the recipe.
        seed: Seed of splits and everything else that is random.
        corruption: Corruption of the surrogate sets: a name, or module:function for your own.
        severity: One severity, several as 1,3 or 2-4, or all.
        device: As torch names it; auto is the GPU if there is one.
        checkpoint_every: Steps between checkpoints; one is also written every five minutes.
        workers: Processes that read training images, or with --frozen compute features.
        features: Folder of frozen features, to share between runs; default: inside the run's.
    """
    changes = inputs.parse_assignments(set_)
    severities = inputs.parse_severities(severity)
    for images in (source, target):
        inputs.refuse_inside(images, [output, features])
    with stdout_kept_for_results(), inputs.blaming_functions():
        from shiftcal.adaptation import adapt

        corruptions = inputs.choose_corruptions([corruption])
        if len(corruptions) > 1:
            raise InputError(f"--corruption must be one; got {len(corruptions)}.")
        adapted = adapt(
            source,
            target,
            output,
            trainer=method,
            backbone=backbone,
            frozen=frozen,
            recipe=recipe,
            changes=changes,
            transform=transform,
            seed=seed,
            corruption=corruptions[0],
            severities=severities or range(1, corruptions[0].severities + 1),
            device=device,
            checkpoint_every=checkpoint_every,
            workers=workers,
            features=features,
            reporting=inputs.reporting(),
        )
    about, last = adapted.document, adapted.history[-1]
    compare = ["shiftcal", "compare", "--target", str(output / "target.npz")]
    compare += ["--bank", str(output / "bank"), "--source-train", str(output / "source-train.npz")]
    names = ("recipe", "options", "settings", "seed", "frozen", "images")
    document = {
        "source": source,
        "target": target,
        "backbone": backbone,
        "run": output,
        "method": about["trainer"],
        **{name: about[name] for name in names},
        "steps": last.step,
        "losses": last._asdict(),
        "resumed_at": adapted.resumed_at,
        "finished_before": adapted.finished_before,
        "accuracy": about["accuracy"],
        "next": shlex.join(compare),
    }
    keys = ("method", "recipe", "backbone", "source", "target", "images", "steps", "resumed_at")
    more = ("finished_before", "losses", "accuracy", "run", "next")
    return Report(document, facts(document, *keys, *more))

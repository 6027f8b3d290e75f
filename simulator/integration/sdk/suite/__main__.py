"""Plays all scenes in a namespace and writes the table as JSON: python -m suite NAMESPACE FILE."""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path

from . import surface

surface.watch()  # before the scenes fill classes at their import

from . import builtin, events, initializers, jobs, logs, patches, reports, runtimes, trainers, waits  # noqa: E402
from .record import Table  # noqa: E402
from .stage import Stage, connect  # noqa: E402

SCENES = (
    runtimes.construct,
    runtimes.shipped,
    runtimes.packages,
    trainers.none,
    trainers.functions,
    trainers.every_field,
    trainers.misfits,
    builtin.lora,
    builtin.defaults,
    initializers.s3,
    initializers.cache,
    initializers.misfits,
    patches.metadata,
    patches.runtime_patch,
    patches.refused,
    jobs.listed,
    logs.running,
    logs.steps,
    logs.waiting,
    waits.completes,
    waits.fails,
    waits.gives_up,
    waits.resumed,
    events.too_large,
    events.behind,
    events.suspended,
    events.image,
    reports.progress,
    reports.slices,
    jobs.large,
)


def main(namespace: str, file: str, *only: str) -> None:
    """Play the scenes, or only those named."""
    table = Table()
    stage = Stage(connect(namespace), namespace, table)
    for scene in SCENES:
        name = f"{scene.__module__.rsplit('.', 1)[1]}.{scene.__name__}"
        if only and name not in only:
            continue
        began = time.monotonic()
        table.call(f"scene {name}", "played", partial(scene, stage), lambda _: "played")
        print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
    answer = table.as_dict() | {"version": version("kubeflow"), "missing": [] if only else surface.missing()}
    Path(file).write_text(json.dumps(answer, indent=1))


main(*sys.argv[1:])

"""Logs: of running, waiting and ended steps, of each kind of step, followed or not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kubeflow.trainer import CustomTrainer
from kubeflow.trainer.options import Name
from kubeflow.trainer.types.types import TrainJob

from .stage import Stage, run_for, train_nothing

HONEST = "one line that names its rank and node, and says that no program was started"


def _said(rank: int) -> Callable[[list[str]], str]:
    """Return what is said of a log of a rank."""

    def of(lines: list[str]) -> str:
        whole = len(lines) == 1 and lines[0].startswith(f"simulated: rank {rank} of ") and " on node " in lines[0]
        return HONEST if whole and lines[0].endswith("no program was started") else repr(lines)

    return of


def running(stage: Stage) -> None:
    """Read the logs of a job that runs, and follow one to its end."""
    name, client, call = "logged", stage.client, stage.table.call
    client.train(
        runtime="torch-distributed",
        trainer=CustomTrainer(func=train_nothing, num_nodes=2),
        options=[Name(name), run_for("8s")],
    )
    call(f"wait_for_job_status({name}, Running)", "Running", lambda: _runs(stage, name), lambda j: j.status)
    call(f"get_job_logs({name})", HONEST, lambda: list(client.get_job_logs(name=name)), _said(0))
    call(f"get_job_logs({name}, node-1)", HONEST, lambda: list(client.get_job_logs(name, step="node-1")), _said(1))
    call(f"get_job_logs({name}, follow)", HONEST, lambda: list(client.get_job_logs(name, follow=True)), _said(0))
    stage.ends(f"wait_for_job_status({name}) after its log ended", name)
    call(f"get_job_logs({name}) of an ended job", HONEST, lambda: list(client.get_job_logs(name)), _said(0))
    call(
        f"get_job_logs({name}, follow) of an ended job",
        HONEST,
        lambda: list(client.get_job_logs(name, follow=True)),
        _said(0),
    )
    call(f"get_job_logs({name}, node-9)", "no line", lambda: list(client.get_job_logs(name, "node-9")), _none)


def _runs(stage: Stage, name: str) -> TrainJob:
    """Wait until a job runs, and ask often."""
    return stage.client.wait_for_job_status(name, status={"Running"}, timeout=60, polling_interval=1)


def _none(lines: list[str]) -> str:
    """Return whether a log is empty."""
    return "no line" if not lines else repr(lines)


def _lines(stage: Stage, step: str) -> list[str]:
    """Return the log of a step of the job of LoRA."""
    return list(stage.client.get_job_logs("tune-lora", step))


def steps(stage: Stage) -> None:
    """Read the logs of initializers, and of an MPI launcher, which the SDK calls node-0."""
    for step in ("dataset-initializer", "model-initializer", "node-0"):
        stage.table.call(
            f"get_job_logs(tune-lora, {step})",
            HONEST,
            partial(_lines, stage, step),
            _said(0),
        )
    name = "function-deepspeed-distributed"
    stage.table.call(
        f"get_job_logs({name}) of its launcher", HONEST, lambda: list(stage.client.get_job_logs(name)), _said(0)
    )


def waiting(stage: Stage) -> None:
    """Read the log of a job that waits for room: there is none yet."""
    name = "unlogged"
    stage.client.train(
        trainer=CustomTrainer(func=train_nothing, num_nodes=300, resources_per_node={"gpu": 4}), options=[Name(name)]
    )
    stage.table.call(
        f"get_job_logs({name}) of a job that waits", "no line", lambda: list(stage.client.get_job_logs(name)), _none
    )
    stage.gone(name)

"""Waits: for each status, with callbacks and timeouts, and after a suspension."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kubeflow.trainer import CustomTrainer
from kubeflow.trainer.options import ActiveDeadlineSeconds, Name
from kubeflow.trainer.types.types import TrainJob

from .stage import Stage, eventually, run_for, status, train_nothing


def _train(stage: Stage, name: str, duration: str, *options: object) -> None:
    """Train on two nodes for a time."""
    stage.client.train(
        runtime="torch-distributed",
        trainer=CustomTrainer(func=train_nothing, num_nodes=2),
        options=[Name(name), run_for(duration), *options],
    )


def completes(stage: Stage) -> None:
    """Wait for Created, Running and Complete, and be called back at each look."""
    seen: list[str] = []
    _train(stage, "waited", "6s")
    call, wait = stage.table.call, stage.client.wait_for_job_status
    call(
        "wait_for_job_status(waited, Created or Running)",
        "Created or Running",
        lambda: wait("waited", {"Created", "Running"}),
        lambda job: "Created or Running" if job.status in {"Created", "Running"} else job.status,
    )
    call("wait_for_job_status(waited, Running)", "Running", lambda: wait(name="waited", status={"Running"}), status)
    call(
        "wait_for_job_status(waited, Complete, callbacks)",
        "Complete",
        lambda: wait("waited", timeout=60, polling_interval=1, callbacks=[lambda job: seen.append(job.status)]),
        status,
    )
    call("what the callbacks saw", "Running, Complete", lambda: sorted(set(seen), reverse=True), ", ".join)


def fails(stage: Stage) -> None:
    """Wait for a job that a deadline ends."""
    _train(stage, "failing", "10m", ActiveDeadlineSeconds(4))
    wait = stage.client.wait_for_job_status
    stage.table.call("wait_for_job_status(failing, Failed)", "Failed", lambda: wait("failing", {"Failed"}), status)
    stage.table.call(
        "wait_for_job_status(failing, Complete)", "RuntimeError: TrainJob failing is Failed", lambda: wait("failing")
    )


def gives_up(stage: Stage) -> None:
    """Wait without result, and refuse what cannot be waited for."""
    _train(stage, "endless", "10m")
    wait, call = stage.client.wait_for_job_status, stage.table.call
    call(
        "wait_for_job_status(endless, timeout=3)",
        "TimeoutError: Timeout waiting for TrainJob endless to reach status: {'Complete'} status",
        lambda: wait("endless", timeout=3, polling_interval=1),
    )
    for what, do in {
        "status=Paused": lambda: wait("endless", {"Paused"}),
        "polling_interval=0": lambda: wait("endless", polling_interval=0),
        "polling_interval=timeout": lambda: wait("endless", timeout=5, polling_interval=5),
    }.items():
        call(f"wait_for_job_status(endless, {what})", "ValueError", partial(_value_error, do))
    stage.gone("endless")


def _value_error(do: Callable[[], object]) -> str:
    """Return ValueError if a call raises one; its message is the SDK's affair."""
    try:
        return repr(do())
    except ValueError:
        return "ValueError"


def resumed(stage: Stage) -> None:
    """Suspend a job and resume it.

    The SDK then calls it Created until it ends, because of the condition Suspended=False: docs/sdk.md says why that stays.
    """
    _train(stage, "resumed", "20s")
    stage.patch("resumed", {"suspend": True})
    wait, call = stage.client.wait_for_job_status, stage.table.call
    eventually(
        lambda: bool(stage.stored("resumed").get("status", {}).get("conditions")), "resumed says that it is suspended"
    )
    call("get_job(resumed) while suspended", "Created", lambda: stage.client.get_job("resumed"), status)
    stage.patch("resumed", {"suspend": False})
    running: list[bool] = []
    call(
        "wait_for_job_status(resumed, Running)",
        "TimeoutError: Timeout waiting for TrainJob resumed to reach status: {'Running'} status",
        lambda: wait(
            "resumed", {"Running"}, timeout=10, polling_interval=1, callbacks=[lambda j: running.append(_runs(j))]
        ),
    )
    call(
        "its steps meanwhile", "all Running", lambda: any(running), lambda ran: "all Running" if ran else "not Running"
    )
    call("wait_for_job_status(resumed)", "Complete", lambda: wait("resumed"), status)


def _runs(job: TrainJob) -> bool:
    """Report whether all steps run: what to look at instead of the status."""
    return len(job.steps) == job.num_nodes and all(step.status == "Running" for step in job.steps)

"""Jobs: list, get and delete; the figures of a job of 500 nodes."""

from __future__ import annotations

import time

from kubeflow.trainer import CustomTrainer
from kubeflow.trainer.options import Name
from kubeflow.trainer.types.types import TrainJob

from .stage import GROUP, JOBS, VERSION, Stage, eventually, run_for, train_nothing

LARGE = 500


def listed(stage: Stage) -> None:
    """List jobs, get one, and delete it."""
    call, client = stage.table.call, stage.client
    client.train(runtime="plain", trainer=CustomTrainer(func=train_nothing), options=[Name("listed"), run_for("2s")])
    call("list_jobs()", "listed is there", client.list_jobs, lambda jobs: _has(jobs, "listed"))
    plain, jax = client.get_runtime("plain"), client.get_runtime("jax-distributed")
    call("list_jobs(plain)", "listed is there", lambda: client.list_jobs(runtime=plain), lambda j: _has(j, "listed"))
    call("list_jobs(jax)", "listed is not there", lambda: client.list_jobs(runtime=jax), lambda j: _has(j, "listed"))
    call("get_job(listed)", "plain, 1 nodes", lambda: client.get_job(name="listed"), _shape)
    call("get_job(unknown)", "RuntimeError: 404 Not Found", lambda: client.get_job("unknown"))
    call("delete_job(listed)", "None", lambda: client.delete_job(name="listed"))
    call("delete_job(unknown)", "RuntimeError: 404 Not Found", lambda: client.delete_job("unknown"))


def _has(jobs: list, name: str) -> str:
    """Return whether a job is in a list."""
    return f"{name} is there" if any(job.name == name for job in jobs) else f"{name} is not there"


def _shape(job: TrainJob) -> str:
    """Return a job's runtime and size."""
    return f"{job.runtime.name}, {job.num_nodes} nodes"


def large(stage: Stage) -> None:
    """Get a job of 500 nodes, and measure what of that time the API server takes."""
    name, client = "large", stage.client
    client.train(
        runtime="plain",
        trainer=CustomTrainer(func=train_nothing, num_nodes=LARGE, resources_per_node={"cpu": 1}),
        options=[Name(name), run_for("10m")],
    )
    eventually(lambda: len(stage.pods(name)) == LARGE, f"{name} has its pods", within=120)
    calls, size, seconds = _raw(stage, name)
    began = time.monotonic()
    stage.table.call(
        f"get_job({name})", f"{LARGE} steps", lambda: client.get_job(name), lambda j: f"{len(j.steps)} steps"
    )
    whole = time.monotonic() - began
    stage.table.call(
        "the API server's part of get_job(large)",
        "under 2 s",
        lambda: seconds,
        lambda s: "under 2 s" if s < 2 else f"{s:.1f} s",
    )
    stage.table.figures["get_job of 500 nodes"] = (
        f"{whole:.1f} s. The API server takes {seconds:.1f} s of it, for {calls} calls with {size / 1e6:.1f} MB; the SDK "
        "parses pods in the rest"
    )
    stage.gone(name)


def _raw(stage: Stage, name: str) -> tuple[int, int, float]:
    """Make the calls of get_job without parsing the answers: their number, bytes and seconds."""
    custom, size = stage.client.backend.custom_api, 0
    began = time.monotonic()
    answers = [
        lambda: custom.get_namespaced_custom_object(
            GROUP, VERSION, stage.namespace, JOBS, name, _preload_content=False
        ),
        lambda: custom.get_cluster_custom_object(
            GROUP, VERSION, "clustertrainingruntimes", "plain", _preload_content=False
        ),
        lambda: stage.core.list_namespaced_pod(
            stage.namespace, label_selector=f"jobset.sigs.k8s.io/jobset-name={name}", _preload_content=False
        ),
    ]
    for ask in answers:
        size += len(ask().data)
    # The SDK looks for a runtime of the namespace first, and is told 404.
    return len(answers) + 1, size, time.monotonic() - began

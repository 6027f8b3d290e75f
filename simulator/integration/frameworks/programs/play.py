"""Submits one TrainJob through Kubeflow's SDK, waits for its end, and prints what a user sees of it as one JSON object.

usage: play.py SCENARIO [NAME], with KUBECONFIG in the environment
"""

import json
import logging
import os
import sys
import time
from collections.abc import Callable

from kubeflow.common.types import KubernetesBackendConfig
from kubeflow.trainer import CustomTrainer, TrainerClient
from kubeflow.trainer.options import (
    Annotations,
    ContainerPatch,
    JobSetSpecPatch,
    JobSetTemplatePatch,
    JobSpecPatch,
    JobTemplatePatch,
    Name,
    PodSpecPatch,
    PodTemplatePatch,
    ReplicatedJobPatch,
    RuntimePatch,
    TrainingRuntimeSpecPatch,
)

import trainings

# Ranks that are to be on different nodes say so.
APART = Annotations({"lockstep.dev/max-per-node": "1"})

Play = Callable[[TrainerClient, str], str]


def custom(runtime: str, func: Callable, gpus: int = 0, nodes: int = 2, apart: Annotations = APART, **more) -> Play:
    """A CustomTrainer of a runtime on two nodes."""

    def train(client: TrainerClient, name: str) -> str:
        resources = {"gpu": gpus} if gpus else None
        trainer = CustomTrainer(func=func, num_nodes=nodes, resources_per_node=resources, **more)
        return client.train(runtime=client.get_runtime(runtime), trainer=trainer, options=[Name(name), apart])

    return train


def keeping(
    func: Callable,
    seconds: int = 10,
    priority: str | None = None,
    nodes: int = 2,
    runtime: str = "jax-distributed",
    annotations: dict[str, str] | None = None,
) -> Play:
    """A training on whole nodes that keeps files on the machine, and leaves a lost node at once."""

    def train(client: TrainerClient, name: str) -> str:
        gone = [
            {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
            for key in ("not-ready", "unreachable")
        ]
        pod = PodSpecPatch(
            tolerations=gone,
            volumes=[{"name": "checkpoints", "hostPath": {"path": os.environ["CHECKPOINTS"]}}],
            containers=[
                ContainerPatch(name="node", volume_mounts=[{"name": "checkpoints", "mountPath": "/checkpoints"}])
            ],
        )
        job = JobTemplatePatch(spec=JobSpecPatch(template=PodTemplatePatch(spec=pod)))
        jobs = [ReplicatedJobPatch(name="node", template=job)]
        patch = JobSetTemplatePatch(spec=JobSetSpecPatch(replicated_jobs=jobs))
        options = [Name(name), RuntimePatch(training_runtime_spec=TrainingRuntimeSpecPatch(template=patch))]
        if priority:
            options.append(Annotations({"lockstep.dev/priority-class": priority}))
        if annotations:
            options.append(Annotations(annotations))
        trainer = CustomTrainer(
            func=func, num_nodes=nodes, resources_per_node={"gpu": 2}, env={"SECONDS": str(seconds), "JOB": name}
        )
        return client.train(runtime=client.get_runtime(runtime), trainer=trainer, options=options)

    return train


SCENARIOS: dict[str, Play] = {
    "jax": custom("jax-distributed", trainings.jax_documented),
    "jax-devices": custom(
        "jax-distributed", trainings.jax_documented, env={"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    ),
    "jax-slices": custom(
        "jax-slices", trainings.jax_slices, nodes=4, apart=Annotations({"lockstep.dev/max-per-node": "2"})
    ),
    "xgboost": custom("xgboost-distributed", trainings.xgboost_ranks),
    "xgboost-gpus": custom("xgboost-distributed", trainings.xgboost_ranks, gpus=2),
    "xgboost-image": custom(
        "xgboost-distributed", trainings.xgboost_ranks, gpus=2, image="docker.io/local/own-xgboost:1"
    ),
    "torch": custom("torch-distributed", trainings.torch_ddp, gpus=2),
    "mpi": custom("deepspeed-distributed", trainings.mpi_ranks),
    "deepspeed": custom("deepspeed-distributed", trainings.deepspeed_ranks),
    "evicted": keeping(trainings.checkpointing),
    "deleted": keeping(trainings.checkpointing),
    "crashed": keeping(trainings.crashing),
    "thief": keeping(trainings.checkpointing, seconds=1, nodes=1),
    "preempted": keeping(trainings.checkpointing, seconds=20),
    "urgent": keeping(trainings.checkpointing, seconds=3, priority="urgent"),
    "elastic": keeping(
        trainings.torch_elastic,
        seconds=75,
        runtime="torch-distributed",
        annotations={"lockstep.dev/min-nodes": "1", "lockstep.dev/max-nodes": "2"},
    ),
    "visitor": keeping(trainings.checkpointing, seconds=55, priority="urgent", nodes=1),
    "moved": keeping(trainings.checkpointing, seconds=8, nodes=1),
    "transformers": custom("torch-distributed", trainings.transformers_progress, nodes=1),
}


def log_of(client: TrainerClient, name: str, step: str) -> str:
    """What a step has printed; nothing if its pod has gone, as that of an sshd has when the launcher is done."""
    try:
        return "\n".join(client.get_job_logs(name, step=step))
    except RuntimeError as err:
        print(f"{name}, {step}: {err}", file=sys.stderr)
        return ""


def main() -> None:
    # What the SDK logs is for people; standard output is for the one object.
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    scenario = sys.argv[1]
    client = TrainerClient(backend_config=KubernetesBackendConfig(config_file=os.environ["KUBECONFIG"]))
    began = time.monotonic()
    name = SCENARIOS[scenario](client, sys.argv[-1])
    try:
        client.wait_for_job_status(name, status={"Complete", "Failed"}, timeout=300, polling_interval=1)
    except (TimeoutError, RuntimeError) as err:
        print(f"{name}: {err!r}", file=sys.stderr)
    took = time.monotonic() - began
    job = client.get_job(name)
    steps = {}
    for step in job.steps:
        steps[step.name] = {"status": step.status, "pod": step.pod_name, "log": log_of(client, name, step.name)}
    events = [f"{event.involved_object_kind} {event.reason}: {event.message}" for event in client.get_job_events(name)]
    json.dump({"name": name, "status": job.status, "seconds": took, "steps": steps, "events": events}, sys.stdout)


if __name__ == "__main__":
    main()

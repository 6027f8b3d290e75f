"""Trainers: none, a function, an image, and what does not fit a runtime."""

from __future__ import annotations

from functools import partial

from kubeflow.trainer import BuiltinTrainer, CustomTrainer, CustomTrainerContainer, TorchTuneConfig
from kubeflow.trainer.options import Name
from kubeflow.trainer.types.types import TrainJob

from .stage import Stage, run_for, train_nothing

# How a function is started on each runtime that takes one.
COMMANDS = {
    "deepspeed-distributed": "mpirun",
    "flux-distributed": "bash",
    "jax-distributed": "bash",
    "mlx-distributed": "mpirun",
    "plain": "bash",
    "pytorch-distributed-gpu": "bash",
    "torch-distributed": "bash",
    "xgboost-distributed": "bash",
}


def none(stage: Stage) -> None:
    """Train with the runtime's own image and command."""
    job = stage.table.call(
        "train()", "a name of 12 letters", stage.client.train, lambda n: f"a name of {len(n)} letters"
    )
    if job:
        stage.ends("wait_for_job_status(train())", job)


def functions(stage: Stage) -> None:
    """Train a function on every runtime that takes one."""
    jobs = []
    for runtime in COMMANDS:
        name = f"function-{runtime}"
        trainer = CustomTrainer(func=train_nothing, num_nodes=2, resources_per_node={"cpu": 1, "memory": "1Gi"})
        stage.table.call(
            f"train({runtime}, CustomTrainer)",
            name,
            partial(stage.client.train, runtime=runtime, trainer=trainer, options=[Name(name), run_for("2s")]),
        )
        jobs.append(name)
    for name in jobs:
        stage.ends(f"wait_for_job_status({name})", name)
    for name in jobs:
        stage.table.call(f"get_job({name})", "steps node-0, node-1", partial(stage.client.get_job, name), _steps)


def _steps(job: TrainJob) -> str:
    """Return the names of the steps in order."""
    return "steps " + ", ".join(sorted(step.name for step in job.steps))


def every_field(stage: Stage) -> None:
    """Fill every field of the two trainers, and look at the pods."""
    function = CustomTrainer(
        func=lambda rate: print(rate),
        func_args={"rate": "0.1"},
        image="example.com/train:1",
        packages_to_install=["numpy"],
        pip_index_urls=["https://example.com/simple"],
        num_nodes=2,
        resources_per_node={"gpu": 4, "cpu": 2, "memory": "4Gi"},
        env={"RATE": "0.1"},
    )
    container = CustomTrainerContainer(
        image="example.com/train:2", num_nodes=2, resources_per_node={"gpu": 4}, env={"RATE": "0.2"}
    )
    trainers: dict[str, CustomTrainer | CustomTrainerContainer] = {
        "all-of-function": function,
        "all-of-image": container,
    }
    for name, trainer in trainers.items():
        stage.client.train(runtime="torch-distributed", trainer=trainer, options=[Name(name), run_for("2s")])
        stage.ends(f"wait_for_job_status({name})", name)
        want = f"2 pods of {trainer.image} with 4 GPUs and RATE={(trainer.env or {})['RATE']}"
        stage.table.call(f"the pods of {name}", want, partial(stage.pods, name), _shape)


def _shape(pods: list) -> str:
    """Return what the pods of a job ask for."""
    container = next(c for c in pods[0].spec.containers if c.name == "node")
    rate = next(e.value for e in container.env if e.name == "RATE")
    gpus = container.resources.limits["nvidia.com/gpu"]
    return f"{len(pods)} pods of {container.image} with {gpus} GPUs and RATE={rate}"


def misfits(stage: Stage) -> None:
    """Refuse a trainer that does not fit the runtime, before a job is made."""
    custom, builtin = CustomTrainer(func=train_nothing), BuiltinTrainer(config=TorchTuneConfig())
    misfit: dict[str, CustomTrainer | BuiltinTrainer] = {
        "torchtune-llama3.2-1b": custom,
        "torch-distributed": builtin,
    }
    for runtime, trainer in misfit.items():
        kind = type(trainer).__name__
        stage.table.call(
            f"train({runtime}, {kind})",
            f"ValueError: {kind} can't be used",
            partial(_refused, stage, runtime, trainer, f"{kind} can't be used"),
        )


def _refused(stage: Stage, runtime: str, trainer: CustomTrainer | BuiltinTrainer, why: str) -> str:
    """Train, and shorten the message, which prints the runtime."""
    try:
        return stage.client.train(runtime=runtime, trainer=trainer)
    except ValueError as error:
        if why in str(error):
            raise ValueError(why) from None
        raise

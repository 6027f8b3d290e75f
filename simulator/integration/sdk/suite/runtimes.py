"""Runtimes: the shipped ones, one of the namespace, and what is in them."""

from __future__ import annotations

import contextlib
import io
import logging
from functools import partial

from kubeflow.trainer import TrainerClient

from .stage import Stage, connect

FRAMEWORKS = {
    "deepspeed-distributed": "deepspeed",
    "deepspeed-distributed-gpu": "deepspeed",
    "flux-distributed": "flux",
    "flux-distributed-gpu": "flux",
    "jax-distributed": "jax",
    "jax-distributed-gpu": "jax",
    "mlx-distributed": "mlx",
    "mlx-distributed-gpu": "mlx",
    "plain": "plain",
    "plain-gpu": "plain",
    "pytorch-distributed-gpu": "torch",
    "torch-distributed": "torch",
    "torch-distributed-with-cache": "torch",
    "torch-distributed-with-cache-gpu": "torch",
    "torchtune-llama3.2-1b": "torchtune",
    "torchtune-llama3.2-3b": "torchtune",
    "torchtune-qwen2.5-1.5b": "torchtune",
    "xgboost-distributed": "xgboost",
    "xgboost-distributed-gpu": "xgboost",
}


class _Warnings(logging.Handler):
    """Keeps what the SDK warns of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one warning."""
        self.messages.append(record.getMessage())


def construct(stage: Stage) -> None:
    """Construct a client: it reads the version of the control plane, and warns if it cannot."""
    heard = _Warnings()
    logger = logging.getLogger("kubeflow")
    logger.addHandler(heard)

    def construct_quietly() -> TrainerClient:
        client = connect(stage.namespace)
        if heard.messages:
            raise RuntimeError(heard.messages[0])
        return client

    stage.table.call("TrainerClient()", "no warning", construct_quietly, lambda _: "no warning")
    logger.removeHandler(heard)


def shipped(stage: Stage) -> None:
    """List and get the shipped runtimes, and one that an administrator made in the namespace."""
    call, client = stage.table.call, stage.client
    call("list_runtimes()", f"{len(FRAMEWORKS) + 1} runtimes", client.list_runtimes, lambda r: f"{len(r)} runtimes")
    for name, framework in FRAMEWORKS.items():
        call(f'get_runtime("{name}")', framework, partial(client.get_runtime, name=name), lambda r: r.trainer.framework)
    call('get_runtime("team")', "TrainingRuntime", lambda: client.get_runtime("team"), lambda r: r.kind.value)
    call('get_runtime("unknown")', "RuntimeError: 404 Not Found", lambda: client.get_runtime("unknown"))


def packages(stage: Stage) -> None:
    """Print the packages of a runtime: the SDK runs a job for that and prints its log."""

    def printed(name: str) -> str:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            stage.client.get_runtime_packages(runtime=stage.client.get_runtime(name))
        return out.getvalue()

    stage.table.call(
        "get_runtime_packages(torch-distributed)",
        "a log that says no program was started",
        lambda: printed("torch-distributed"),
        lambda text: "a log that says no program was started" if "no program was started" in text else text,
    )
    stage.table.call(
        "get_runtime_packages(torchtune-llama3.2-1b)",
        "ValueError: Cannot get Runtime packages for BuiltinTrainer",
        lambda: printed("torchtune-llama3.2-1b"),
    )

"""Initializers of every kind."""

from __future__ import annotations

from typing import Any

from kubeflow.trainer import (
    BuiltinTrainer,
    DataCacheInitializer,
    Initializer,
    S3DatasetInitializer,
    S3ModelInitializer,
    TorchTuneConfig,
)
from kubeflow.trainer.options import Name

from .stage import Stage, run_for

BUCKET: dict[str, Any] = {
    "ignore_patterns": ["*.md"],
    "endpoint": "https://s3.example.com",
    "access_key_id": "of-a-test",
    "secret_access_key": "of-a-test",
    "region": "eu-central-1",
    "role_arn": "arn:aws:iam::1:role/train",
}

FROM_S3 = Initializer(
    dataset=S3DatasetInitializer(storage_uri="s3://bucket/dataset", **BUCKET),
    model=S3ModelInitializer(storage_uri="s3://bucket/model", **BUCKET),
)

CACHE = Initializer(
    dataset=DataCacheInitializer(
        storage_uri="cache://schema/table",
        metadata_loc="s3a://bucket/metadata.json",
        num_data_nodes=3,
        head_cpu="1",
        head_mem="1Gi",
        worker_cpu="2",
        worker_mem="2Gi",
        iam_role="arn:aws:iam::1:role/cache",
    )
)


def s3(stage: Stage) -> None:
    """Load dataset and model from S3."""
    name = "from-s3"
    stage.client.train(
        runtime="torchtune-llama3.2-1b",
        initializer=FROM_S3,
        trainer=BuiltinTrainer(config=TorchTuneConfig()),
        options=[Name(name), run_for("2s")],
    )
    stage.ends(f"wait_for_job_status({name})", name)
    want = "dataset-initializer from s3://bucket/dataset, model-initializer from s3://bucket/model"
    stage.table.call(f"the initializers of {name}", want, lambda: stage.pods(name), _sources)


def _sources(pods: list) -> str:
    """Return what each initializer loads."""
    found = {}
    for pod in pods:
        for container in pod.spec.containers:
            if container.name.endswith("-initializer"):
                found[container.name] = next(e.value for e in container.env if e.name == "STORAGE_URI")
    return ", ".join(f"{name} from {uri}" for name, uri in sorted(found.items()))


def cache(stage: Stage) -> None:
    """Stream a dataset through the distributed cache."""
    name = "from-cache"
    stage.client.train(runtime="torch-distributed-with-cache", initializer=CACHE, options=[Name(name), run_for("2s")])
    stage.ends(f"wait_for_job_status({name})", name)
    want = "dataset-initializer from cache://schema/table"
    stage.table.call(f"the initializers of {name}", want, lambda: stage.pods(name), _sources)


def misfits(stage: Stage) -> None:
    """Refuse an initializer that the runtime has no job for, and addresses of the wrong kind."""
    call = stage.table.call
    call(
        "train(torch-distributed, S3DatasetInitializer)",
        "RuntimeError: 403 Forbidden",
        lambda: stage.client.train(runtime="torch-distributed", initializer=FROM_S3),
    )
    call(
        "S3DatasetInitializer(hf://)",
        "ValueError: storage_uri must start with 's3://', got hf://x",
        lambda: S3DatasetInitializer(storage_uri="hf://x"),
    )
    call(
        "DataCacheInitializer(num_data_nodes=1)",
        "ValueError: num_data_nodes must be greater than 1, got 1",
        lambda: DataCacheInitializer(storage_uri="cache://a/b", metadata_loc="c", num_data_nodes=1),
    )

"""Reports of progress from inside a training, and the arithmetic of TPU slices."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from unittest import mock

from kubeflow.trainer import CustomTrainer
from kubeflow.trainer.options import Name
from kubernetes.client import AuthenticationV1TokenRequest, V1BoundObjectReference, V1TokenRequestSpec

from .stage import GROUP, JOBS, VERSION, Stage, eventually, run_for, train_nothing
from .surface import public


def progress(stage: Stage) -> None:
    """Report as a pod of the job would: with its token, to the address in its environment."""
    name, update = "reporting", public("update_trainjob_status")
    stage.table.call("update_trainjob_status() outside of a TrainJob", "False", lambda: update(progress_percent=1))
    stage.client.train(
        runtime="torch-distributed", trainer=CustomTrainer(func=train_nothing), options=[Name(name), run_for("10m")]
    )
    stage.client.wait_for_job_status(name, {"Running"}, timeout=60, polling_interval=1)
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, _environment(stage, name, Path(folder))):
        stage.table.call(
            "update_trainjob_status(40 %, 600 s, loss)",
            "True",
            lambda: update(progress_percent=40, estimated_remaining_seconds=600, metrics={"loss": 0.5}),
        )
    stage.table.call("the status of the TrainJob", "40 %, 600 s, loss 0.5", lambda: _reported(stage, name))
    stage.gone(name)


def _environment(stage: Stage, name: str, folder: Path) -> dict[str, str]:
    """Return the environment of a pod of the job, with the files that its kubelet would mount."""
    pod = stage.pods(name)[0]
    container = next(c for c in pod.spec.containers if c.name == "node")
    url = next(e.value for e in container.env if e.name == "KUBEFLOW_TRAINER_SERVER_URL")
    audience = f"{GROUP}/{VERSION}/namespaces/{stage.namespace}/{JOBS}/{name}/status"
    bound = V1BoundObjectReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid)
    request = AuthenticationV1TokenRequest(spec=V1TokenRequestSpec(audiences=[audience], bound_object_ref=bound))
    made = stage.core.create_namespaced_service_account_token("default", stage.namespace, request)
    authority = stage.core.read_namespaced_config_map(f"{name}-tls-config", stage.namespace).data["ca.crt"]
    (folder / "token").write_text(made.status.token)
    (folder / "ca.crt").write_text(authority)
    return {
        "KUBEFLOW_TRAINER_SERVER_URL": url,
        "KUBEFLOW_TRAINER_SERVER_TOKEN": str(folder / "token"),
        "KUBEFLOW_TRAINER_SERVER_CA_CERT": str(folder / "ca.crt"),
    }


def _reported(stage: Stage, name: str) -> str:
    """Return what the TrainJob says of its training."""

    def said() -> dict:
        return stage.stored(name).get("status", {}).get("trainerStatus", {})

    eventually(lambda: bool(said()), f"{name} shows its report")
    report = said()
    metric = report["metrics"][0]
    return (
        f"{report['progressPercentage']} %, {report['estimatedRemainingSeconds']} s, {metric['name']} {metric['value']}"
    )


def slices(stage: Stage) -> None:
    """Count the nodes of TPU slices, which needs no cluster."""
    stage.table.call("get_tpu_num_nodes(2, 4x4)", "8", lambda: public("get_tpu_num_nodes")(2, "4x4"))

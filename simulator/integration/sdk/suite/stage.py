"""What scenes need beside the SDK: how long fake pods run, and the objects that came of a call."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from kubeflow.trainer import TrainerClient
from kubeflow.trainer.options import (
    JobSetSpecPatch,
    JobSetTemplatePatch,
    JobSpecPatch,
    JobTemplatePatch,
    PodTemplatePatch,
    ReplicatedJobPatch,
    RuntimePatch,
    TrainingRuntimeSpecPatch,
)
from kubeflow.trainer.types.types import TrainJob
from kubernetes.client import CoreV1Api

from .record import Table
from .surface import public

RUN_TIME = "simulator.lockstep.dev/run-time"
GROUP, VERSION, JOBS = "trainer.kubeflow.org", "v1alpha1", "trainjobs"


@dataclass
class Stage:
    """A client, the namespace of its account, and the table of its calls."""

    client: TrainerClient
    namespace: str
    table: Table

    @property
    def core(self) -> CoreV1Api:
        """Return the API of pods and Events, with the SDK's own account."""
        return self.client.backend.core_api

    def pods(self, job: str) -> list:
        """Return the pods of a job."""
        selector = f"jobset.sigs.k8s.io/jobset-name={job}"
        return self.core.list_namespaced_pod(self.namespace, label_selector=selector).items

    def patch(self, job: str, spec: dict) -> None:
        """Change the spec of a TrainJob, as kubectl patch does."""
        self.client.backend.custom_api.patch_namespaced_custom_object(
            GROUP, VERSION, self.namespace, JOBS, job, {"spec": spec}
        )

    def stored(self, job: str) -> dict:
        """Return a TrainJob as the API server has it."""
        return self.client.backend.custom_api.get_namespaced_custom_object(GROUP, VERSION, self.namespace, JOBS, job)

    def ends(self, what: str, job: str, expected: str = "Complete") -> None:
        """Record that a job ends as expected."""
        self.table.call(
            what, expected, lambda: self.client.wait_for_job_status(job, {"Complete", "Failed"}, timeout=120), status
        )

    def gone(self, *jobs: str) -> None:
        """Delete jobs, and return when their pods no longer occupy nodes."""
        for job in jobs:
            self.client.delete_job(job)
        eventually(lambda: not any(self.pods(job) for job in jobs), "the pods of deleted jobs are gone")


def connect(namespace: str) -> TrainerClient:
    """Return a client for the account of the kubeconfig."""
    return TrainerClient(backend_config=public("KubernetesBackendConfig")(namespace=namespace))


def run_for(duration: str, replicated_job: str = "node") -> RuntimePatch:
    """Return an option by which the fake pods of a job run for a time such as 30s."""
    return patch_pods(PodTemplatePatch(metadata={"annotations": {RUN_TIME: duration}}), replicated_job)


def patch_pods(pods: PodTemplatePatch, replicated_job: str = "node") -> RuntimePatch:
    """Return an option that patches the pods of one replicated job."""
    job = ReplicatedJobPatch(name=replicated_job, template=JobTemplatePatch(spec=JobSpecPatch(template=pods)))
    spec = JobSetSpecPatch(replicated_jobs=[job])
    return RuntimePatch(TrainingRuntimeSpecPatch(template=JobSetTemplatePatch(spec=spec)))


def status(job: TrainJob) -> str:
    """Return what the SDK says of a job in one word."""
    return job.status


def eventually(holds: Callable[[], bool], what: str, within: float = 60) -> None:
    """Return when something holds."""
    end = time.monotonic() + within
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"waiting until {what}")
        time.sleep(0.5)


def train_nothing() -> None:
    """Stand for a user's training."""
    print("this never runs on a fake node")

"""Options: name, metadata, command, deadline, and a RuntimePatch with every field."""

from __future__ import annotations

from functools import partial

from kubeflow.trainer import CustomTrainerContainer
from kubeflow.trainer.options import (
    ActiveDeadlineSeconds,
    Annotations,
    ContainerPatch,
    JobSetSpecPatch,
    JobSetTemplatePatch,
    JobSpecPatch,
    JobTemplatePatch,
    Labels,
    Name,
    PodSpecPatch,
    PodTemplatePatch,
    ReplicatedJobPatch,
    RuntimePatch,
    TrainerArgs,
    TrainerCommand,
    TrainingRuntimeSpecPatch,
)

from .stage import RUN_TIME, Stage, eventually, patch_pods

# The JobSet of the SDK's RuntimePatch, with every field that it documents.
EVERYTHING = RuntimePatch(
    training_runtime_spec=TrainingRuntimeSpecPatch(
        template=JobSetTemplatePatch(
            metadata={"labels": {"of": "jobset"}},
            spec=JobSetSpecPatch(
                replicated_jobs=[
                    ReplicatedJobPatch(
                        name="node",
                        template=JobTemplatePatch(
                            metadata={"labels": {"of": "job"}},
                            spec=JobSpecPatch(
                                template=PodTemplatePatch(
                                    metadata={"labels": {"of": "pod"}, "annotations": {RUN_TIME: "2s"}},
                                    spec=PodSpecPatch(
                                        service_account_name="trainer",
                                        volumes=[{"name": "scratch", "emptyDir": {}}],
                                        init_containers=[
                                            ContainerPatch(name="fetch", env=[{"name": "A", "value": "1"}])
                                        ],
                                        containers=[
                                            ContainerPatch(
                                                name="sidecar",
                                                env=[{"name": "B", "value": "2"}],
                                                volume_mounts=[{"name": "scratch", "mountPath": "/scratch"}],
                                                security_context={"runAsNonRoot": True},
                                            )
                                        ],
                                        image_pull_secrets=[{"name": "registry"}],
                                        security_context={"runAsUser": 1000},
                                        node_selector={"kubernetes.io/os": "linux"},
                                        affinity={"podAntiAffinity": {}},
                                        tolerations=[{"key": "maintenance", "operator": "Exists"}],
                                        scheduling_gates=[{"name": "example.com/quota"}],
                                    ),
                                )
                            ),
                        ),
                    )
                ]
            ),
        )
    )
)


def metadata(stage: Stage) -> None:
    """Name, label and annotate a job, and set what its container runs and how long."""
    name = "options"
    stage.table.call(
        "train(Name, Labels, Annotations, TrainerCommand, TrainerArgs, ActiveDeadlineSeconds)",
        name,
        lambda: stage.client.train(
            runtime="torch-distributed",
            trainer=CustomTrainerContainer(image="example.com/train:1"),
            options=[
                Name(name=name),
                Labels(labels={"team": "vision"}),
                Annotations(annotations={"example.com/run": "7"}),
                TrainerCommand(command=["python", "train.py"]),
                TrainerArgs(args=["--epochs", "2"]),
                ActiveDeadlineSeconds(seconds=300),
            ],
        ),
    )
    want = "vision, 7, python train.py, --epochs 2, 300 s"
    stage.table.call(f"the TrainJob {name}", want, lambda: stage.stored(name), _said)
    stage.table.call(
        "train(Name of a job that exists)",
        "RuntimeError: 409 Conflict",
        lambda: stage.client.train(options=[Name(name)]),
    )
    stage.table.call(
        "ActiveDeadlineSeconds(0)",
        "ValueError: activeDeadlineSeconds must be a positive integer (minimum 1)",
        lambda: ActiveDeadlineSeconds(0),
    )


def _said(job: dict) -> str:
    """Return what the options wrote."""
    trainer, meta = job["spec"]["trainer"], job["metadata"]
    return (
        f"{meta['labels']['team']}, {meta['annotations']['example.com/run']}, {' '.join(trainer['command'])}, "
        f"{' '.join(trainer['args'])}, {job['spec']['activeDeadlineSeconds']} s"
    )


def runtime_patch(stage: Stage) -> None:
    """Patch everything that the SDK can, of a runtime with a sidecar and an init container."""
    name = "patched"
    stage.table.call(
        "train(RuntimePatch with every field)",
        name,
        lambda: stage.client.train(runtime="team", options=[Name(name), EVERYTHING]),
    )
    stage.table.call(f"the pods of {name}", "every field arrived", lambda: _arrived(stage, name), lambda a: a)
    for pod in stage.pods(name):
        # What a quota controller would do: the gate is the only thing that holds the job.
        stage.core.patch_namespaced_pod(pod.metadata.name, stage.namespace, {"spec": {"schedulingGates": None}})
    stage.ends(f"wait_for_job_status({name}) after its gates are gone", name)


def _arrived(stage: Stage, name: str) -> str:
    """Name what of the patch is not in the first pod."""
    eventually(lambda: bool(stage.pods(name)), f"{name} has pods")
    pod = stage.pods(name)[0]
    spec, sidecar = pod.spec, next(c for c in pod.spec.containers if c.name == "sidecar")
    held = {
        "labels": pod.metadata.labels.get("of") == "pod",
        "account": spec.service_account_name == "trainer",
        "volume": any(v.name == "scratch" for v in spec.volumes),
        "init container": any(e.name == "A" for e in spec.init_containers[0].env or []),
        "env": any(e.name == "B" for e in sidecar.env or []),
        "mount": any(m.mount_path == "/scratch" for m in sidecar.volume_mounts),
        "container's security": bool(sidecar.security_context and sidecar.security_context.run_as_non_root),
        "pull secret": any(s.name == "registry" for s in spec.image_pull_secrets or []),
        "security": spec.security_context.run_as_user == 1000,
        "selector": spec.node_selector.get("kubernetes.io/os") == "linux",
        "affinity": spec.affinity is not None,
        "toleration": any(t.key == "maintenance" for t in spec.tolerations),
        "gate": [g.name for g in spec.scheduling_gates or []] == ["example.com/quota"],
    }
    return ", ".join(f"no {what}" for what, holds in held.items() if not holds) or "every field arrived"


def refused(stage: Stage) -> None:
    """Refuse patches that could not take effect."""
    env = [{"name": "A", "value": "1"}]
    for what, spec in {
        "container absent": PodSpecPatch(containers=[ContainerPatch(name="absent", volume_mounts=[])]),
        "env of node": PodSpecPatch(containers=[ContainerPatch(name="node", env=env)]),
    }.items():
        stage.table.call(
            f"train(RuntimePatch of {what})",
            "RuntimeError: 403 Forbidden",
            partial(stage.client.train, options=[patch_pods(PodTemplatePatch(spec=spec))]),
        )
    stage.table.call(
        "train(RuntimePatch of job absent)",
        "RuntimeError: 403 Forbidden",
        lambda: stage.client.train(options=[patch_pods(PodTemplatePatch(spec=PodSpecPatch(volumes=[])), "absent")]),
    )

"""Events: why a job does not run."""

from __future__ import annotations

from kubeflow.trainer import CustomTrainer
from kubeflow.trainer.options import ActiveDeadlineSeconds, Labels, Name, PodSpecPatch, PodTemplatePatch

from .stage import Stage, eventually, patch_pods, run_for, train_nothing


def _tells(stage: Stage, scene: str, name: str, reason: str, part: str) -> None:
    """Record that an Event of a job has a reason and a part of a message, once it is there."""

    def told() -> list:
        return [e for e in stage.client.get_job_events(name=name) if e.reason == reason and part in e.message]

    def wait() -> str:
        eventually(lambda: bool(told()), f"{reason} of {name}", within=45)
        return f"{told()[0].involved_object_kind} {reason}: … {part} …"

    kind = "Pod" if reason == "Failed" else "TrainJob"
    stage.table.call(f"get_job_events({name}), {scene}", f"{kind} {reason}: … {part} …", wait)


def _gang(stage: Stage, name: str, nodes: int, *options: object) -> None:
    """Train on whole nodes of four GPUs."""
    stage.client.train(
        runtime="torch-distributed",
        trainer=CustomTrainer(func=train_nothing, num_nodes=nodes, resources_per_node={"gpu": 4}),
        options=[Name(name), *options],
    )


def too_large(stage: Stage) -> None:
    """Say that the cluster is too small."""
    _gang(stage, "too-large", 300)
    _tells(stage, "larger than the cluster", "too-large", "NoRoom", "would not fit an empty cluster")
    stage.gone("too-large")


def behind(stage: Stage) -> None:
    """Say that others have the nodes."""
    _gang(stage, "ahead", 72, run_for("10m"))
    stage.client.wait_for_job_status("ahead", {"Running"}, timeout=120, polling_interval=1)
    _tells(stage, "which has its nodes", "ahead", "Placed", "nodes in")
    _gang(stage, "behind", 72)
    _tells(stage, "while another has the nodes", "behind", "NoRoom", "needs 72 members")
    stage.gone("ahead", "behind")


def suspended(stage: Stage) -> None:
    """Say that a job is suspended, and by whom."""
    _gang(stage, "resting", 1, run_for("10m"))
    stage.patch("resting", {"suspend": True})
    _tells(stage, "suspended by its owner", "resting", "Suspended", "suspended")
    stage.gone("resting")


def image(stage: Stage) -> None:
    """Say that an image cannot be had. The node is one whose kubelet the test plays."""
    played = {"key": "example.com/kubelet", "operator": "Exists"}
    spec = PodSpecPatch(node_selector={"example.com/kubelet": "played"}, tolerations=[played])
    pods = PodTemplatePatch(spec=spec)
    _gang(stage, "no-image", 1, patch_pods(pods), Labels({"scene": "image"}), ActiveDeadlineSeconds(120))
    _tells(stage, "whose image cannot be had", "no-image", "Failed", "Failed to pull image")
    stage.gone("no-image")

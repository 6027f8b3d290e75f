"""Submits a TrainJob whose dataset is streamed from a cache through Kubeflow's SDK, waits for its end, and prints its status and the output of its steps.

usage: play.py NAME METADATA_LOC, with KUBECONFIG in the environment
"""

import json
import logging
import os
import sys

from kubeflow.common.types import KubernetesBackendConfig
from kubeflow.trainer import CustomTrainer, DataCacheInitializer, Initializer, TrainerClient
from kubeflow.trainer.options import Name


def streamed():
    """The program of the sample, which the image has."""
    import runpy

    runpy.run_path("/workspace/train.py", run_name="__main__")


def main() -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    name, location = sys.argv[1:]
    client = TrainerClient(backend_config=KubernetesBackendConfig(config_file=os.environ["KUBECONFIG"]))
    client.train(
        runtime=client.get_runtime("torch-distributed-with-cache"),
        trainer=CustomTrainer(func=streamed, num_nodes=2, resources_per_node={"gpu": 1}),
        initializer=Initializer(
            dataset=DataCacheInitializer(
                storage_uri="cache://events/clicks",
                metadata_loc=location,
                iam_role="arn:aws:iam::123456789012:role/reader",
                num_data_nodes=2,
                head_cpu="100m",
                head_mem="256Mi",
                worker_cpu="100m",
                worker_mem="256Mi",
            )
        ),
        options=[Name(name)],
    )
    try:
        client.wait_for_job_status(name, status={"Complete", "Failed"}, timeout=240, polling_interval=1)
    except (TimeoutError, RuntimeError) as err:
        print(f"{name}: {err!r}", file=sys.stderr)
    job = client.get_job(name)
    steps = {step.name: "\n".join(client.get_job_logs(name, step=step.name)) for step in job.steps}
    json.dump({"status": job.status, "steps": steps}, sys.stdout)


if __name__ == "__main__":
    main()

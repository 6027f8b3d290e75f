"""BuiltinTrainer: TorchTune with everything that can be configured, and with nothing."""

from __future__ import annotations

from kubeflow.trainer import (
    BuiltinTrainer,
    DataFormat,
    DataType,
    HuggingFaceDatasetInitializer,
    HuggingFaceModelInitializer,
    Initializer,
    LoraConfig,
    Loss,
    TorchTuneConfig,
    TorchTuneInstructDataset,
)
from kubeflow.trainer.options import Name

from .stage import Stage, run_for

LORA = LoraConfig(
    apply_lora_to_mlp=True,
    apply_lora_to_output=True,
    lora_attn_modules=["q_proj", "v_proj"],
    lora_rank=8,
    lora_alpha=16,
    lora_dropout=0.1,
    quantize_base=True,
    use_dora=True,
)

CONFIG = TorchTuneConfig(
    dtype=DataType.BF16,
    batch_size=8,
    epochs=2,
    loss=Loss.CEWithChunkedOutputLoss,
    num_nodes=1,
    peft_config=LORA,
    dataset_preprocess_config=TorchTuneInstructDataset(
        source=DataFormat.PARQUET,
        split="train[:10%]",
        train_on_input=True,
        new_system_prompt="Answer briefly.",
        column_map={"input": "question", "output": "answer"},
    ),
    resources_per_node={"gpu": 2},
)

INITIALIZER = Initializer(
    dataset=HuggingFaceDatasetInitializer(
        storage_uri="hf://tatsu-lab/alpaca/data", ignore_patterns=["*.md"], access_token="of-a-test"
    ),
    model=HuggingFaceModelInitializer(
        storage_uri="hf://meta-llama/Llama-3.2-1B", ignore_patterns=["*.bin"], access_token="of-a-test"
    ),
)


def lora(stage: Stage) -> None:
    """Fine-tune with LoRA, a dataset and a model from Hugging Face. The job stays for the scenes of logs."""
    name, runtime = "tune-lora", "torchtune-llama3.2-1b"
    stage.table.call(
        f"train({runtime}, LoRA)",
        name,
        lambda: stage.client.train(
            runtime=stage.client.get_runtime(runtime),
            initializer=INITIALIZER,
            trainer=BuiltinTrainer(config=CONFIG),
            options=[Name(name), run_for("2s")],
        ),
    )
    stage.ends(f"wait_for_job_status({name})", name)
    want = "lora_rank=8, batch_size=8, epochs=2"
    stage.table.call(f"the arguments of {name}", want, lambda: stage.pods(name), _tuned)


def _tuned(pods: list) -> str:
    """Return what torchtune is asked to do, as far as the scene set it."""
    args = [arg for pod in pods for c in pod.spec.containers if c.name == "node" for arg in (c.args or [])]
    wanted = {"model.lora_rank": "lora_rank", "batch_size": "batch_size", "epochs": "epochs"}
    said = dict(arg.split("=", 1) for arg in args if "=" in arg)
    return ", ".join(f"{short}={said.get(long)}" for long, short in wanted.items())


def defaults(stage: Stage) -> None:
    """Fine-tune the other models with the runtime's own recipe."""
    for runtime in ("torchtune-llama3.2-3b", "torchtune-qwen2.5-1.5b"):
        name = "tune-" + runtime.rsplit("-", 1)[0].replace(".", "-")
        stage.client.train(
            runtime=runtime, trainer=BuiltinTrainer(config=TorchTuneConfig()), options=[Name(name), run_for("2s")]
        )
        stage.ends(f"wait_for_job_status({name})", name)

"""Training functions, as users write them for the SDK: each is self-contained, because only its source reaches the pods."""


def jax_documented():
    """The example of Kubeflow's guide for JAX, whose arguments are those of the environment."""
    import os

    import jax

    jax.distributed.initialize(
        coordinator_address=os.environ["JAX_COORDINATOR_ADDRESS"],
        num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
        process_id=int(os.environ["JAX_PROCESS_ID"]),
    )
    import jax.numpy as jnp
    from jax.experimental import multihost_utils

    devices, local = jax.device_count(), jax.local_device_count()
    print(f"Process {jax.process_index()} of {jax.process_count()}")
    print(f"Global device count: {devices}, local {local}")
    gathered = multihost_utils.process_allgather(jnp.array([float(jax.process_index() + 1)]))
    print("Gathered:", gathered.ravel().tolist())
    mesh = jax.make_mesh((devices,), ("data",))
    sharding = jax.NamedSharding(mesh, jax.P("data"))
    shares = jnp.full((local,), float(jax.process_index() + 1))
    everything = jax.make_array_from_process_local_data(sharding, shares, (devices,))
    print("Sum:", float(jax.jit(jnp.sum)(everything)))


def jax_slices():
    """Two slices: JAX's own detection of TPU slices, which is not used on CPUs, reads what the environment says. Rank 0 prints what all have found."""
    import os

    import jax
    from jax._src.clusters.cloud_tpu_cluster import GkeTpuCluster as detected

    given = int(os.environ["JAX_PROCESS_ID"])
    coordinator = detected.get_coordinator_address(60, os.environ["JAX_COORDINATOR_ADDRESS"].rpartition(":")[2])
    jax.distributed.initialize(coordinator, detected.get_process_count(), detected.get_process_id())
    import jax.numpy as jnp
    from jax.experimental import multihost_utils

    mine = [int(os.environ["MEGASCALE_SLICE_ID"]), detected.get_process_id(), given]
    everything = multihost_utils.process_allgather(jnp.array(mine)).reshape(-1, 3).tolist()
    print(f"Coordinator {coordinator}, {jax.process_count()} processes")
    for slice_id, process, argument in everything:
        print(f"slice {slice_id}: process {process} detected, {argument} given")


def xgboost_ranks():
    """A model of data that is spread over all workers: each has the same in the end."""
    import hashlib
    import os

    import numpy
    import xgboost
    from xgboost import collective

    task = int(os.environ["DMLC_TASK_ID"])
    tracker = None
    if task == 0:
        from xgboost.tracker import RabitTracker

        tracker = RabitTracker(
            host_ip="0.0.0.0", port=int(os.environ["DMLC_TRACKER_PORT"]), n_workers=int(os.environ["DMLC_NUM_WORKER"]),
            sortby="task",
        )
        tracker.start()
    arguments = {
        "dmlc_tracker_uri": os.environ["DMLC_TRACKER_URI"],
        "dmlc_tracker_port": int(os.environ["DMLC_TRACKER_PORT"]),
        "dmlc_task_id": f"{task:04d}",
        "dmlc_retry": 30,
    }
    with collective.CommunicatorContext(**arguments):
        rank, world = collective.get_rank(), collective.get_world_size()
        random = numpy.random.default_rng(rank)
        features = random.normal(size=(200, 4))
        data = xgboost.DMatrix(features, label=features[:, 0] + 0.1 * rank)
        model = xgboost.train({"tree_method": "hist", "nthread": 1}, data, num_boost_round=5)
        digest = hashlib.sha256(model.save_raw(raw_format="json")).hexdigest()[:16]
        print(f"worker {rank} of {world} has model {digest}", flush=True)
    if tracker is not None:
        tracker.wait_for(timeout=60)


def torch_ddp():
    """Distributed data parallel by gloo: gradients are equal on all ranks, and the sum of all ranks is known."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    total = torch.tensor([float(rank + 1)])
    dist.all_reduce(total)
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    torch.manual_seed(rank)
    model(torch.randn(8, 4)).sum().backward()
    gradient = model.module.weight.grad.sum().item()
    dist.barrier()
    print(f"rank {rank} of {world}: sum {total.item():.0f}, gradient {gradient:.6f}", flush=True)
    dist.destroy_process_group()


def torch_elastic():
    """A training whose ranks sum up each step, and that goes on from the last saved step with as many nodes as there are. SECONDS is how long it takes."""
    import os
    import pathlib
    import time

    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank, nodes = dist.get_rank(), dist.get_world_size() // int(os.environ["LOCAL_WORLD_SIZE"])
    saved = pathlib.Path("/checkpoints") / f"step-{os.environ['JOB']}"
    step = torch.tensor([int(saved.read_text()) if saved.exists() else 0])
    dist.broadcast(step, src=0)
    if rank == 0:
        print(f"{nodes} nodes begin at step {step.item()}", flush=True)
    while step.item() < 4 * int(os.environ["SECONDS"]):
        time.sleep(0.25)
        total = torch.ones(1)
        dist.all_reduce(total)
        assert total.item() == dist.get_world_size()
        step += 1
        if rank == 0:
            saved.write_text(str(step.item()))
    if rank == 0:
        print(f"{nodes} nodes end at step {step.item()}", flush=True)
    dist.destroy_process_group()


def mpi_ranks():
    """All ranks tell each other where they are."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    total = world.allreduce(world.rank + 1)
    hosts = world.allgather(MPI.Get_processor_name())
    print(f"rank {world.rank} of {world.size} on {hosts[world.rank]}: sum {total}, hosts {len(set(hosts))}", flush=True)


def deepspeed_ranks():
    """Data parallel training by DeepSpeed on CPUs: it finds the other ranks by MPI, and all have the same weights in the end."""
    import os

    os.environ["DS_ACCELERATOR"] = "cpu"
    import deepspeed
    import torch
    import torch.distributed as dist

    deepspeed.init_distributed(dist_backend="gloo")
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    config = {"train_micro_batch_size_per_gpu": 8, "zero_optimization": {"stage": 0}}
    engine, *_ = deepspeed.initialize(
        model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), config=config
    )
    torch.manual_seed(dist.get_rank())
    for _ in range(3):
        loss = engine(torch.randn(8, 4)).square().mean()
        engine.backward(loss)
        engine.step()
    weight = engine.module.weight.sum().item()
    print(f"deepspeed rank {dist.get_rank()} of {dist.get_world_size()}: weight {weight:.6f}", flush=True)


def transformers_progress():
    """A Trainer of transformers, unchanged: it reports its progress because the environment says where to."""
    import torch
    from torch.utils.data import Dataset
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    class Tokens(Dataset):
        def __len__(self):
            return 64

        def __getitem__(self, at):
            ids = torch.arange(at, at + 16) % 50
            return {"input_ids": ids, "labels": ids}

    model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=1, n_head=2))
    arguments = TrainingArguments(
        output_dir="/tmp/out", num_train_epochs=6, per_device_train_batch_size=4, logging_steps=2, save_strategy="no",
        use_cpu=True, report_to="all", disable_tqdm=True,
    )
    result = Trainer(model=model, args=arguments, train_dataset=Tokens()).train()
    print(f"trained {result.global_step} steps", flush=True)


def checkpointing():
    """A training that saves its step when it is told to stop, and goes on from there. SECONDS is how long it takes in all."""
    import os
    import pathlib
    import signal
    import sys
    import time

    rank = os.environ["JAX_PROCESS_ID"]
    saved = pathlib.Path("/checkpoints") / f"step-{os.environ['JOB']}-{rank}"
    step = int(saved.read_text()) if saved.exists() else 0
    print(f"rank {rank} begins at step {step}", flush=True)

    def save(*_):
        time.sleep(1)  # a checkpoint takes its time
        saved.write_text(str(step))
        print(f"rank {rank} saves step {step}", flush=True)
        sys.exit(143)

    signal.signal(signal.SIGTERM, save)
    while step < 4 * int(os.environ["SECONDS"]):
        time.sleep(0.25)
        step += 1
    print(f"rank {rank} ends at step {step}", flush=True)


def crashing():
    """A training whose rank 1 fails once, in its fourth second."""
    import os
    import pathlib
    import sys
    import time

    rank, crashed = os.environ["JAX_PROCESS_ID"], pathlib.Path("/checkpoints/crashed")
    print(f"rank {rank} begins", flush=True)
    if rank == "1" and not crashed.exists():
        crashed.touch()
        time.sleep(3)
        print("ValueError: no data", file=sys.stderr, flush=True)
        os._exit(7)
    time.sleep(8)
    print(f"rank {rank} ends", flush=True)

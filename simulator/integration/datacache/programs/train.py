"""Fits y = 3 x + 1 on rows that each rank reads from the cache of its job. It asks the cache as Kubeflow's example does: the head knows which workers have the
rank's share, by the rank and how many there are, and the workers stream it by Arrow Flight.
"""

import os

import pyarrow
import torch
import torch.distributed as dist
from pyarrow import flight

STEPS, RATE = 400, 0.5


def share(rank: int, world: int) -> tuple[pyarrow.Table, set[str]]:
    """The rank's rows, and the workers that have sent them."""
    head = flight.connect(f"grpc://{os.environ['TRAIN_JOB_NAME']}-cache-service:50051")
    info = head.get_flight_info(flight.FlightDescriptor.for_path(str(rank), str(world)))
    parts, workers = [], set()
    for endpoint in info.endpoints:
        for location in endpoint.locations:
            workers.add(location.uri.decode())
            with flight.connect(location.uri) as worker:
                parts.append(worker.do_get(endpoint.ticket).read_all())
    return pyarrow.concat_tables(parts), workers


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    rows, workers = share(rank, world)
    ids = rows["id"].to_pylist()
    print(f"rank {rank} of {world} read {len(ids)} rows from {', '.join(sorted(workers))}", flush=True)
    everyone = [None] * world
    dist.all_gather_object(everyone, ids)
    read = [row for part in everyone for row in part]
    if rank == 0:
        print(f"all ranks read {len(read)} rows, {len(set(read))} different, from {min(read)} to {max(read)}", flush=True)

    x, y = (torch.tensor(rows[name].to_pylist(), dtype=torch.float64) for name in "xy")
    weights = torch.zeros(2, dtype=torch.float64)
    for _ in range(STEPS):
        error = weights[0] * x + weights[1] - y
        gradient = 2 * torch.stack([(error * x).mean(), error.mean()])
        dist.all_reduce(gradient)
        weights -= RATE * gradient / world
    print(f"rank {rank} fitted y = {weights[0]:.2f} x + {weights[1]:.2f}", flush=True)
    dist.destroy_process_group()


main()

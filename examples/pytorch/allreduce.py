"""Every rank brings its number and hears the sum: torch.distributed with gloo, by PyTorch's own variables."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
total = torch.tensor([rank + 1.0])
dist.all_reduce(total)
print(f"rank {rank} of {world}: the sum is {total.item():g}", flush=True)
dist.destroy_process_group()

"""Data sets, samplers and the data loader, under the names of `torch.utils.data`."""

from typing import TYPE_CHECKING, Any

from chainrule.missing_names import submodule
from chainrule.utils.data import dataloader as dataloader
from chainrule.utils.data import dataset as dataset
from chainrule.utils.data import distributed as distributed
from chainrule.utils.data import sampler as sampler
from chainrule.utils.data.dataloader import DataLoader
from chainrule.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from chainrule.utils.data.distributed import DistributedSampler
from chainrule.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from chainrule.utils.data.workers import default_collate, default_convert, get_worker_info

__all__ = [
    "Dataset",
    "IterableDataset",
    "TensorDataset",
    "Subset",
    "ConcatDataset",
    "StackDataset",
    "ChainDataset",
    "random_split",
    "Sampler",
    "SequentialSampler",
    "RandomSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
    "BatchSampler",
    "DistributedSampler",
    "DataLoader",
    "default_collate",
    "default_convert",
    "get_worker_info",
]


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        return submodule(__name__, name)

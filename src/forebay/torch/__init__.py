"""What PyTorch users import: iterators over pipelines. The proxy is in `forebay.torch.proxy`."""

from forebay.deliver.dali_iterator import (
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
    feed_ndarray,
)
from forebay.deliver.iterator import Iterator
from forebay.deliver.last_batch import LastBatchPolicy
from forebay.deliver.ragged import Padded

__all__ = [
    "DALIClassificationIterator",
    "DALIGenericIterator",
    "DALIRaggedIterator",
    "Iterator",
    "LastBatchPolicy",
    "Padded",
    "feed_ndarray",
]

"""The proxy: `Server`, `DataLoader`, `Report` and the references, also under DALI's names."""

from forebay.deliver.proxy.failures import BadSample
from forebay.deliver.proxy.loader import DataLoader
from forebay.deliver.proxy.reference import BatchRef, SampleRef
from forebay.deliver.proxy.report import Report
from forebay.deliver.proxy.server import Server
from forebay.deliver.ragged import Padded

DALIServer = Server
DALIOutputBatchRef = BatchRef
DALIOutputSampleRef = SampleRef

__all__ = [
    "BadSample",
    "BatchRef",
    "DALIOutputBatchRef",
    "DALIOutputSampleRef",
    "DALIServer",
    "DataLoader",
    "Padded",
    "Report",
    "SampleRef",
    "Server",
]

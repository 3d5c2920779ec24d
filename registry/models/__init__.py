"""The models of this app in one list."""

from registry.models.admin_act import AdminAct
from registry.models.benchmark import Benchmark, Subset, SubsetSnapshot
from registry.models.blob import Blob
from registry.models.impl import Impl
from registry.models.run_summary import RunSummary
from registry.models.upload import Upload

__all__ = ["AdminAct", "Benchmark", "Blob", "Impl", "RunSummary", "Subset", "SubsetSnapshot", "Upload"]

"""The packages of the extra `distributed`, imported when first used."""

from chainrule.backend.extensions import LazyModule

_NEEDS = "{}, which is not installed: pip install 'chainrule[distributed]'"

cloudpickle = LazyModule("cloudpickle", _NEEDS.format("cloudpickle"))
dask = LazyModule("dask", _NEEDS.format("Dask"))
dask_delayed = LazyModule("dask.delayed", _NEEDS.format("Dask"))
distributed = LazyModule("distributed", _NEEDS.format("distributed"))
distributed_pickle = LazyModule("distributed.protocol.pickle", _NEEDS.format("distributed"))
distributed_scheduler = LazyModule("distributed.scheduler", _NEEDS.format("distributed"))
threadpoolctl = LazyModule("threadpoolctl", _NEEDS.format("threadpoolctl"))

"""Other names of modules: PyTorch's, which scripts import, and former ones, which pickles hold."""

from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import Any

from chainrule.missing_names import ClassInLowerCase, mend_of_module

_ALIASES_OF_PYTORCH = {
    "": "functional",
    "autograd": "autograd.variable",
    "autograd.modes": "autograd.grad_mode",
    "autograd.node": "utils.hooks",
    "checks": "autograd.gradcheck",
    "func": "nn.utils.stateless",
    "backends.dynamo": "_dynamo _dynamo.config _inductor _inductor.config",
    "hub": "utils.model_zoo",
    "ops.protocols": "utils.dlpack",
    "profiler": "autograd.profiler",
    "nn.modules.embedding": "nn.modules.sparse",
    "nn.modules.normalization": "nn.modules.batchnorm nn.modules.instancenorm",
    "nn.modules.layer": "nn.modules.utils nn.common_types",
    "nn.modules.loss": "nn.modules.adaptive nn.modules.linear_cross_entropy_options",
    "nn.modules.shape": """
        nn.modules.channelshuffle nn.modules.distance nn.modules.flatten nn.modules.fold
        nn.modules.pixelshuffle nn.modules.upsampling""",
    "nn.functional.attention": "nn.attention",
    "nn.functional.flex_attention": "nn.attention.flex_attention nn.attention.bias",
    "nn.utils.norm_hooks": "nn.utils.spectral_norm nn.utils.weight_norm",  # called as functions
    "optim": """
        optim.adadelta optim.adafactor optim.adagrad optim.adamax optim.adamw optim.asgd
        optim.nadam optim.radam optim.rmsprop optim.rprop optim.sparse_adam""",
    "utils.data": "utils.data._utils utils.data._utils.collate",
    "distributions.categorical": """
        distributions.one_hot_categorical distributions.multinomial""",
    "distributions.composite": """
        distributions.independent distributions.mixture_same_family
        distributions.transformed_distribution""",
    "distributions.counts": """
        distributions.bernoulli distributions.binomial distributions.geometric
        distributions.negative_binomial distributions.poisson""",
    "distributions.distribution": "distributions.exp_family distributions.utils",
    "distributions.location_scale": """
        distributions.cauchy distributions.gumbel distributions.laplace distributions.normal
        distributions.studentT distributions.uniform distributions.von_mises""",
    "distributions.multivariate": """
        distributions.lkj_cholesky distributions.lowrank_multivariate_normal
        distributions.multivariate_normal distributions.wishart""",
    "distributions.positive": """
        distributions.chi2 distributions.exponential distributions.fishersnedecor
        distributions.gamma distributions.generalized_pareto distributions.half_cauchy
        distributions.half_normal distributions.inverse_gamma distributions.log_normal
        distributions.pareto distributions.weibull""",
    "distributions.unit_interval": """
        distributions.beta distributions.continuous_bernoulli distributions.dirichlet
        distributions.kumaraswamy distributions.logistic_normal
        distributions.relaxed_bernoulli distributions.relaxed_categorical""",
}
"""PyTorch's modules that are parts of ours, by ours."""

_FORMER_NAMES = {
    # Public functions are found where they are public.
    "": """
        autograd.derivatives control creation.fresh draws fft.spectrograms linalg.low_rank
        ops.added ops.blends ops.broadcasting ops.choosing ops.complexes ops.contraction
        ops.covariance ops.distances ops.exchange ops.exponential ops.finding ops.integers
        ops.joining ops.kinks ops.ordering ops.overwriting ops.places ops.putting ops.quantiles
        ops.questions ops.regions ops.repeating ops.running ops.scattering ops.shaping
        ops.slopes ops.sorting ops.stacking ops.summation ops.trigonometry ops.turning""",
    "compiler": "compiler.exporting",
    "fft": "fft.along fft.frequencies fft.planes fft.several",
    "linalg": "linalg.ranks linalg.systems linalg.triangular",
    "nn.functional": """
        nn.functional.adaptive nn.functional.alignment nn.functional.avg_pooling
        nn.functional.binary nn.functional.channel_norms nn.functional.choices
        nn.functional.class_margins nn.functional.classification
        nn.functional.dropouts nn.functional.embeddings nn.functional.folding
        nn.functional.grids nn.functional.hard nn.functional.layer_norms
        nn.functional.layers nn.functional.margins nn.functional.max_pooling
        nn.functional.rectifiers nn.functional.resizing nn.functional.similarity""",
    "nn.modules.linear": "nn.linear",
    "special": "ops.bessel ops.probability",
    "transforms": "transforms.lanes transforms.lanes.vmap",
    # Types of results, generators and compiled functions are not public.
    "compiler.api": "compiler.function",
    "linalg.deprecated": "linalg.former",
    "linalg.eigen_svd": "linalg.spectra",
    "linalg.ex": "linalg.unchecked",
    "linalg.lu": "linalg.elimination",
    "ops.binary": "ops.pairs",
    "ops.order_statistics": "ops.histograms",
    "ops.reductions": "ops.extrema",
    "ops.sort_search": "ops.sets",
    "ops.statistics": "ops.moments",
    "random.generator": "generators",
}
"""Names by which earlier versions pickled functions and types, by those of today's modules."""

_MODULES = {
    f"chainrule.{alias}": f"chainrule.{today}".removesuffix(".")
    for table in (_ALIASES_OF_PYTORCH, _FORMER_NAMES)
    for today, aliases in table.items()
    for alias in aliases.split()
}
"""Our modules, by other names for them."""


class _Module(ClassInLowerCase):
    """A module that can be called, if it has a function of its own name.

    Importing it sets the attribute of its package that may have been that function.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = getattr(self, self.__name__.rpartition(".")[2], super().__call__)
        return function(*args, **kwargs)

    def __reduce__(self) -> Any:  # cloudpickle packs the modules that code may refer to
        return import_module, (self.__name__,)


class ModuleAliasFinder:
    """Finds and loads modules by their other names: what is in them is in ours."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name in _MODULES:
            loader: Any = self
            return ModuleSpec(name, loader, is_package=True)
        mend = mend_of_module(name)
        if mend:
            raise ModuleNotFoundError(f"No module named {name!r}: {mend}", name=name)
        return None

    def create_module(self, spec: Any) -> Any:
        module: Any = _Module(spec.name)
        today = _MODULES[spec.name]

        def find(name: str) -> Any:
            inner = f"{spec.name}.{name}"
            if inner in _MODULES:
                return import_module(inner)
            return getattr(import_module(today), name)

        module.__getattr__ = find
        return module

    def exec_module(self, module: Any) -> None:
        """Do nothing: names are looked up when they are asked for."""

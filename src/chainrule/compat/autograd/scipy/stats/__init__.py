"""Probability distributions of `scipy.stats`."""

from chainrule.compat.autograd.scipy.stats import beta as beta
from chainrule.compat.autograd.scipy.stats import chi2 as chi2
from chainrule.compat.autograd.scipy.stats import dirichlet as dirichlet
from chainrule.compat.autograd.scipy.stats import gamma as gamma
from chainrule.compat.autograd.scipy.stats import multivariate_normal as multivariate_normal
from chainrule.compat.autograd.scipy.stats import norm as norm
from chainrule.compat.autograd.scipy.stats import poisson as poisson
from chainrule.compat.autograd.scipy.stats import t as t

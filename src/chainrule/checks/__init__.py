"""Checks of derivatives against central differences, and the linter of custom functions."""

from chainrule.checks.gradcheck import gradcheck, gradgradcheck
from chainrule.checks.lint import check
from chainrule.checks.report import CheckReport, GradcheckError, Problem

__all__ = ["gradcheck", "gradgradcheck", "check", "GradcheckError", "CheckReport", "Problem"]

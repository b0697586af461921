"""The functions of SciPy that we call, each imported when it is first called.

The first suggestions of a study are points of a design and need none of them; importing `scipy.linalg`,
`scipy.optimize` and `scipy.special` takes longer than all the rest of such a suggestion.
"""

from __future__ import annotations

from functools import cache, cached_property
from importlib import import_module
from threading import RLock
from typing import Any

from farthing.numerics.threads import limit_what_was_loaded

MODULES = ("scipy.linalg.blas", "scipy.linalg.lapack", "scipy.linalg.cython_lapack", "scipy.optimize", "scipy.special")

_importing = RLock()


class LateFunction:
    """A function of a module that is imported with the first call.

    >>> LateFunction("math", "hypot")(3.0, 4.0)
    5.0
    """

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._function(*args, **named)

    def __repr__(self) -> str:
        return f"{self._module}.{self._name}"

    @cached_property
    def _function(self) -> Any:
        return getattr(imported(self._module), self._name)


@cache
def imported(module: str) -> Any:
    """A module of it. One thread at a time imports: two that begin at different modules could wait for each other."""
    with _importing:
        found = import_module(module)
        limit_what_was_loaded()
    return found


def load() -> None:
    """Import what models need, while nothing else is to be done. Called again in another context, it waits until that
    has been done, and the limit of BLAS threads of that context holds for it."""
    with _importing:
        for module in MODULES:
            import_module(module)
        limit_what_was_loaded()


def _late(module: str, *names: str) -> list[LateFunction]:
    return [LateFunction(module, name) for name in names]


(dsymm,) = _late("scipy.linalg.blas", "dsymm")
dpotrf, dpotri, dpotrs, dtrtrs = _late("scipy.linalg.lapack", "dpotrf", "dpotri", "dpotrs", "dtrtrs")
minimize, nnls = _late("scipy.optimize", "minimize", "nnls")
erfcx, expit, exprel, gammaln, log_ndtr, logsumexp, ndtr, ndtri, ndtri_exp = _late(
    "scipy.special", "erfcx", "expit", "exprel", "gammaln", "log_ndtr", "logsumexp", "ndtr", "ndtri", "ndtri_exp"
)

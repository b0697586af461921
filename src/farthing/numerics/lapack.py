"""Factorisations of large matrices without Python's lock, so that other threads go on meanwhile.

SciPy's functions hold the interpreter's lock while they compute: a run that has to hand out the next trial would wait
for a factorisation in the thread that thinks ahead, 15 milliseconds with 450 observations. SciPy also has the addresses
of the same routines (`scipy.linalg.cython_lapack`), and what ctypes calls runs without the lock. Small matrices go
through SciPy's functions, which are called faster. The results are the same to the last bit.

Matrices are (n, n) and in Fortran order, or are copied to it; only the lower triangle counts.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_char_p, c_int, c_void_p
from functools import cache
from typing import Any

import numpy as np

from farthing.numerics import late_scipy
from farthing.numerics.arrays import Array

LARGE = 2e6  # multiplications, from which on others should not have to wait: half a millisecond

_FORMS = {"dpotrf": "cnmnn", "dpotri": "cnmnn", "dtrtrs": "cccnnmnmnn"}  # characters, numbers and matrices
_KINDS: dict[str, Any] = {"c": c_char_p, "n": ctypes.POINTER(c_int), "m": c_void_p}


def dpotrf(K: Array, *, clean: bool, overwrite: bool = False) -> tuple[Array, int]:
    """The lower factor of K, and 0 if there is one; above it 0 if it is to be clean, else anything."""
    call = _unlocked("dpotrf") if len(K) ** 3 / 3 >= LARGE else None
    if call is None:
        L, failed = late_scipy.dpotrf(K, lower=1, clean=int(clean), overwrite_a=int(overwrite))
        return L, failed
    L, n, info = _own(K, overwrite), c_int(len(K)), c_int()
    call(b"L", byref(n), L.ctypes.data, byref(n), byref(info))
    if clean:
        np.copyto(L, 0.0, where=np.tri(len(L), k=-1, dtype=np.bool_).T)
    return L, info.value


def dpotri(L: Array, *, overwrite: bool = False) -> Array:
    """The lower triangle of K^-1 from the lower factor of K."""
    call = _unlocked("dpotri") if 2 * len(L) ** 3 / 3 >= LARGE else None
    if call is None:
        return np.asarray(late_scipy.dpotri(L, lower=1, overwrite_c=int(overwrite))[0])
    inverse, n = _own(L, overwrite), c_int(len(L))
    call(b"L", byref(n), inverse.ctypes.data, byref(n), byref(c_int()))
    return inverse


def dtrtrs(L: Array, B: Array, *, trans: bool = False) -> Array:
    """L^-1 B, or L^-T B, for B (n, m) or (n,)."""
    call = _unlocked("dtrtrs") if B.ndim == 2 and B.size * len(L) >= LARGE else None
    if call is None:
        return np.asarray(late_scipy.dtrtrs(L, B, lower=1, trans=int(trans))[0])
    L, X = _own(L, overwrite=True), _own(B, overwrite=False)
    n, m, info = c_int(len(L)), c_int(X.shape[1]), c_int()
    transposed = b"T" if trans else b"N"
    call(b"L", transposed, b"N", byref(n), byref(m), L.ctypes.data, byref(n), X.ctypes.data, byref(n), byref(info))
    return X


def _own(A: Array, overwrite: bool) -> Array:
    """A in Fortran order: itself if it may be overwritten and has that order, else a copy."""
    return np.asarray(A, dtype=np.float64, order="F") if overwrite else np.array(A, dtype=np.float64, order="F")


@cache
def _unlocked(name: str) -> Callable[..., None] | None:
    """A routine of LAPACK; None if this SciPy has it in another form."""
    form = _FORMS[name]
    capsule = getattr(late_scipy.imported("scipy.linalg.cython_lapack"), "__pyx_capi__", {}).get(name)
    if capsule is None:
        return None
    signature: bytes = _of_capsule("PyCapsule_GetName", c_char_p, [ctypes.py_object])(capsule)
    found = [argument.strip() for argument in signature.decode().partition("(")[2].rstrip(")").split(",")]
    if len(found) != len(form) or any(_kind(argument) != kind for argument, kind in zip(found, form, strict=True)):
        return None
    address = _of_capsule("PyCapsule_GetPointer", c_void_p, [ctypes.py_object, c_char_p])(capsule, signature)
    kinds: list[Any] = [_KINDS[kind] for kind in form]
    routine: Callable[..., None] = ctypes.CFUNCTYPE(None, *kinds)(address)
    return routine


def _kind(argument: str) -> str:
    """Of an argument as C declares it."""
    return {"char *": "c", "int *": "n"}.get(argument, "m" if argument.endswith("_d *") else argument)


def _of_capsule(name: str, returns: Any, takes: list[Any]) -> Callable[..., Any]:
    """A function of Python itself."""
    prototype = ctypes.PYFUNCTYPE(returns, *takes)
    found: Callable[..., Any] = prototype((name, ctypes.pythonapi))
    return found

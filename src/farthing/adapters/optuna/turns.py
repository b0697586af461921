"""One thread at a time: threads of `optimize(n_jobs=...)` share a sampler and a pruner.

Who waits for its turn sees what the others were proposed. BLAS is limited to one thread meanwhile, for all of the
process: two who did that at once would restore what the other one had set.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from farthing.numerics.threads import one_blas_thread

_turn = RLock()


@contextmanager
def in_turn() -> Iterator[None]:
    with _turn, one_blas_thread():
        yield

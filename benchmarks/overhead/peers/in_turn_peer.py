"""Farthing without asks in the background: python -m benchmarks.overhead.peers.in_turn_peer STUDY (as JSON)"""

from __future__ import annotations

from functools import partial

from benchmarks.overhead.peers.farthing_peer import IN_TURN, study
from benchmarks.overhead.task import serve

if __name__ == "__main__":
    serve(partial(study, **IN_TURN))

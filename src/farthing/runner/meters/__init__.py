"""Meters: what an evaluation spends, other than wall-clock time.

A meter measures one unit of `Budget` (protocol.py). Each kind has a module of its own, named as `meter=...` names it:

    cpu       compute_seconds   CPU seconds of a process and its descendants
    rapl      joules            energy of the processor packages, split by CPU time
    nvidia    joules            energy of the GPUs, split evenly among the processes on each
    energy    joules            rapl and nvidia together, whichever of them this machine has

`timed.py` turns a function of wall-clock seconds into a meter. `choosing.py` decides which meter a run uses.

To add a meter, write a module with a class that follows `Meter`, and add its name to `NAMED` in choosing.py. A unit
that budgets do not know yet is added to `Budget` first (budget.py: a field, `UNITS` and its name in texts).
"""

from farthing.runner.meters.choosing import Gauges as Gauges
from farthing.runner.meters.choosing import MeterLike as MeterLike
from farthing.runner.meters.choosing import Meters as Meters
from farthing.runner.meters.choosing import meters_for as meters_for
from farthing.runner.meters.protocol import Gauge as Gauge
from farthing.runner.meters.protocol import Held as Held
from farthing.runner.meters.protocol import Meter as Meter

"""What happened so far, as policies see it: trials, and the arrays that models are fitted to."""

from farthing.history.history import History as History
from farthing.history.history import Seen as Seen
from farthing.history.history import TrackedTrial as TrackedTrial
from farthing.history.history import units as units
from farthing.history.history import values as values
from farthing.history.ways import Way as Way

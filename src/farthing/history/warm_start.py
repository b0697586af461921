"""What a study took over from earlier ones: their values, where they lie in its own space, and what to begin with.

Like `CostKnowledge` it is no model; it travels with the history to where models are made. A study's file holds it
whole, so that the files of the earlier studies are needed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.numerics.arrays import Array

Json = dict[str, Any]


@dataclass(frozen=True, eq=False)
class EarlierValues:
    """Values of one earlier study, to minimise, at their places in this space (`space.shared`)."""

    study: str  # its name, for people
    names: tuple[str, ...]  # (q,) of the parameters that both spaces have
    places: Array  # (n, q), NaN where inactive
    values: Array  # (n,)

    def as_json(self) -> Json:
        places = [[None if np.isnan(place) else place for place in row] for row in self.places.tolist()]
        return {"study": self.study, "names": list(self.names), "places": places, "values": self.values.tolist()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> EarlierValues:
        places = np.array(stored["places"], dtype=np.float64).reshape(len(stored["values"]), len(stored["names"]))
        values = np.array(stored["values"], dtype=np.float64)
        return cls(stored["study"], tuple(stored["names"]), places, values)


@dataclass(frozen=True, eq=False)
class WarmStart:
    """Earlier studies, and the configurations to begin with, as a file stores them."""

    studies: tuple[EarlierValues, ...] = ()
    first: tuple[Json, ...] = ()

    def as_json(self) -> Json:
        """For the first event of a study."""
        return {"studies": [study.as_json() for study in self.studies], "first": list(self.first)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> WarmStart:
        return cls(tuple(map(EarlierValues.from_json, stored["studies"])), tuple(stored["first"]))

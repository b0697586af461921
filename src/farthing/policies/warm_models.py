"""Models of the values of earlier studies, from which a study was warm-started."""

from __future__ import annotations

from functools import lru_cache

from farthing.history.warm_start import WarmStart
from farthing.space import Space
from farthing.space.shared import shared_features
from farthing.surrogates.trended import Earlier


@lru_cache(maxsize=16)
def earlier_models(space: Space, warm_start: WarmStart | None) -> tuple[Earlier, ...]:
    """What each earlier study predicts: the same at every ask, so computed once."""
    if warm_start is None:
        return ()
    found = []
    for study in warm_start.studies:
        X, columns = shared_features(space, study.names, study.places)
        found.append(Earlier.of(X, study.values, columns, space.groups))
    return tuple(found)

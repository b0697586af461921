"""Which slopes of the observed runs must be held at or below 0, because the data alone leave them in doubt."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from farthing.surrogates.curves import time_kernels
from farthing.surrogates.curves.probes import Probes
from farthing.surrogates.curves.unconstrained import CurveGP

CARRIED = 24  # most slopes of observed runs that are held: with the curves asked for, MOST_VIRTUAL of `paths`
DOUBT = 0.01  # a slope less likely than this to have the wrong sign needs no constraint
CONSIDERED = 4  # times as many doubtful slopes are compared with each other as are carried
ALIKE = 0.98  # correlation given the observations from which one of two slopes is left out


def doubtful(gp: CurveGP, most: int = CARRIED) -> Probes:
    """The slopes of runs that may have the wrong sign without the constraint, the most doubtful first.

    Agrell adds them one by one where the constraint most likely fails. Here all are judged at once. A slope that a more
    doubtful one nearly determines is left out: it would add little and make the draws harder.
    """
    slopes = Probes.slopes(gp.runs[0], time_kernels.virtual_times(gp.hyperparameters.kernel, gp.phi))
    mean, variance = gp.moments(slopes)
    wrong = ndtr(mean / np.sqrt(variance))
    worst = np.argsort(-wrong, kind="stable")[: CONSIDERED * most]
    considered = slopes[worst[wrong[worst] > DOUBT]]
    V = gp.whitened(considered)[1]
    K = gp.prior(considered, considered) - V.T @ V
    K /= np.sqrt(np.outer(np.diag(K), np.diag(K)))
    chosen: list[int] = []
    for i in range(len(considered)):
        if len(chosen) < most and np.all(K[i, chosen] < ALIKE):
            chosen.append(i)
    return considered[np.array(chosen, dtype=np.intp)]

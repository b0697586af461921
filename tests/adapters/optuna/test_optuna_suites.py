"""FarthingSampler is a sampler of Optuna's: it passes the suites that Optuna publishes for samplers."""

import pytest

from farthing.adapters.optuna import FarthingSampler

suites = pytest.importorskip("optuna.testing.pytest_samplers", reason="Optuna publishes its suites from version 5 on")

PLENTY = "1000 evaluations"


class Sampled:
    """Over the sampler that the suites ask for."""

    @pytest.fixture
    def sampler(self):
        return lambda: FarthingSampler(PLENTY, seed=0)


class TestBasic(Sampled, suites.BasicSamplerTestCase):
    pass


class TestRelative(Sampled, suites.RelativeSamplerTestCase):
    pass


class TestSingleObjective(Sampled, suites.SingleOnlySamplerTestCase):
    pass

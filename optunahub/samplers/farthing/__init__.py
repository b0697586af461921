from farthing.adapters.optuna import FarthingPruner, FarthingSampler

__all__ = ["FarthingPruner", "FarthingSampler"]

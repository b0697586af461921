"""Every exception Farthing raises on purpose.

FarthingError
├── InvalidSpace       (also ValueError)   a parameter or space that makes no sense
├── InvalidConfig      (also ValueError)   a configuration that is not in the space
├── InvalidBudget      (also ValueError)   a budget that cannot be read or limits nothing
├── InvalidArgument    (also ValueError)   any other argument outside what is accepted
├── UnknownTrial       (also KeyError)     a report about a trial that is not running
├── NoTrial            (also LookupError)  a best trial was asked for before one succeeded
├── MeterUnavailable   (also RuntimeError) nothing here measures what was asked for
├── NetworkUnavailable (also RuntimeError) the file of the network of training curves is missing or damaged
├── TrainingStopped                        raised inside an objective, by `report(raises=True)`: it should end now
├── EveryTrialFailed   (also RuntimeError) the first trials of a run all failed alike
├── StudyEnded                             there is nothing more to propose
│   ├── BudgetSpent                        a limit of the budget is reached
│   ├── SpaceExhausted                     every allowed configuration was proposed
│   ├── TargetReached                      the value asked for by `stop_at` was found
│   └── NotWorthMore                       no evaluation is worth its cost, by `stop_when_not_worth`
└── StorageError                           a study file that cannot be used
    └── StudyMismatch                      the file holds a different study than the one asked for
"""

from typing import Any


class FarthingError(Exception):
    """The root: catch this to catch everything Farthing raises on purpose."""


class InvalidSpace(FarthingError, ValueError):
    """A parameter or space that makes no sense."""


class InvalidConfig(FarthingError, ValueError):
    """A configuration that is not in the space."""


class InvalidBudget(FarthingError, ValueError):
    """A budget that cannot be read or limits nothing."""


class InvalidArgument(FarthingError, ValueError):
    """Any other argument outside what is accepted."""


class UnknownTrial(FarthingError, KeyError):
    """A report about a trial that is not running."""

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return Exception.__str__(self)


class NoTrial(FarthingError, LookupError):
    """A best trial was asked for before one succeeded."""


class MeterUnavailable(FarthingError, RuntimeError):
    """Nothing here measures what was asked for: a file, a right or a package is missing."""


class NetworkUnavailable(FarthingError, RuntimeError):
    """The file of the network of training curves is missing or damaged."""


class TrainingStopped(FarthingError):
    """Raised inside an objective, by `ft.current_run().report(value, raises=True)`: the training should end now. An
    objective that lets it through has ended as it should."""


class EveryTrialFailed(FarthingError, RuntimeError):
    """The first trials of a run all failed with one type of error; `study` is the study, which holds them."""

    study: Any = None


class StudyEnded(FarthingError):
    """There is nothing more to propose."""


class BudgetSpent(StudyEnded):
    """A limit of the budget is reached."""


class SpaceExhausted(StudyEnded):
    """Every allowed configuration was proposed."""


class TargetReached(StudyEnded):
    """The value asked for by `stop_at` was found."""


class NotWorthMore(StudyEnded):
    """No evaluation is expected to be worth its cost, at the price given by `stop_when_not_worth`."""


class StorageError(FarthingError):
    """A study file that cannot be used."""


class StudyMismatch(StorageError):
    """The file holds a different study than the one asked for."""

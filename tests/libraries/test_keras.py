"""Keras reports to a study after each of its epochs, and stops where the study says so."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from trainings import EPOCHS, data, in_turn, stopped

import farthing as ft


def trained(config, callbacks=()):
    """What Keras says of each epoch."""
    import keras

    keras.utils.set_random_seed(0)
    X, y, U, v = data()
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(config["rate"]), "mse")
    return model.fit(X, y, validation_data=(U, v), epochs=EPOCHS, verbose=0, callbacks=list(callbacks)).history


def callback(*names):
    assert find_spec("farthing.adapters.keras"), "there is no callback for Keras"
    from farthing.adapters.keras import FarthingCallback

    return FarthingCallback(*names)


def test_paused_and_resumed_in_workers_its_curve_is_that_of_keras():
    callback()

    def objective(config):
        trained(config, [callback()])

    study, pauses = in_turn(objective)
    assert (study.trials[0].status, pauses) == (ft.Status.COMPLETE, EPOCHS - 1), study.trials[0].error
    for trial in study.trials:
        own = [float(value) for value in trained(trial.config)["val_loss"]]
        assert trial.curve.values == pytest.approx(own[: len(trial.curve)], rel=1e-4)
    assert "retrained" not in study.ledger.accounts


def test_it_ends_the_training_where_the_policy_stops_it():
    lengths = []
    study = stopped(lambda config: lengths.append(len(trained(config, [callback("loss")])["loss"])))
    assert lengths == [2, 2], study.trials[0].error
    assert [trial.status for trial in study.trials] == [ft.Status.STOPPED] * 2


def test_a_metric_that_is_not_logged_is_an_error_that_says_which_are():
    study = stopped(lambda config: trained(config, [callback("accuracy")]))
    assert "FarthingCallback: monitor: expected one of 'loss', 'val_loss', got 'accuracy'" in study.trials[0].error

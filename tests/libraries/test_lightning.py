"""Lightning reports to a study after each of its epochs, and stops where the study says so."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import pytest
from trainings import EPOCHS, data, in_turn, stopped

import farthing as ft


def trained(config, callbacks=(), package="lightning.pytorch", **options):
    """The values of each epoch's validation, and how many epochs there were."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    pl = import_module(package)

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
            self.values = []

        def _loss(self, batch):
            return torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1])

        def training_step(self, batch, index):
            loss = self._loss(batch)
            self.log("loss", loss, on_step=False, on_epoch=True)
            return loss

        def validation_step(self, batch, index):
            self.log("val_loss", self._loss(batch))

        def on_validation_epoch_end(self):
            if not self.trainer.sanity_checking:
                self.values.append(float(self.trainer.callback_metrics["val_loss"]))

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), config["rate"])

    torch.manual_seed(0)
    X, y, U, v = map(torch.from_numpy, data())
    module = Module()
    trainer = pl.Trainer(
        **{
            "max_epochs": EPOCHS, "accelerator": "cpu", "logger": False, "enable_checkpointing": False,
            "enable_progress_bar": False, "enable_model_summary": False, **options,
        },
        callbacks=list(callbacks),
    )  # fmt: skip
    batches = DataLoader(TensorDataset(X, y), 16), DataLoader(TensorDataset(U, v), 32)
    trainer.fit(module, *batches)
    return module.values, trainer.current_epoch


def callback(monitor="val_loss"):
    assert find_spec("farthing.adapters.lightning"), "there is no callback for Lightning"
    from farthing.adapters.lightning import FarthingCallback

    return FarthingCallback(monitor)


def test_paused_and_resumed_in_workers_its_curve_is_that_of_lightning():
    callback()

    def objective(config):
        trained(config, [callback()])

    study, pauses = in_turn(objective)
    assert (study.trials[0].status, pauses) == (ft.Status.COMPLETE, EPOCHS - 1), study.trials[0].error
    for trial in study.trials:
        own = trained(trial.config)[0]
        assert trial.curve.values == pytest.approx(own[: len(trial.curve)], rel=1e-4)
    assert "retrained" not in study.ledger.accounts


@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
@pytest.mark.parametrize("monitor", ["val_loss", "loss"])
def test_it_ends_the_training_where_the_policy_stops_it(monitor, package):
    """Also where another package brings the Trainer than the one that brings the callback."""
    epochs = []
    study = stopped(lambda config: epochs.append(trained(config, [callback(monitor)], package)[1]))
    assert epochs == [2, 2], study.trials[0].error
    assert [(trial.status, len(trial.curve)) for trial in study.trials] == [(ft.Status.STOPPED, 2)] * 2


@pytest.mark.parametrize("often", [{"val_check_interval": 0.5}, {"check_val_every_n_epoch": 2, "max_epochs": 6}])
def test_it_reports_each_validation_once(often):
    """Twice an epoch, or every second one; not the check before the training."""
    own = []
    study = ft.Study(ft.Space(rate=ft.Real(0.01, 0.2)), "1 evaluation", policy="sobol", seed=0)
    study.run(lambda config: own.append(trained(config, [callback()], **often)[0]), isolate=False, progress=False)
    assert len(own) == 1, study.trials[0].error
    assert study.trials[0].curve.values == pytest.approx(own[0])
    assert len(own[0]) == (2 * EPOCHS if "val_check_interval" in often else 3)


def test_a_metric_that_is_not_logged_is_an_error_that_says_which_are():
    study = stopped(lambda config: trained(config, [callback("accuracy")]))
    assert "FarthingCallback: monitor: expected one of 'val_loss', 'loss', got 'accuracy'" in study.trials[0].error


def test_several_processes_are_refused():
    """Each would report, and only one be told to stop."""
    from lightning.pytorch import Trainer

    trainer = Trainer(accelerator="cpu", devices=2, strategy="ddp", logger=False, enable_checkpointing=False)
    with pytest.raises(ft.errors.InvalidArgument, match="expected a Trainer of one process, got 2"):
        callback().setup(trainer, None, "fit")

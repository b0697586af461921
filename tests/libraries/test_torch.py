"""Training loops of PyTorch in worker processes: paused and resumed, by `yield` and by `report`."""

from __future__ import annotations

from itertools import islice

import pytest
from trainings import EPOCHS, data, in_turn

import farthing as ft


def epochs(config):
    """One after another: the model, its optimiser, and the loss on the validation data."""
    import torch

    torch.manual_seed(0)
    X, y, U, v = map(torch.from_numpy, data())
    model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1))
    optimiser = torch.optim.Adam(model.parameters(), lr=config["rate"])
    for _ in range(EPOCHS):
        model.train()
        for batch in torch.randperm(len(X)).split(16):
            optimiser.zero_grad()
            torch.nn.functional.mse_loss(model(X[batch]), y[batch]).backward()
            optimiser.step()
        model.eval()
        with torch.no_grad():
            loss = torch.nn.functional.mse_loss(model(U), v)
        yield model, optimiser, loss


def yielding(config):
    for _, _, loss in epochs(config):
        yield loss  # a tensor, as users write it


def reporting(config):
    for _, _, loss in epochs(config):
        if ft.current_run().report(loss) is ft.Decision.STOP:
            break


@pytest.mark.parametrize("objective", [yielding, reporting])
def test_paused_and_resumed_in_workers_it_trains_as_it_would_alone(objective):
    """Every epoch depends on all draws of PyTorch's generator before it."""
    assert hasattr(ft.Run, "report"), "there is nothing to report to"
    study, pauses = in_turn(objective)
    assert (study.trials[0].status, pauses) == (ft.Status.COMPLETE, EPOCHS - 1), study.trials[0].error
    for trial in study.trials:
        own = [float(loss) for _, _, loss in islice(epochs(trial.config), len(trial.curve))]
        assert trial.curve.values == pytest.approx(own, rel=1e-4)
    assert "retrained" not in study.ledger.accounts


def test_closed_while_paused_it_goes_on_from_its_checkpoint(tmp_path):
    """No paused process is kept: the state of model, optimiser and generator is saved before each report."""
    assert hasattr(ft.Run, "report"), "there is nothing to report to"

    def objective(config):
        import torch

        run = ft.current_run()
        file = run.checkpoint_dir / "state.pt"
        saved = torch.load(file) if run.step else None
        for epoch, (model, optimiser, loss) in enumerate(epochs(config), start=1):
            if saved is not None and epoch < run.step:
                continue
            if saved is not None and epoch == run.step:
                model.load_state_dict(saved["model"])
                optimiser.load_state_dict(saved["optimiser"])
                torch.set_rng_state(saved["generator"])
                continue
            state = {"model": model.state_dict(), "optimiser": optimiser.state_dict()}
            torch.save({**state, "generator": torch.get_rng_state()}, file)
            if run.report(loss, from_step=run.step) is ft.Decision.STOP:
                break

    study, _ = in_turn(objective, paused_limit=0)
    assert study.trials[0].status is ft.Status.COMPLETE, study.trials[0].error
    assert study.trials[0].attributes["from_step"] == EPOCHS - 1
    own = [float(loss) for _, _, loss in epochs(study.trials[0].config)]
    assert study.trials[0].curve.values == pytest.approx(own, rel=1e-4)
    assert "retrained" not in study.ledger.accounts

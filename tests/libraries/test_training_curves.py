"""The programs that trained the network of training curves: what they draw, and that the library answers as they do."""

from __future__ import annotations

import hashlib
import json
import math
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import farthing as ft
from farthing.surrogates.curves import network as own_network
from farthing.surrogates.curves import tokens as own_tokens
from training.curves import batches, prior, tokens, train
from training.curves.fixture import WEIGHTS, answers, asked_steps, network, small_study
from training.curves.prior import SLOTS, Draw, Studies, studies

TOLERANCE = 1e-3


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """As the rest of the tests: these are small arrays."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class TestPrior:
    @pytest.mark.parametrize("steps", [3, 40, 400])
    def test_draws_have_their_shapes_and_are_finite(self, steps):
        of = studies(Draw(0, "cpu"), 24, 30, steps)
        assert of.x.shape == (24, 30, SLOTS)
        assert of.y.shape == (24, 30, steps)
        assert of.length.shape == (24, 30)
        assert torch.isfinite(of.x).all()
        assert torch.isfinite(of.y).all()
        assert of.x.abs().max() <= math.sqrt(2.0)

    def test_lengths_are_whole_steps_from_none_to_all(self):
        of = studies(Draw(1, "cpu"), 64, 40, 25)
        assert torch.equal(of.length, of.length.round())
        assert of.length.min() == 0.0
        assert of.length.max() == 25.0
        begun = (of.length > 0).sum(1)
        assert begun.min() >= 1
        assert begun.max() < 40, "some are left to ask about"
        assert begun.float().std() > 3.0, "studies of all ages"

    def test_a_seed_gives_the_same_studies_and_another_one_others(self):
        first, again, other = (studies(Draw(seed, "cpu"), 4, 20, 30) for seed in (5, 5, 6))
        for name in ("x", "y", "length"):
            assert torch.equal(getattr(first, name), getattr(again, name))
            assert not torch.equal(getattr(first, name), getattr(other, name))

    def test_studies_are_of_all_kinds(self):
        """In some studies most curves fall, some hardly fall, some have noise, some have ties."""
        y = studies(Draw(2, "cpu"), 200, 20, 50).y
        spread = (y.flatten(1).amax(1) - y.flatten(1).amin(1)).clamp(min=1e-9)[:, None]
        fall = (y[..., 0] - y.cummin(-1)[0][..., -1]) / spread
        up = (y.diff(dim=-1) > 0).float().mean((1, 2))
        equal = (y.diff(dim=-1) == 0).float().mean((1, 2))
        assert fall.median() > 0.1
        assert (fall.median(1)[0] < 0.1).any()
        assert up.min() < 0.1 < 0.3 < up.max()
        assert (equal > 0.3).any()

    def test_hyperparameters_matter_and_what_is_near_behaves_alike(self):
        """Ends of curves differ less between neighbours than between any two, in the median study."""
        of = studies(Draw(3, "cpu"), 200, 60, 20)
        end = of.y.cummin(-1)[0][..., -1]
        distance = torch.cdist(of.x, of.x) + 1e6 * torch.eye(60)
        nearest = distance.argmin(-1)
        near = (end - end.gather(1, nearest)).abs().mean(1)
        far = (end[:, :, None] - end[:, None, :]).abs().mean((1, 2))
        assert (near / far.clamp(min=1e-9)).median() < 0.7

    def test_what_is_drawn_from_shares_comes_as_often_as_they_say(self):
        shares = (0.5, 0.1, 0.4)
        found = torch.bincount(Draw(0, "cpu").one_of(shares, 10_000), minlength=3) / 10_000
        assert torch.allclose(found, torch.tensor(shares), atol=0.03)

    def test_ranks_are_those_of_sorting(self):
        x = Draw(0, "cpu").uniform(3, 50)
        assert torch.equal(prior.ranks(x), x.argsort(-1).argsort(-1))


class TestBatches:
    def test_each_has_a_share_of_every_draw_and_none_is_lost(self):
        draws = [(torch.full((6, 4), float(i)), torch.arange(6.0) + 10.0 * i) for i in range(3)]
        found = list(batches.mixed(draws))
        assert [len(first) for first, _ in found] == [6, 6, 6]
        assert all(sorted(first[:, 0].tolist()) == [0, 0, 1, 1, 2, 2] for first, _ in found)
        assert sorted(torch.cat([second for _, second in found]).tolist()) == sorted(
            torch.cat([second for _, second in draws]).tolist()
        )

    def test_the_same_seed_gives_the_same_batches(self, monkeypatch):
        monkeypatch.setattr(batches, "MIXED", 2)

        def first(seed: int) -> torch.Tensor:
            torch.manual_seed(seed)
            return next(batches.batches(256, "cpu", compiled=False))[0]

        assert torch.equal(first(3), first(3))
        assert first(3).shape[-1] == tokens.WIDTH

    def test_two_compiled_programs_serve_all_sizes(self, monkeypatch):
        """A size that needs another program would cost half a minute of a GPU; so would a break of a graph."""
        compiled = []
        monkeypatch.setattr(
            torch, "compile", partial(torch.compile, backend=lambda graph, _: compiled.append(1) or graph)
        )
        drawing = batches.Drawing("cpu", compiled=True)
        for B, C, T in ((6, 40, 12), (6, 40, 3), (4, 48, 64), (5, 48, 48)):
            seen, *_ = drawing(B, C, T)
            assert seen.shape == (B, C, tokens.WIDTH)
        assert len(compiled) == 2


class TestTheSameInTheLibrary:
    def test_constants(self):
        for name in ("SHARP", "LOW", "HIGH", "BUCKETS", "BELLS", "OF_SEGMENT", "WIDTH"):
            assert getattr(tokens, name) == getattr(own_tokens, name)
        assert tuple(own_tokens.SHARES) == tokens.SHARES
        assert prior.SLOTS == own_tokens.SLOTS

    def test_the_columns_of_a_choice(self):
        """The prior's centred columns, from the features of a space."""
        space = ft.Space(kind=ft.Choice(["a", "b", "c"]), **{f"x{i}": ft.Real(0, 1) for i in range(SLOTS - 3)})
        group = torch.tensor([[-1, -1, -1, *range(3, SLOTS)]])
        ones, zeros = torch.ones(1, 1, SLOTS), torch.zeros(1, 1, SLOTS)
        of = prior.Columns(ones.bool(), zeros, group, zeros)
        raw = Draw(0, "cpu").uniform(1, 5, SLOTS)
        expected = prior.placed(Draw(0, "cpu"), raw, of)[0].numpy()
        chosen = (raw[0, :, :3].argmax(-1).numpy() + 0.5) / 3.0
        U = np.column_stack([chosen, raw[0, :, 3:].numpy()])
        np.testing.assert_allclose(own_tokens.slots(space.features(U), space.groups), expected, atol=1e-6)

    @pytest.mark.parametrize("steps", [3, 50, 1000])
    def test_tokens(self, steps):
        of = small_study(Draw(4, "cpu"), steps, SLOTS)
        x, curves, begun = raw_inputs(of)
        scale = own_tokens.Scale.of(curves)
        found = np.vstack([
            own_tokens.of_begun(x[begun], curves, steps, scale), own_tokens.of_new(x[~begun], steps, int(begun.sum())),
        ])  # fmt: skip
        np.testing.assert_allclose(found, tokens.tokens(of)[0][0].numpy(), atol=2e-4)

    @pytest.mark.parametrize("steps", [3, 50, 1000])
    def test_answers_of_the_weights_in_the_wheel(self, steps):
        for seed in range(3):
            of = small_study(Draw(seed, "cpu"), steps, SLOTS)
            np.testing.assert_allclose(
                own_answers(of, own_network.weights()),
                answers(network(WEIGHTS), of, asked_steps(of))[0].numpy(),
                atol=TOLERANCE,
            )


def raw_inputs(of: Studies) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Columns (c, SLOTS), what each begun training reported, and which are begun: those come first."""
    known = of.length[0].int().numpy()
    curves = [of.y[0, i, :n].double().numpy() for i, n in enumerate(known) if n]
    return of.x[0].double().numpy(), curves, known > 0


def own_answers(of: Studies, weights: own_network.Weights) -> np.ndarray:
    x, curves, begun = raw_inputs(of)
    X, steps = 0.5 + 0.5 * x, asked_steps(of)[0].double().numpy()
    outlook = own_network.CurveOutlook.of(X[begun], curves, of.y.shape[-1], np.arange(SLOTS), weights)
    rows = np.arange(int(begun.sum()))
    return np.concatenate([outlook.begun(rows, steps[begun]), outlook.new(X[~begun], steps[~begun])])


def trained(folder: Path, monkeypatch: pytest.MonkeyPatch, minutes: float, total: float) -> dict:
    """A call of the trainer with a tiny network: what it says of itself."""
    options = (
        f"--size 32 --blocks 1 --tokens 256 --every 1 --device cpu --no-compile --minutes {minutes} --total {total}"
    )
    monkeypatch.setattr("sys.argv", ["train", *options.split(), "--folder", str(folder)])
    train.train(train.parsed())
    return json.loads((folder / "curves.json").read_text())


class TestTraining:
    def test_it_goes_on_where_it_was_and_the_library_reads_what_it_writes(self, tmp_path, monkeypatch):
        monkeypatch.setattr(train, "PART", 40_000)  # so that a checkpoint has several parts
        monkeypatch.setattr(train, "time", SimpleNamespace(time=count(1.0).__next__))  # each look takes a second
        first = trained(tmp_path, monkeypatch, minutes=0.05, total=0.12)
        assert [step for step, _ in first["loss"]] == [1, 2]
        assert len(list(tmp_path.glob("part*"))) > 1
        before = (tmp_path / "curves.npz").read_bytes()

        second = trained(tmp_path, monkeypatch, minutes=1.0, total=0.12)
        assert [step for step, _ in second["loss"]] == [1, 2, 3, 4, 5]
        assert second["loss"][:2] == first["loss"]
        assert second["seconds"] > first["seconds"] > 0
        third = trained(tmp_path, monkeypatch, minutes=1.0, total=0.12)
        assert third["steps"] == second["steps"] == 5, "the time of all calls together is used up"

        data = (tmp_path / "curves.npz").read_bytes()
        assert data != before
        weights = own_network.read(data, hashlib.sha256(data).hexdigest())
        assert weights.blocks == 1
        of = small_study(Draw(8, "cpu"), 30, SLOTS)
        expected = answers(network(tmp_path / "curves.npz"), of, asked_steps(of))[0].numpy()
        np.testing.assert_allclose(own_answers(of, weights), expected, atol=TOLERANCE)

    def test_it_learns(self):
        """The loss on studies of one draw falls when a tiny network is trained on it."""
        torch.manual_seed(0)
        draw, net = Draw(0, "cpu"), train.CurveNetwork(32, 1)
        with torch.no_grad():
            parts = batches.example(draw, studies(draw, 8, 40, 20))
        optimiser = torch.optim.AdamW(net.parameters(), lr=3e-3)
        losses = []
        for _ in range(30):
            loss = train.loss_of(net, parts, "cpu")
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(float(loss.detach()))
        assert losses[-1] < losses[0] - 0.3

    def test_times_that_are_asked_for_are_later_than_what_is_known(self):
        draw = Draw(0, "cpu")
        of = studies(draw, 8, 40, 20)
        t = batches.asked_times(draw, of)
        assert t.shape == (8, 40, batches.ASKED)
        assert torch.all(t * 20 >= of.length.clamp(min=1.0)[..., None] - 1e-4)
        assert torch.all(t <= 1.0)
        assert torch.all(t[..., 0] == 1.0)

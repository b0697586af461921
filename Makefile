# Every target makes the environment it needs by itself: on a machine with Python 3.11 or newer and make, each of
# them works as the first command ever typed.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check format bench-latency bench-quality bench-blackbox bench-batches \
	bench-cost-models bench-cost-transfer bench-levels bench-bopt-toy \
	bench-bopt-synthetic bench-bopt-curves bench-asks bench-failures bench-throughput bench-runner bench-extrapolation bench-bapi \
	bench-sklearn clean help

help:
	@echo "make demo           tune a scikit-learn model under a 30-second budget"
	@echo "make test           all checks and tests"
	@echo "make check          ruff, mypy, import directions"
	@echo "make format         let ruff rewrite the code"
	@echo "make bench-latency  seconds per suggestion beside GPSampler and BoTorch   (QUICK=1: short)"
	@echo "make bench-quality  regret after 60 evaluations beside GPSampler          (QUICK=1: short)"
	@echo "make bench-blackbox regret for a budget of cost on 12 real tables beside its peers (QUICK=1: short)"
	@echo "make bench-batches  the same in batches of 1 to 16                          (QUICK=1: short)"
	@echo "make bench-cost-models    error of cost models against the number of evaluations      (QUICK=1: short)"
	@echo "make bench-cost-transfer  cost learned on other data sets against cost learned online (QUICK=1: short)"
	@echo "make bench-levels   where rules end the fast period of real training curves"
	@echo "make bench-bopt-toy the joint surrogate of two levels on the paper's toy and on synthetic functions"
	@echo "make bench-bopt-synthetic  two levels on synthetic functions beside EQIE, TPE, BOHB and SMAC (QUICK=1: short)"
	@echo "make bench-bopt-curves     two levels on real learners, live (QUICK=1: short; MNIST=FILE.npz or MNIST=fetch)"
	@echo "make bench-asks     what an ask takes under each policy, one and in batches (QUICK=1: short)"
	@echo "make bench-failures    failures and regret next to a crashing region, beside Optuna       (QUICK=1: short)"
	@echo "make bench-throughput  trials per second of long studies beside Optuna (QUICK=1: short; FOLDER=DIR: files there)"
	@echo "make bench-runner      how far budgets are overrun beside Optuna and FLAML; parallel workers (QUICK=1: short)"
	@echo "make bench-extrapolation  ends of training curves from their first fifth (LCBENCH=FOLDER; QUICK=1: short)"
	@echo "make bench-bapi        iterative learners under a budget, beside their peers (LCBENCH=FOLDER; QUICK=1: short)"
	@echo "make bench-sklearn     FarthingSearchCV beside scikit-learn's searches and Optuna's, equal seconds (QUICK=1: short)"
	@echo "make clean          remove the environments"

demo: .venv/demo.stamp
	$(BIN)/python -m farthing.problems.demo

test: check
	$(BIN)/python -m pytest -n auto

check: .venv/test.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_imports.py

format: .venv/test.stamp
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench-latency: .venv/demo.stamp
	$(BIN)/python benchmarks/latency.py

bench-quality: .venv/demo.stamp
	$(BIN)/python benchmarks/quality.py

bench-blackbox: .venv/demo.stamp
	$(BIN)/python benchmarks/blackbox.py

bench-batches: .venv/demo.stamp
	$(BIN)/python benchmarks/blackbox.py --batches

bench-cost-models: .venv/demo.stamp
	$(BIN)/python benchmarks/cost_models.py

bench-cost-transfer: .venv/demo.stamp
	$(BIN)/python benchmarks/cost_transfer.py

bench-levels: .venv/demo.stamp
	$(BIN)/python benchmarks/levels.py

bench-bopt-toy: .venv/demo.stamp
	$(BIN)/python benchmarks/bopt_toy.py

bench-bopt-synthetic: .venv/demo.stamp
	$(BIN)/python benchmarks/bopt_synthetic.py

bench-bopt-curves: .venv/demo.stamp
	$(BIN)/python benchmarks/bopt_curves.py $(if $(MNIST),--mnist $(MNIST))

bench-asks: .venv/demo.stamp
	$(BIN)/python benchmarks/asks.py

.venv/pip.stamp:
	@echo "Making .venv ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Farthing needs Python 3.11 or newer; say where it is: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@touch $@

.venv/demo.stamp: .venv/pip.stamp pyproject.toml
	@echo "Installing Farthing and scikit-learn into .venv ..."
	@$(BIN)/python -m pip install --quiet --editable ".[demo]"
	@touch $@

.venv/test.stamp: .venv/demo.stamp
	@echo "Installing what the tests need into .venv ..."
	@$(BIN)/python -m pip install --quiet --group test --group check
	@touch $@

bench-failures: .venv/demo.stamp
	$(BIN)/python benchmarks/failures.py

bench-throughput: .venv/demo.stamp
	$(BIN)/python benchmarks/throughput.py $(if $(FOLDER),--folder $(FOLDER))

bench-runner: .venv/demo.stamp
	$(BIN)/python benchmarks/overrun.py

bench-extrapolation: .venv/demo.stamp
	$(BIN)/python benchmarks/extrapolation.py $(if $(LCBENCH),--data $(LCBENCH))

bench-bapi: .venv/demo.stamp
	$(BIN)/python benchmarks/bapi.py $(if $(LCBENCH),--data $(LCBENCH))

bench-sklearn: .venv/demo.stamp
	$(BIN)/python benchmarks/sklearn_search.py

clean:
	rm -rf .venv .venvs

# Every target makes the environment it needs by itself: on a machine with Python 3.11 or newer and make, each of
# them works as the first command ever typed. Only train-curves needs more: a GPU, and a Python with PyTorch.

PYTHON ?= python3
BIN := .venv/bin
LIBRARIES := .venvs/libraries

EXPERIMENTS := latency quality asks scale cluster auto blackbox batches failures curves bapi finishing bopt-synthetic \
	bopt-curves bopt-toy levels extrapolation cost-models cost-transfer warm-start sklearn runner start overhead \
	throughput attack papers worth ray optuna

define NEW_ENOUGH
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Farthing needs Python 3.11 or newer; say where it is: make PYTHON=/path/to/python3"; exit 1; }
endef

.PHONY: help demo test test-libraries check format house train-curves record-curves clean $(addprefix bench-,$(EXPERIMENTS))

help:
	@echo "make demo     tune a scikit-learn model under a 30-second budget"
	@echo "make test     run all checks and tests but those of the next line"
	@echo "make test-libraries   run the tests with PyTorch, Keras and Lightning, in an environment of their own"
	@echo "make check    run ruff and mypy, and check the directions of imports"
	@echo "make format   let ruff rewrite the code"
	@echo "make house    sizes of files and functions, import cycles, and how far one ask and tell walks"
	@echo "make train-curves   train the network of training curves (training/README.md); needs a GPU, and a Python with"
	@echo "                    PyTorch: PYTHON=/path/to/python; MINUTES=8 TOTAL=24: of this call, and of all calls"
	@echo "make record-curves KIND=cnn   record training curves for bench-curves: sgd, mlp, boosting, folds, cnn, sequence, control"
	@echo "make clean    remove the environments"
	@echo
	@echo "Experiments. Each writes a page of docs/; with QUICK=1 it takes minutes and only prints."
	@echo "Speed of suggestions"
	@echo "  make bench-latency         time per suggestion, compared with Optuna's GPSampler and BoTorch"
	@echo "  make bench-asks            time per suggestion of each policy, alone, in batches, and with training curves"
	@echo "  make bench-scale           time and memory per suggestion with 100 to 10,000 observations, compared with Optuna"
	@echo "  make bench-cluster         decisions per second and the ledger with up to 10,000 workers of a simulated cluster"
	@echo "Quality of suggestions"
	@echo "  make bench-quality         regret after 60 evaluations, compared with GPSampler"
	@echo "  make bench-auto            Farthing as it is, compared with peers, on tables and models that are trained live"
	@echo "                             (DATA=FOLDER adds tables and LCBench, and the page is written; WORKERS=N)"
	@echo "  make bench-blackbox        regret under a budget of cost on 12 tables of real trainings, compared with peers"
	@echo "  make bench-optuna          FarthingSampler in Optuna on these tables, compared with TPE, GPSampler and Farthing alone"
	@echo "  make bench-batches         the same in batches of 1 to 16"
	@echo "  make bench-failures        failed trials and regret next to a region that crashes, compared with Optuna"
	@echo "  make bench-worth           budget saved and value lost by stopping when it is not worth it; what more budget brings"
	@echo "  make bench-papers          our defaults compared with the papers' forms (LCBENCH=FOLDER adds networks; WORKERS=N)"
	@echo "Learners that train step by step"
	@echo "  make bench-curves          recorded training curves of real learners under a budget, compared with peers"
	@echo "                             (LCBENCH=FOLDER adds LCBench, and the pages are written; WORKERS=N)"
	@echo "  make bench-bapi            iterative learners under a budget, compared with peers (needs LCBENCH=FOLDER)"
	@echo "  make bench-finishing       studies that end with the best trained to its end, and at what cost (LCBENCH=FOLDER)"
	@echo "  make bench-bopt-synthetic  two levels of training on synthetic functions, compared with peers"
	@echo "  make bench-bopt-curves     two levels of training on real learners (MNIST=FILE.npz or MNIST=fetch adds MNIST)"
	@echo "  make bench-bopt-toy        accuracy of the model of two levels"
	@echo "  make bench-levels          where rules end the fast period of real training curves"
	@echo "  make bench-extrapolation   predicting the ends of training curves, by processes and the network (LCBENCH=FOLDER)"
	@echo "Models of cost"
	@echo "  make bench-cost-models     error of cost models after n evaluations"
	@echo "  make bench-cost-transfer   costs learned on other data sets, compared with costs learned on this one"
	@echo "  make bench-warm-start      studies that begin from earlier ones, compared with studies that do not"
	@echo "Searches and the runner"
	@echo "  make bench-sklearn         FarthingSearchCV, compared with the searches of scikit-learn and Optuna"
	@echo "  make bench-runner          how far budgets of seconds are overrun, compared with Optuna and FLAML; workers"
	@echo "  make bench-start           how much of a budget goes into starting processes, compared with Optuna"
	@echo "  make bench-overhead        how much of the time a worker computes, compared with Optuna and FLAML; prepared asks"
	@echo "  make bench-throughput      trials per second of long studies, compared with Optuna (FOLDER=DIR: files there)"
	@echo "  make bench-ray             trials per second with 1 to 8 workers on a Ray cluster"
	@echo "  make bench-attack          kills, damaged files, hostile objectives, files of strangers: what holds"
	@echo "Each system gets an environment of its own; BENCHMARK_PYTHON=/path/to/python uses that one for all, as it is."

demo: .venv/demo.stamp
	$(BIN)/python -m farthing.problems.demo

test: check
	$(BIN)/python -m pytest -n $$(($$(nproc 2>/dev/null || echo 2) + 1)) --dist worksteal  # many tests wait

test-libraries: $(LIBRARIES)/made.stamp
	$(LIBRARIES)/bin/python -m pytest tests/libraries

check: .venv/test.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_imports.py

house: .venv/demo.stamp
	$(BIN)/python checks/house.py

format: .venv/test.stamp
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

train-curves:
	@$(PYTHON) -c 'import sys, numpy, torch; sys.exit(not torch.cuda.is_available())' || { echo "Training the network needs a GPU, PyTorch and NumPy; say which Python has them: make train-curves PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m training.curves.train $(if $(MINUTES),--minutes $(MINUTES)) $(if $(TOTAL),--total $(TOTAL)) $(if $(TOKENS),--tokens $(TOKENS)) $(if $(RATE),--rate $(RATE))

bench-latency bench-quality bench-asks bench-scale bench-cluster bench-blackbox bench-failures bench-bopt-synthetic bench-bopt-toy bench-levels \
bench-cost-models bench-cost-transfer bench-warm-start bench-start bench-worth bench-overhead bench-optuna: bench-%: .venv/demo.stamp
	$(BIN)/python -m benchmarks.$(subst -,_,$*)

bench-auto: .venv/demo.stamp
	$(BIN)/python -m benchmarks.auto $(if $(DATA),--data $(DATA)) $(if $(WORKERS),--workers $(WORKERS))

bench-batches: .venv/demo.stamp
	$(BIN)/python -m benchmarks.blackbox --batches

bench-bapi bench-extrapolation bench-finishing: bench-%: .venv/demo.stamp
	$(BIN)/python -m benchmarks.$* $(if $(LCBENCH),--data $(LCBENCH))

bench-papers bench-curves: bench-%: .venv/demo.stamp
	$(BIN)/python -m benchmarks.$* $(if $(LCBENCH),--data $(LCBENCH)) $(if $(WORKERS),--workers $(WORKERS))

record-curves: .venv/demo.stamp
	$(BIN)/python -m benchmarks.curves.record $(KIND)

bench-bopt-curves: .venv/demo.stamp
	$(BIN)/python -m benchmarks.bopt_curves $(if $(MNIST),--mnist $(MNIST))

bench-sklearn: .venv/demo.stamp
	$(BIN)/python -m benchmarks.sklearn_search

bench-runner: .venv/demo.stamp
	$(BIN)/python -m benchmarks.runner_budgets

bench-throughput: .venv/demo.stamp
	$(BIN)/python -m benchmarks.throughput $(if $(FOLDER),--folder $(FOLDER))

bench-ray: .venv/demo.stamp
	$(BIN)/python -m benchmarks.ray_cluster

bench-attack: .venv/demo.stamp
	$(BIN)/python -m benchmarks.attack

clean:
	rm -rf .venv .venvs

.venv/pip.stamp:
	@echo "Making .venv ..."
	@$(NEW_ENOUGH)
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

$(LIBRARIES)/made.stamp: tests/libraries/requirements.txt pyproject.toml
	@echo "Installing Farthing, PyTorch, Keras and Lightning into $(LIBRARIES) ..."
	@$(NEW_ENOUGH)
	@$(PYTHON) -m venv $(LIBRARIES)
	@$(LIBRARIES)/bin/python -m pip install --quiet --requirement tests/libraries/requirements.txt --editable .
	@touch $@

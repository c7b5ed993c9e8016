# Everything installs itself into .venv; nothing is installed twice unless its list changes.
# Two test processes share the machine: torch (MKL_...) and BLAS get one thread each in them.
PYTHON ?= python3
PIP := .venv/bin/python -m pip --disable-pip-version-check
SOURCES := src tests benchmarks examples docs
# An incomplete environment is removed, or the next try would use it.
NEW_VENV = @$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "shiftcal needs Python 3.11 or later; $(PYTHON) is older. Run: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }; \
	test -x .venv/bin/python || $(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }

# The package has a compiled part. It is built in the environment itself, because an editable install
# rebuilds it from there when a C file changes.
define INSTALL
@command -v $${CC:-cc} >/dev/null || { echo "shiftcal is compiled when it is installed and needs a C \
	  compiler. Install gcc or clang, or set CC." >&2; exit 1; }
$(NEW_VENV)
@test -e "$$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" \
	  || { echo "shiftcal is compiled and needs the headers of Python. Install python3-dev." >&2; exit 1; }
$(PIP) install --quiet 'meson-python>=0.18' 'ninja>=1.11' 'setuptools>=70.1'
PATH="$(CURDIR)/.venv/bin:$$PATH" $(PIP) install --quiet --no-build-isolation -c constraints.txt -e
endef

# import-linter reads the sources, which it does not find through an editable install.
LINT_IMPORTS = import sys; sys.path.insert(0, "src"); \
  sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in type(f).__module__]; \
  from importlinter.cli import lint_imports_command; lint_imports_command()

.PHONY: help demo test test-all check lint format docs packages packages-all integrations golden frozen sanitize bench clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    the effect on a real network under nine shifts, in seconds"
	@echo "make test    run the tests, except slow ones"
	@echo "make test-all   all tests: whole studies, kills at every step, real networks"
	@echo "make check   format, lint, types, import contract, docs, tests"
	@echo "make packages   build sdist and wheel, install them with each extra alone and at the oldest versions"
	@echo "make packages-all   the same with slow tests and other versions of Python"
	@echo "make integrations   test with torchmetrics, Lightning, transformers and MLflow"
	@echo "make format  format the code; make lint only looks; make docs builds the site"
	@echo "make golden  record the pixels of every corruption again; make clean removes what was built"
	@echo "make frozen  record public names and options again, after an intended change"
	@echo "make sanitize   test the kernels under sanitisers"
	@echo "make bench   measure speed against other packages"

demo: .venv/core.stamp
	.venv/bin/shiftcal demo

test: .venv/dev.stamp
	MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv/bin/pytest -n auto -m 'not slow'

test-all: .venv/dev.stamp
	MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv/bin/pytest -n auto

check: lint docs test

lint: .venv/dev.stamp
	.venv/bin/ruff format --check $(SOURCES)
	.venv/bin/ruff check $(SOURCES)
	.venv/bin/mypy
	.venv/bin/python -c '$(LINT_IMPORTS)'

format: .venv/dev.stamp
	.venv/bin/ruff format $(SOURCES)
	.venv/bin/ruff check --fix $(SOURCES)

docs: .venv/dev.stamp
	.venv/bin/zensical build --clean --strict

packages: .venv/dev.stamp
	rm -rf .venv-packages
	.venv/bin/pytest -n auto -m 'not slow' --durations=10 tests/packaging

packages-all: .venv/dev.stamp
	rm -rf .venv-packages
	.venv/bin/pytest -n auto --durations=10 tests/packaging

# The packages of .venv and those that would change them, in an environment on top of it.
integrations: .venv-integrations/integrations.stamp
	MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv-integrations/bin/python -m pytest -n auto --durations=10 tests/integrations

# Kernels compiled with the address and undefined-behaviour sanitisers, under the tests that call them.
sanitize: .venv/dev.stamp
	test -e build/sanitize/build.ninja || PATH="$(CURDIR)/.venv/bin:$$PATH" meson setup build/sanitize \
	  -Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=debugoptimized
	.venv/bin/ninja -C build/sanitize
	for simd in baseline avx2 avx512; do \
	  LD_PRELOAD="$$(cc -print-file-name=libasan.so) $$(cc -print-file-name=libubsan.so)" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 SHIFTCAL_SIMD=$$simd \
	  .venv/bin/python tests/support/sanitized.py build/sanitize/_kernels.abi3.so \
	  tests/numerics tests/golden tests/metrics tests/monitoring/test_monitor.py \
	  tests/properties/test_corruption_properties.py tests/contracts/test_corruption_contract.py \
	  || exit 1; \
	done

golden: .venv/dev.stamp
	.venv/bin/python tests/golden/write.py

frozen: .venv/dev.stamp
	.venv/bin/python tests/frozen/write.py

bench: .venv-bench/bench.stamp .venv-peers-imagecorruptions/peers.stamp .venv-peers-others/peers.stamp .venv-peers-scoring/peers.stamp
	.venv-bench/bin/python benchmarks/speed/fresh.py
	.venv-bench/bin/python benchmarks/speed/temperature.py
	.venv-bench/bin/python benchmarks/speed/ece.py
	.venv-bench/bin/python benchmarks/speed/corruptions.py
	.venv-bench/bin/python benchmarks/speed/corruptions_memory.py
	.venv-bench/bin/python benchmarks/speed/scoring.py
	.venv-bench/bin/python benchmarks/speed/sharding.py
	.venv-bench/bin/python benchmarks/speed/monitor.py
	.venv-bench/bin/python benchmarks/speed/study.py
	.venv-bench/bin/python benchmarks/speed/adaptation.py

clean:
	rm -rf .venv .venv-bench .venv-fresh .venv-integrations .venv-peers-* .venv-packages site build dist

.venv/core.stamp: pyproject.toml meson.build constraints.txt
	@echo "Installing into .venv, once; most of the time goes into downloading numpy, scipy and others."
	$(INSTALL) '.[report,images,onnx]'
	touch $@

.venv/dev.stamp: pyproject.toml meson.build constraints.txt
	$(INSTALL) '.[dev]'
	touch .venv/core.stamp $@

.venv-integrations/integrations.stamp: .venv/dev.stamp tests/integrations/requirements.txt
	rm -rf .venv-integrations
	.venv/bin/python -m venv .venv-integrations
	.venv/bin/python -c 'import site; print("import site; site.addsitedir(%r)" % site.getsitepackages()[0])' \
	  > "$$(.venv-integrations/bin/python -c 'import site; print(site.getsitepackages()[0])')/dev.pth"
	.venv-integrations/bin/python -m pip --disable-pip-version-check install --quiet -c constraints.txt \
	  -r tests/integrations/requirements.txt
	.venv-integrations/bin/python -m pip --disable-pip-version-check install --quiet --no-deps cffconvert
	touch $@

.venv-bench/bench.stamp: pyproject.toml constraints.txt benchmarks/speed/requirements.txt
	test -x .venv-bench/bin/python || $(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip --disable-pip-version-check install --quiet -c constraints.txt \
	  -r benchmarks/speed/requirements.txt meson-python ninja
	PATH="$(CURDIR)/.venv-bench/bin:$$PATH" .venv-bench/bin/python -m pip --disable-pip-version-check \
	  install --quiet --no-build-isolation -e .
	touch $@

.venv-peers-%/peers.stamp: benchmarks/speed/peers/%.txt
	test -x .venv-peers-$*/bin/python || $(PYTHON) -m venv .venv-peers-$*
	.venv-peers-$*/bin/python -m pip --disable-pip-version-check install --quiet -r $<
	touch $@

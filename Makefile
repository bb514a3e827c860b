# Everything a checkout can do. Each target first makes sure that what it needs is there (scripts/setup.sh); called
# again, that costs one look at a stamp file.

# The stamp names the folder: a copied checkout is set up anew, because .venv points to where it was made.
place := $(shell pwd | cksum | cut -d' ' -f1)
# The tables of the command line, made anew when a declaration that they come from has changed.
tables := src/fairlead/client/kinds.json src/fairlead/client/specs.py
runnable := .tools/runnable-$(place) $(tables)
ready := .tools/ready-$(place) $(tables)
python := .venv/bin/python
ARGS ?=
# Those that run, or left something. Of the first the files may be gone already while its programs are not.
clusters = $(sort $(wildcard .tools/cluster) $(patsubst %/layout.json,%,$(wildcard .tools/*/layout.json .tools/*/*/layout.json)))

# Where Python is told to write no bytecode, every process of a run would compile all tests and libraries anew.
unexport PYTHONDONTWRITEBYTECODE

.NOTPARALLEL:
.PHONY: help run test test-kubernetes test-operators test-docker test-containerd test-web check bench serve soak web docs format cluster-up cluster-status cluster-env cluster-down release image system-packages setup clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-16s %s\n", $$1, $$2}' Makefile

run: $(runnable) ## your first training, from nothing to its output
	@scripts/run.sh

test: $(ready) ## all tests (ARGS="-k name" narrows)
	@scripts/test.sh $(ARGS)

test-kubernetes: $(ready) ## the tests on a real cluster, as root; builds it once, some minutes
	@scripts/test-kubernetes.sh $(ARGS)

test-operators: $(ready) ## the tests with Knative, and slow ones, on a cluster, as root; builds it once, some minutes
	@scripts/test-operators.sh $(ARGS)

test-docker: $(ready) ## the tests of containers by Docker, as root on Debian; fetches its engine once
	@scripts/test-docker.sh $(ARGS)

test-containerd: $(ready) ## the tests of containers by containerd, as root; builds nerdctl once, some minutes
	@scripts/test-containerd.sh $(ARGS)

check: $(ready) ## format, lint, types, import contracts, generated files, spelling, links
	@scripts/check.sh

bench: $(ready) ## measure, beside the goals (ARGS="--peers" adds dstack and Slurm)
	@$(python) -m bench $(ARGS)

serve: $(runnable) ## a server in the foreground (ARGS="--port 8080 …")
	@.venv/bin/fairlead serve $(ARGS)

soak: $(ready) ## broken YAML for 5 minutes, 10,000 random policies, 10,000 random clusters, then kill -9 for 10, then as root faults of a cluster for 10 (ARGS="--seed 7 --minutes 30")
	@$(python) -m tests.properties.fuzz_yaml $(ARGS)
	@$(python) -m tests.properties.policy_checks $(ARGS)
	@$(python) -m tests.properties.foresight_checks $(ARGS)
	@$(python) -m tests.e2e.crash $(ARGS)
	@$(python) -m tests.kubernetes.soak $(ARGS)

web: $(runnable) ## the web page, into src/fairlead/web; the server has it at /ui/
	@scripts/web.sh

test-web: $(ready) ## lint, types and tests of the web page, in Debian's Chromium
	@scripts/test-web.sh $(ARGS)

docs: $(ready) ## the documentation as a site in site/, with pictures of the web page if there is Chromium; `make serve` has it at /docs
	@$(python) -m scripts.build_docs --pictures

format: $(ready) ## rewrite formatting and generated files
	@$(python) -m ruff format . && $(python) -m ruff check --fix .
	@$(python) scripts/generate_crds.py && $(python) scripts/generate_chart.py && $(python) scripts/generate_sync_client.py

cluster-up: $(ready) ## a real Kubernetes with KAI on this machine, as root; built on the first call (docs/cluster.md)
	@scripts/system-packages.sh --if-possible
	@$(python) -m deploy.cluster up $(ARGS)

cluster-status: $(ready) ## its programs
	@$(python) -m deploy.cluster status $(ARGS)

cluster-env: $(ready) ## how to reach it: eval "$$(make -s cluster-env)"
	@$(python) -m deploy.cluster env $(ARGS)

cluster-down: $(ready) ## end it and remove all that it made
	@$(python) -m deploy.cluster down $(ARGS)

release: $(ready) ## wheel, source distribution, image, manifests, chart and unit in dist/, checked without the checkout
	@$(python) -m scripts.release

image: docs web ## the server's image as an OCI archive in dist/, without Docker
	@$(python) -m deploy.image $(ARGS)

system-packages: ## install the Debian packages that some tests use (as root)
	@scripts/system-packages.sh

setup: $(ready) ## only install what the checkout needs

clean: ## remove all that these targets made in the checkout; ends its clusters first
	@for folder in $(clusters); do $(MAKE) --no-print-directory cluster-down ARGS="--folder $$folder" || exit; done
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .cache build dist site
	rm -rf src/fairlead/cli/generated $(tables) src/fairlead/web web/node_modules web/src/generated
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.tools/ready-$(place): pyproject.toml uv.lock scripts/setup.sh scripts/install_uv.py
	@scripts/setup.sh
	@rm -f .tools/ready-* .tools/runnable-* && touch $@ .tools/runnable-$(place)

.tools/runnable-$(place): pyproject.toml uv.lock scripts/setup.sh scripts/install_uv.py
	@scripts/setup.sh --run
	@rm -f .tools/runnable-* && touch $@

$(tables) &: $(shell find src/fairlead/model src/fairlead/kinds src/fairlead/formats src/fairlead/engines/declared -name '*.py') src/fairlead/cli/generate.py | .tools/runnable-$(place)
	@$(python) -m fairlead.cli.generate && touch $(tables)

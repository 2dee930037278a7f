# `make help` lists what there is.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
SHELL := /bin/bash
export INFLUXD ?= 2.10
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)

# How many processes run the tests: two have the virtual EVMs, and the others wait more than they compute.
WORKERS ?= $(shell echo $$(( $$(nproc) < 5 ? $$(nproc) + 1 : 6 )))
# $(call selftests,EXPRESSION of markers): side by side, then one by one those that cannot hold beside others.
PYTEST = $(BIN)/pytest selftests --durations=25 --durations-min=1 -rs
selftests = status=0; \
	$(PYTEST) -n $(WORKERS) -m "$(if $(1),$(1) and) not alone" --junitxml=selftests.xml || status=$$?; \
	$(PYTEST) -m "$(if $(1),$(1) and) alone" --junitxml=selftests-alone.xml || status=$$?; \
	exit $$status

.PHONY: help setup environment host-packages compilers image virtual influxd browser programs dashboards gauge demo test check evmtest fasttest coverage lint \
	bench docs guide-html lava-lab lava-lab-down lava-test clean

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## install what is missing: host packages and the Python environment, side by side
	@$(MAKE) --no-print-directory -j2 $(VENV)/.base compilers

compilers:
	@scripts/host-packages virtual-evm/host-packages.txt

environment: $(VENV)/.extras ## the Python environment alone, with all extras: what jobs of a night need

host-packages: ## every host package that a target here may need, as root: for a runner's host or image
	@scripts/host-packages virtual-evm/host-packages.txt selftests/host-packages.txt \
	  selftests/browser-packages.txt scripts/pdf-packages.txt lava-jobs/lab/host-packages.txt

$(VENV)/.bare: scripts/venv
	@scripts/venv $(PYTHON) $(VENV) bare
	@touch $@

$(VENV)/.base: requirements.txt pyproject.toml virtual-evm/pyproject.toml guide-reader/pyproject.toml $(VENV)/.bare
	@scripts/venv $(PYTHON) $(VENV)
	@touch $@

# The virtual EVM that a demo boots: downloaded and built while Python's packages are.
image: compilers $(VENV)/.bare
	@PYTHONPATH=.:virtual-evm $(BIN)/python -c "from evmperf_virtual import image; image.build('virtual', progress=print)"

$(VENV)/.extras: $(VENV)/.base
	@scripts/venv $(PYTHON) $(VENV) requirements.txt
	@touch $@

$(VENV)/.tests: $(VENV)/.base selftests/requirements.txt
	@scripts/venv $(PYTHON) $(VENV) selftests/requirements.txt
	@touch $(VENV)/.extras $@

virtual: setup ## build the virtual EVMs that the tests use (once; cached in ~/.cache/evmperf)
	@$(BIN)/evmperf virtual build virtual virtual-ospi virtual-ipsec virtual-media

# Two clones at work build once.
influxd: ## build InfluxDB's server for the tests (once; cached in ~/.cache/evmperf); INFLUXD=2.7: the older one
	@mkdir -p $(CACHE)/evmperf; flock $(CACHE)/evmperf dashboards/influxd/build $(INFLUXD)

browser: selftests/npm/node_modules/.ready ## install what the tests of report, guide and dashboards need

selftests/npm/node_modules/.ready: selftests/npm/package-lock.json
	@scripts/host-packages selftests/browser-packages.txt
	@scripts/alive "Node packages of the tests" npm ci --prefix selftests/npm
	@touch $@

programs: setup $(VENV)/.tests
	@scripts/host-packages selftests/host-packages.txt scripts/pdf-packages.txt

dashboards: setup ## write the Grafana dashboards and alerts below dashboards/
	@$(BIN)/python -m evmperf.publish.grafana

GAUGE := evmperf/benchmarks/tools/gauge
gauge: ## compile the desk's own program for four machines (clang, lld)
	@set -e; compile() { name=$$1; shift; clang --target=$$@ -O2 -Wall -Wextra -Werror -ffreestanding -fno-builtin \
	  -fno-strict-aliasing -fno-pic -fno-stack-protector -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-ident \
	  -nostdlib -static -fuse-ld=lld -Wl,--strip-all,--build-id=none,-z,noseparate-code,-z,norelro \
	  -DSOURCE="\"$$(sha256sum $(GAUGE)/gauge.c | cut -c1-16)\"" -o $(GAUGE)/$$name.bin $(GAUGE)/gauge.c; \
	  chmod 644 $(GAUGE)/$$name.bin; }; \
	compile x86_64 x86_64-linux-gnu; \
	compile aarch64 aarch64-linux-gnu -mno-outline-atomics; \
	compile armv7l armv7-linux-gnueabihf -mfpu=vfpv3-d16; \
	compile riscv64 riscv64-linux-gnu -mno-relax -march=rv64gc -mabi=lp64d

demo: ## boot the virtual EVM and measure boot time and eMMC: a first look
	@[ -e $(VENV)/.base ] || echo "A first demo downloads about 400 MB and takes about 4 minutes; later ones start in 20 s"
	@$(MAKE) --no-print-directory -j3 $(VENV)/.base image
	$(BIN)/pytest --lg-env virtual.yaml -k "boot_time or uboot_emmc or emmc_raw_fio or (emmc_ext4 and not fio)"

test: virtual influxd browser programs ## every test of the project, on real virtual EVMs
	@scripts/host-packages lava-jobs/lab/host-packages.txt
	@$(call selftests)

check: WORKERS := $(shell echo $$(( $$(nproc) < 5 ? $$(nproc) + 2 : 7 )))
check: lint influxd browser programs ## before a merge: style, types, every test without a virtual EVM
	@$(call selftests,not virtual_evm)

evmtest: virtual influxd browser programs ## the tests on virtual EVMs alone: what `make check` leaves out
	@scripts/host-packages lava-jobs/lab/host-packages.txt
	@$(call selftests,virtual_evm)

fasttest: programs ## the tests that need no virtual EVM, database or browser
	@$(call selftests,not (virtual_evm or many_sessions or influxd or browser))

coverage: virtual influxd browser programs ## what all tests reach of evmperf; the figures go to selftests/coverage.txt
	-@rm -rf build/coverage; mkdir -p build/coverage; $(BIN)/coverage run -m pytest selftests -n $(WORKERS) -q
	@scripts/coverage $(BIN)/coverage

lint: $(VENV)/.tests ## style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: virtual influxd $(VENV)/.tests ## how fast evmperf itself is: ratios measured side by side
	$(BIN)/python -m selftests.speed

RELEASE ?= 11.01
FROM ?= baselines

guide-html: setup $(VENV)/.extras ## the performance guide as a page and PDF: RELEASE=11.01 FROM=baselines
	@scripts/host-packages scripts/pdf-packages.txt
	$(BIN)/evmperf guide --release $(RELEASE) --from $(FROM) --with delta,counts,outliers \
	  --html build/guide --pdf build/guide

docs: $(VENV)/.tests ## the documentation as pages with search, in build/docs
	$(BIN)/python -m sphinx --quiet --fail-on-warning docs build/docs

lava-lab: virtual ## start a whole LAVA here, with two virtual EVMs (once 3 minutes; needs root)
	@scripts/host-packages lava-jobs/lab/host-packages.txt
	@$(BIN)/python -m selftests.support.lavalab up $(BOARD)

lava-lab-down: ## stop it
	@$(BIN)/python -m selftests.support.lavalab down

lava-test: lava-lab $(VENV)/.tests ## the tests on a real LAVA that are too long for `make test`
	$(BIN)/pytest selftests/lava -m "virtual_evm or long_lava_job"

clean: ## remove results and the Python environment, keep the virtual EVM's cache
	rm -rf results $(VENV) build *.egg-info

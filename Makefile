# Every target is quiet unless it fails. `make setup` is stamped: it does again only what a changed file asks for.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --require-hashes
MATURIN := VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/maturin
RUST   := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name '*.lua' -o -name 'Cargo.toml')
# By name, for cargo fmt does not see the modules that a macro declares.
SOURCES := $(filter %.rs,$(RUST))

.PHONY: setup demo builds compiled test lint lint-python lint-rust check format picture fuzz explore faults losses writes simulate bench bench-driver bench-clients bench-lua bench-stall bench-power bench-gates bench-slices bench-search bench-capacity bench-analyse bench-logs bench-fleet wheels release image lock clean

setup: $(VENV)/driver.stamp

# pip installs the rest while apt obtains the compilers and the driver compiles. A fault in the driver shows when
# `maturin develop` takes it up.
$(VENV)/packages.stamp: requirements.txt .ci/prerequisites
	@.ci/prerequisites python $(PYTHON)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@sed -n '/^maturin==/,/# via/p' requirements.txt >$(VENV)/maturin.txt
	@$(PIP) --no-deps -r $(VENV)/maturin.txt
	@$(PIP) -r requirements.txt & packages=$$!; \
		.ci/prerequisites compilers || { kill $$packages; exit 2; }; \
		$(MATURIN) build --release --locked --auditwheel skip --out $(VENV)/wheels >$(VENV)/driver.log 2>&1; \
		wait $$packages
	@touch $@

$(VENV)/driver.stamp: $(VENV)/packages.stamp pyproject.toml $(RUST)
	@$(MATURIN) develop --release --locked >$(VENV)/driver.log 2>&1 \
		|| { cat $(VENV)/driver.log; exit 1; }
	@touch $@

demo: setup
	@$(BIN)/dyno demo

# The whole path of builds, from Debian's source to the report: needs gcc, make, tclsh and patch. Fails unless each
# level ended as the study says.
builds: setup
	@$(BIN)/dyno run studies/sqlite-builds.toml
	@$(BIN)/dyno report --format json | $(BIN)/python -m tests.built_study

# Each of pytest's workers would compile the modules of all tests, at the same time as the others. What cannot be
# collected is told by `make test`. Snapshots that no test asks for here are none that are left over.
$(VENV)/collected.stamp: $(VENV)/driver.stamp
	@unset PYTHONDONTWRITEBYTECODE; ! $(BIN)/pytest --collect-only -qq -p no:syrupy >/dev/null 2>&1 || touch $@

# The sessions' suite is run by pytest, against real servers, as well as by cargo: it is compiled once, here.
compiled: setup
	@$(MAKE) --no-print-directory $(VENV)/collected.stamp & python=$$!; \
		cargo tests --no-run; rust=$$?; \
		wait $$python && [ $$rust -eq 0 ]

# The driver's tests run beside those of all workers, of which conftest.py says how many there are.
# Threads of OpenBLAS spin while they wait, and would take the CPUs from each other.
# A disk that all workers, a linker and a virtual machine's neighbours share answers at times only after seconds, in
# which a short load comes to nothing. So what failed runs once more, alone, and is named; what fails again has failed.
# TESTS are options of pytest that choose a part of its tests, and no Rust is tested then: TESTS='-m place' is the part
# that asks most of the place where it runs.
test: $(if $(TESTS),setup,compiled)
	@$(if $(TESTS),true,cargo tests) >$(VENV)/cargo-test.log 2>&1 & driver=$$!; \
		export OPENBLAS_NUM_THREADS=1; unset PYTHONDONTWRITEBYTECODE; \
		$(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder --progress $(TESTS); python=$$?; \
		wait $$driver; driver=$$?; cat $(VENV)/cargo-test.log; \
		if [ $$python -eq 1 ]; then \
			echo 'What failed beside other tests, alone:'; \
			$(BIN)/pytest --last-failed --exitfirst -vv; python=$$?; \
		fi; \
		[ $$python -eq 0 ] && [ $$driver -eq 0 ]

lint: lint-python lint-rust

lint-python: setup
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/python -m mypy.stubtest dbdyno.driver._driver >$(VENV)/stubtest.log 2>&1 || { cat $(VENV)/stubtest.log; exit 1; }

lint-rust: setup
	@rustfmt --edition 2021 --check $(SOURCES)
	@cargo lint

check: lint
	@$(MAKE) --no-print-directory test

format: setup
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .
	@rustfmt --edition 2021 $(SOURCES)

# The picture of the README, from a stored run.
picture: setup
	@$(BIN)/python -m tests.report.picture

# Hostile input to the protocols' and the scripts' parsers, for minutes rather than in continuous integration. Needs a
# C++ compiler; FUZZ_SECONDS is the time for each target, TARGETS names some of them.
FUZZ_SECONDS ?= 60
fuzz:
	@FUZZ_SECONDS=$(FUZZ_SECONDS) nice -n 10 crates/driver/fuzz/run $(TARGETS)

# A kill, Ctrl-C or a full disk at drawn system calls of every change that Dyno makes of the host, and what happens to
# a store during a run: many minutes each, best as root. FAULTS=0 takes every case.
FAULTS ?= 10400
SEED   ?= 1
faults: setup
	@DYNO_FAULTS=$(FAULTS) DYNO_FAULTS_SEED=$(SEED) nice -n 10 $(BIN)/pytest -q -s tests/host/test_faults.py tests/engines/test_struck.py

# Properties with other examples each time, and more of them than `make test` tries: some minutes. A failure prints the
# line that repeats it.
explore: setup
	@PROPTEST_RNG_SEED=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ') PROPTEST_CASES=20000 \
		nice -n 10 cargo tests
	@nice -n 10 $(BIN)/pytest -n 2 --hypothesis-profile=explore --timeout=1800 $$(grep -rl hypothesis tests --include='test_*.py')

losses: setup
	@DYNO_LOSSES_SEED=$(SEED) nice -n 10 $(BIN)/pytest -q -s tests/records/test_losses.py

# Short forms of the studies of the tree under strace: every path that a run writes to, against those that `dyno plan`
# names. STUDIES names some of them; all take hours.
writes: setup
	@nice -n 10 $(BIN)/python -m tests.host.written $(STUDIES)

# Whole runs on a simulated bench, which faults strike at any step: SEEDS seeds from SEED on. A thousand take some
# minutes. A seed that breaks a promise is printed with the command that repeats it.
SEEDS ?= 10000
simulate: setup
	@nice -n 10 $(BIN)/python -m tests.simulated $(SEED) $(SEEDS)

NEEDS_SYSBENCH = command -v sysbench >/dev/null \
	|| { [ "$$(id -u)" = 0 ] && apt-get install -qq -y sysbench >/dev/null; } \
	|| { echo 'sysbench is not installed: apt-get install sysbench' >&2; exit 1; }

# The driver's cost per operation beside sysbench's, both against one server in one run.
bench-driver: setup
	@$(NEEDS_SYSBENCH)
	@$(BIN)/python -m benches.driver
	@$(BIN)/python -m benches.tpcc

# The same beside sysbench and pgbench, against one PostgreSQL.
bench-clients: setup
	@$(NEEDS_SYSBENCH)
	@$(BIN)/python -m benches.clients $(CLIENTS)

# Scripts of sysbench under the driver beside sysbench itself.
bench-lua: setup
	@$(NEEDS_SYSBENCH)
	@$(BIN)/python -m benches.lua

# Latencies under a server that stands still, against what arithmetic says.
bench-stall: setup
	@$(BIN)/python -m benches.stall

# False alarms on A/A, and how often a server that is held for a known share of the time is found slower: whole
# studies of minutes each, five hours in all. POWER=--quick shows in some minutes that it works.
bench-power: setup
	@$(BIN)/python -m benches.power $(POWER)

# Gates of merge requests that change nothing, as the action for GitHub carries them out: a hundred on each of two
# engines take hours. GATES="--gates 3 --results FILE" carries out three, and goes on with FILE.
bench-gates: setup
	@$(BIN)/python -m benches.gates $(GATES)

bench-slices: setup
	@$(BIN)/python -m benches.slices $(SLICES)

# Searches of surfaces that are known, against random search and one factor at a time. Nothing is measured.
bench-search: setup
	@$(BIN)/python -m benches.search $(SEARCH)

# How near a search for a capacity comes, and how often its interval is wrong. No server is measured.
bench-capacity: setup
	@$(BIN)/python -m benches.capacity

# Seconds and memory of an analysis by its number of records, 1,000 and 10,000 unless ANALYSE="--records 100000" says
# more. No server is measured.
bench-analyse: setup
	@$(BIN)/python -m benches.analyse $(ANALYSE)

# Reads a slow log and a log of PostgreSQL, and has pt-query-digest and pgbadger read the same files where they are on
# the path: LOGS="--statements 1000000 --rounds 5" says how long the logs are.
bench-logs: setup
	@$(BIN)/python -m benches.logs $(LOGS)

# Hosts in namespaces that share a store, and faults that strike them: FLEET="--histories 100 --seed 3" draws others.
# Then what a host costs the store, with up to 1,000 of them, which are only played, and whether a worker changes what
# is measured. Needs root.
bench-fleet: setup
	@$(BIN)/python -m benches.fleet $(FLEET)
	@$(BIN)/python -m benches.fleet_cost
	@$(BIN)/python -m benches.fleet_awake

bench: bench-driver bench-stall

# What can be installed without a compiler: WHEELS is the folder, TARGETS names one platform. Takes as long as the set-up
# for each.
WHEELS ?= dist
wheels: setup
	@test -x $(VENV)/zig/bin/python || $(PYTHON) -m venv $(VENV)/zig
	@$(subst $(BIN),$(VENV)/zig/bin,$(PIP)) -r .ci/wheels.txt
	@PATH="$(CURDIR)/$(VENV)/zig/bin:$$PATH" TARGETS="$(TARGETS)" .ci/wheels $(WHEELS)

# All that a release hands out: the wheels, bills of materials, SHA256SUMS. DRAFT=1 tries it on a tree that is not ready.
release: wheels
	@PATH="$(CURDIR)/$(VENV)/zig/bin:$$PATH" DRAFT="$(DRAFT)" .ci/release $(WHEELS)

# An image, from the wheel in dist/ for this machine, with podman, buildah or docker. BASE is another Debian 12.
image:
	@.ci/image $(BASE)

# Needs uv; the locks hold hashes and no index's address.
lock:
	@uv pip compile pyproject.toml --extra develop --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --quiet --custom-compile-command "make lock" -o requirements.txt
	@uv pip compile --group wheels --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --quiet --custom-compile-command "make lock" -o .ci/wheels.txt

clean:
	@rm -rf $(VENV) target .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@rm -rf src/dbdyno/driver/_driver*.so src/dbdyno/examples

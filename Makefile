# `make demo` and `make test` are all that a newcomer needs; `make help` lists the rest.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Where cargo puts what it builds.
BIN := $(abspath $(or $(CARGO_TARGET_DIR),target))/debug

# Always the whole workspace: a single package would be built with other features, and everything below it again.
CARGO_TEST := INSTA_UPDATE=no cargo test --locked --workspace

.PHONY: help demo test test-vm unit controlplane scenarios check docs bench bench-api bench-node fuzz crds toolchain

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

demo: toolchain ## show what Egret does, on an example cluster
	@test -f examples/demo.sh || { echo 'make demo: examples/demo.sh is missing' >&2; exit 1; }
	@echo 'Building egret (a few minutes the first time, then seconds) ...' >&2
	@cargo build --quiet --locked --bin egret
	@sh examples/demo.sh "$(BIN)/egret"

# The tests need the scenarios binary, so it has been built with them; `cargo run` would build much of it again, with
# fewer features.
test: unit ## run every test, then the scenarios
	@"$(BIN)/scenarios"

test-vm: toolchain ## run the packet tests on Debian's stock kernel, in an emulated machine [VM_TESTS=names]
	@vm/run "$$($(CARGO_TEST) --no-run --test packets 2>&1 | sed -n 's/.*Executable .*(\(.*\))$$/\1/p')" \
		--test-threads=2 --skip churn --skip timing $(VM_TESTS)

unit: toolchain controlplane ## run every test that cargo knows
	@$(CARGO_TEST) --no-fail-fast -- --quiet

# Tests would build it themselves, but cargo would call them slow meanwhile.
controlplane: ## build the etcd, Kubernetes and CNI plugins that tests run against, once, outside the checkout
	@test -n "$$KUBEBUILDER_ASSETS" || controlplane/build >/dev/null
	@controlplane/cni/build >/dev/null

scenarios: toolchain ## play the scenarios through the controller [DIR=folder] [THROUGH=memory|api]
	@cargo build --quiet --locked --workspace --bin scenarios
	@"$(BIN)/scenarios" --through $(or $(THROUGH),memory) $(DIR)

check: toolchain ## check format, lints, licences, dependencies and generated files
	@echo 'format'
	@cargo fmt --all --check
	@cargo fmt --manifest-path fuzz/Cargo.toml --check
	@echo 'lints'
	@cargo clippy --quiet --locked --workspace --all-targets -- --deny warnings
	@echo 'licences, dependencies, generated files, what no file may mention'
	@$(CARGO_TEST) --quiet --test workspace
	@pending=$$(git ls-files --others -- '*.snap.new' '*.pending-snap'); test -z "$$pending" || \
		{ printf 'these snapshots wait for a review (cargo insta review):\n%s\n' "$$pending" >&2; exit 1; }

docs: ## build the documentation site, strictly, into site/
	@.ci/docs

bench: toolchain ## measure how long decisions take
	@cargo bench --locked --bench targets

bench-api: toolchain controlplane ## measure the controller on a real API server, with probes, and what it costs
	@cargo build --quiet --locked --release --bin egret
	@cargo run --quiet --locked --bin bench-api -- "$(dir $(BIN))release/egret"

bench-node: toolchain ## measure the agent on a node made of namespaces, and what a packet costs
	@cargo test --quiet --locked --release -p egret-cli --test packets --test whole -- --ignored --nocapture --test-threads=1 timing \
		| grep -E 'target|  of a|without Egret|FAILED'

fuzz: toolchain ## feed random input to what reads it [WHAT=manifest|selector|annotation] [FOR=seconds]
	@cargo fuzz --version >/dev/null 2>&1 || \
		{ echo 'make fuzz needs cargo-fuzz: cargo install cargo-fuzz --locked' >&2; exit 1; }
	@mkdir -p fuzz/corpus/$(WHAT)
	@RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none $(WHAT) fuzz/corpus/$(WHAT) fuzz/seeds/$(WHAT) \
		-- -max_total_time=$(FOR)
fuzz: WHAT := manifest
fuzz: FOR := 60

crds: toolchain ## print the custom resource definitions
	@cargo run --quiet --locked --bin egret -- crds

toolchain:
	@sh .ci/toolchain

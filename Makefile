# run    builds, then a tuning run on the virtual GPU and one on a recorded space: leaderboard,
#        exported header, header compiled
# install  puts `tuner` into ~/.cargo/bin and its manual beside it, or with PREFIX=DIR into DIR
# test   every test
# nightly  the commands of README.md with their budgets and every kernel, a fleet under 200 kills, every
#          fault of the file system; the wheel in a fresh environment; some hours
# bench  the figures of docs/evidence/measurements.md
# lint   formatting, clippy, rustdoc, licences, all with warnings denied
# style  the same without the licences, which are one of the tests
# release  the program with its bill of materials and their hashes, in target/release
# sbom   the bill of materials alone (CycloneDX 1.6, JSON): target/tuner.cdx.json
# nvrtc  get NVIDIA's run-time compiler into the user's data folder where the machine has none
# nats   get a nats-server into .nats, for the tests of fleets
# python get NumPy and pytest into .python-tests, for the tests of python/
# wheel  the Python wheel with the program inside, in target/wheels; ZIG=1 links against an old glibc;
#        scripts/check-wheel installs it and runs examples

CARGO ?= cargo
# Many tests wait for a clock or another process: two more than there are cores keep the cores busy.
TEST_THREADS ?= $(shell expr $$(nproc 2>/dev/null || echo 2) + 2)

.PHONY: run install test nightly bench lint style release sbom nvrtc nats python wheel

run: nvrtc
	$(CARGO) build --release --locked
	scripts/demo target/release/tuner

install: nvrtc
	$(CARGO) install --locked --path . --bin tuner $(if $(PREFIX),--root $(PREFIX))
	target/release/tuner man --output "$(or $(PREFIX),$(CARGO_HOME),$(HOME)/.cargo)/share/man/man1"

test: nvrtc nats python
	$(CARGO) test --workspace --locked --no-run
	@$(MAKE) --no-print-directory --keep-going -j2 test-program test-crates
	$(CARGO) test --workspace --locked --doc

# Most tests of the program wait, so those of the crates run beside them; what they say is printed at their end.
.PHONY: test-program test-crates
test-program:
	@MAKEFLAGS= RUST_TEST_THREADS=$(TEST_THREADS) CARGO="$(CARGO)" scripts/timed-tests --workspace --locked --test program

test-crates:
	@log=$$(mktemp); \
	MAKEFLAGS= CARGO="$(CARGO)" scripts/timed-tests --workspace --locked --lib --bins --test '[!p]*' >"$$log" 2>&1; code=$$?; \
	cat "$$log"; rm -f "$$log"; exit $$code

nightly: nvrtc nats python
	$(CARGO) test --release --locked --test program readme:: -- --ignored
	TUNER_KERNELS_SAMPLE=30 $(CARGO) test --release --locked --test program -- kernels::sampled kernels::warp_group
	TUNER_HAZARDS_ALL=1 $(CARGO) test --release --locked --test program hazards::threads
	TUNER_USER_KERNELS_ALL=1 $(CARGO) test --release --locked --test program user_kernels::
	$(CARGO) test --release --locked --test program fleet::kills:: -- --ignored --nocapture
	$(CARGO) test --release --locked --test program fleet::siblings:: -- --ignored
	$(CARGO) test --release --locked --test program faults:: -- --ignored --nocapture
	$(CARGO) test --release --locked --test program cuda:: -- --ignored
	$(CARGO) test --locked --test program python:: -- --include-ignored

bench: nvrtc
	$(CARGO) bench --workspace --locked

lint: style
	$(CARGO) test --workspace --locked --test program licences::

style:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOC="$(CURDIR)/scripts/rustdoc-check" RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items --locked

sbom:
	@mkdir -p target
	scripts/supply-chain sbom >target/tuner.cdx.json

release: sbom
	scripts/supply-chain check
	$(CARGO) build --release --locked --bin tuner
	cp target/tuner.cdx.json target/release/tuner.cdx.json
	cd target/release && sha256sum tuner tuner.cdx.json >tuner.sha256

nvrtc:
	@scripts/get-nvrtc

nats:
	@scripts/get-nats

python:
	@scripts/get-python

wheel:
	scripts/build-wheel $(if $(ZIG),--zig)

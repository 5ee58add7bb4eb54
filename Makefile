# The front door. Everything else is CMake; see CMakePresets.json.
.PHONY: all demo test bench fuzz asan tsan arm64 soak mutants install clean format deps

# Runs the tests of a build folder; whatever was skipped is named with its reason at the end.
define run_tests
	@ctest --test-dir $(1) --output-on-failure -j 2 --no-tests=error; status=$$?; \
	sed -n 's/^skipped: /not tested: /p' $(1)/Testing/Temporary/LastTest.log | sort -u; exit $$status
endef

all: build/build.ninja
	@cmake --build build

build/build.ninja: | deps
	@cmake --preset release >/dev/null

deps:
	@./scripts/deps

# Installs what is missing, builds the program alone, trains on Fashion-MNIST, shows accuracy and some predictions.
demo: build/build.ninja
	@echo "building build/sounder: a minute or two"
	@cmake --build build --target sounder -- --quiet
	@./scripts/demo

# Everything that must hold: unit tests, conformance, numbers against numpy, the program from outside.
test: all
	@cmake --build build
	$(call run_tests,build)

asan tsan: deps
	@cmake --preset $@ >/dev/null && cmake --build build-$@
	$(call run_tests,build-$@)

# 64-bit Arm: cross-compiles, and runs the tests in C and the recorded model hashes under emulation.
arm64:
	@./scripts/deps arm64
	@cmake --preset arm64 >/dev/null && cmake --build build-arm64
	$(call run_tests,build-arm64)

# SECONDS_EACH of fuzzing per target.
fuzz: deps
	@cmake --preset fuzz >/dev/null && cmake --build build-fuzz
	@./scripts/fuzz $${SECONDS_EACH:-300}

# Long runs: kill −9 in the middle of checkpoints and of processes of MPI_JOBS MPI jobs, disks that fill up, every
# allocation failed in turn, and 100 000 damaged messages.
soak: all
	@./scripts/soak $${SEED:+--seed $$SEED}
	@./scripts/soak_mpi $${MPI_JOBS:-200} $${SEED:+--seed $$SEED}
	@./scripts/soak_disk $${SEED:+--seed $$SEED}
	@SOUNDER=build/sounder SOUNDER_FAIL_MALLOC=build/tests/libfail_malloc.so \
		python3 -B tests/cli/test_allocations.py --all $${SEED:+--seed $$SEED}
	@SOUNDER=build/sounder python3 -B tests/transport/test_hostile.py --all $${SEED:+--seed $$SEED}

# Puts faults into a copy of the sources, one at a time, and says which test notices each.
mutants: deps
	@./scripts/mutants

# Ratios against liblinear and scikit-learn in one run; writes bench/results.json.
bench: all
	@./scripts/deps bench
	@./bench/run
	@./bench/workers
	@./bench/peers
	@./bench/cpus
	@./bench/networks --ddp

install: all
	@cmake --install build

format:
	@clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	@rm -rf build build-debug build-asan build-tsan build-arm64 build-fuzz

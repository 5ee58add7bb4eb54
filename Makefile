# The front door. Everything else is CMake; see CMakePresets.json.
.PHONY: all demo test bench fuzz asan tsan soak install clean format deps

all: build/build.ninja
	@cmake --build build

build/build.ninja: | deps
	@cmake --preset release >/dev/null

deps:
	@./scripts/deps

# Installs what is missing, builds, trains on Fashion-MNIST, shows accuracy and some predictions.
demo: all
	@./scripts/demo

# Everything that must hold: unit tests, conformance, numbers against numpy, the program from outside.
test: all
	@cmake --build build
	@ctest --test-dir build --output-on-failure -j 2 --no-tests=error

asan tsan: deps
	@cmake --preset $@ >/dev/null && cmake --build build-$@
	@ctest --test-dir build-$@ --output-on-failure -j 2 --no-tests=error

# SECONDS_EACH of fuzzing per target.
fuzz: deps
	@cmake --preset fuzz >/dev/null && cmake --build build-fuzz
	@./scripts/fuzz $${SECONDS_EACH:-300}

# Long runs: kill −9 in the middle of checkpoints, disks that fill up, and every allocation failed in turn.
soak: all
	@./scripts/soak
	@./scripts/soak_disk
	@SOUNDER=build/sounder SOUNDER_FAIL_MALLOC=build/tests/libfail_malloc.so \
		python3 -B tests/cli/test_allocations.py --all

# Ratios against liblinear and scikit-learn in one run; writes bench/results.json.
bench: all
	@./scripts/deps bench
	@./bench/run
	@./bench/workers
	@./bench/peers

install: all
	@cmake --install build

format:
	@clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	@rm -rf build build-debug build-asan build-tsan build-fuzz

# The two commands are `make demo` and `make test`; the rest is for those who work on aha.
# Each installs what is missing (Debian packages), configures, builds and runs; a second call does no work twice.

PRESET ?= release
BUILD  := build/$(PRESET)
AHA    := $(BUILD)/bin/aha

.PHONY: demo test build install-packages bench format fuzz asan clean

demo: $(BUILD)/build.ninja
	@ninja -C $(BUILD) aha
	@scripts/demo.sh $(AHA)

test: build
	@cd $(BUILD) && ctest --output-on-failure $(CTEST_ARGS)

build: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja: | build/.packages
	@cmake --preset $(PRESET)

build/.packages: scripts/install_packages.sh
	@scripts/install_packages.sh
	@mkdir -p build && touch $@

install-packages: build/.packages

bench: build
	@$(AHA) bench $(BENCH_ARGS)

format:
	@git ls-files '*.cpp' '*.h' '*.inl' | xargs clang-format -i

# Each fuzz target for a minute (FUZZ_SECONDS to change); needs clang and its fuzzer runtime.
FUZZ_SECONDS ?= 60
fuzz: | build/.packages
	@scripts/install_packages.sh clang libclang-rt-14-dev
	@cmake --preset fuzz > /dev/null && ninja -C build/fuzz
	@scripts/fuzz.sh $(FUZZ_SECONDS)

# The unit tests under the address and undefined-behavior sanitizers.
asan:
	@$(MAKE) --no-print-directory build PRESET=asan
	@cd build/asan && ASAN_OPTIONS=detect_leaks=0 ctest --output-on-failure -L fast

clean:
	rm -rf build

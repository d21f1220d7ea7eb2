# The two commands are `make demo` and `make test`; the rest is for those who work on aha.
# Each installs what is missing (Debian packages), configures, builds and runs; a second call does no work twice.

PRESET ?= release
BUILD  := build/$(PRESET)
AHA    := $(BUILD)/bin/aha

.PHONY: demo test build install deb install-packages reproduce experiments-page docs bench format format-check tidy fuzz asan tsan clean help

demo: $(BUILD)/build.ninja
	@ninja -C $(BUILD) aha
	@scripts/demo.sh $(AHA)

test: $(BUILD)/build.ninja
	@ninja -C $(BUILD)
	@cd $(BUILD) && ctest --output-on-failure -j2 $(CTEST_ARGS)

build: $(BUILD)/build.ninja
	@ninja -C $(BUILD) aha aha_python

# The program, the library with its headers, models, protocols and recipes; DESTDIR as usual.
PREFIX ?= /usr/local
install: $(BUILD)/build.ninja
	@ninja -C $(BUILD) product
	@cmake --install $(BUILD) --prefix $(PREFIX)

# Debian packages, in $(BUILD)/packages.
deb: $(BUILD)/build.ninja
	@scripts/install_packages.sh dpkg-dev file
	@ninja -C $(BUILD) product
	@cd $(BUILD) && cpack -B packages

$(BUILD)/build.ninja: | build/.packages
	@cmake --preset $(PRESET)

build/.packages: scripts/install_packages.sh
	@scripts/install_packages.sh
	@mkdir -p build && touch $@

install-packages: build/.packages

bench: build
	@$(AHA) bench $(BENCH_ARGS)

# The pages that are made from the program's own records.
docs: $(BUILD)/build.ninja
	@ninja -C $(BUILD) aha
	@$(AHA) models --methods-markdown > docs/methods.md.new && mv docs/methods.md.new docs/methods.md
	@$(AHA) serve --api-markdown > docs/http_api.md.new && mv docs/http_api.md.new docs/http_api.md

# Every experiment of the paper whose data are there, and how long each took; a second call continues. EXPERIMENT_ARGS="--images 1000" for more images.
EXPERIMENTS ?= experiments
reproduce: build
	@$(AHA) get cifar10 --quiet
	@$(AHA) experiment --all --out $(EXPERIMENTS) --quiet $(EXPERIMENT_ARGS)

# docs/experiments.md from the sections that the experiments left.
experiments-page: build
	@$(AHA) experiment --page docs/experiments.md --out $(EXPERIMENTS)

format: | build/.clang
	@git ls-files '*.cpp' '*.h' '*.inl' | xargs clang-format -i

format-check: | build/.clang
	@scripts/format_check.sh

# clang-tidy over everything that is no test; TIDY=aha_nn for one module, TIDY=kernels/ for the kernels.
tidy: | build/.packages build/.clang
	@scripts/tidy.sh $(TIDY)

# Each fuzz target for a minute (FUZZ_SECONDS to change).
FUZZ_SECONDS ?= 60
fuzz: | build/.packages build/.clang
	@cmake --preset fuzz > /dev/null && ninja -C build/fuzz
	@scripts/fuzz.sh $(FUZZ_SECONDS)

build/.clang: scripts/install_packages.sh
	@scripts/install_packages.sh clang clang-format clang-tidy libclang-rt-14-dev
	@mkdir -p build && touch $@

# The unit tests under sanitizers: all of them, or those of MODULES="base kernels".
asan: export ASAN_OPTIONS ?= detect_leaks=0
tsan: export TSAN_OPTIONS ?= suppressions=$(CURDIR)/tests/tsan.supp history_size=4
asan tsan: | build/.packages
	@test -f build/$@/build.ninja || cmake --preset $@
	@ninja -C build/$@ $(MODULES:%=%_test)
	@cd build/$@ && ctest --output-on-failure -L fast $(if $(MODULES),-R '^($(subst $(space),|,$(strip $(MODULES))))$$')

empty :=
space := $(empty) $(empty)

help:
	@echo 'make demo          the tour: explains photos and sample images'
	@echo 'make test          builds everything and runs all tests; CTEST_ARGS="-R kernels" for some'
	@echo 'make build         build/release/bin/aha and the Python module; PRESET=debug|asan|tsan for another build'
	@echo 'make install       into PREFIX (/usr/local): program, library, headers, models'
	@echo 'make deb           Debian packages of them, in build/release/packages'
	@echo 'make bench         speed on this machine; BENCH_ARGS="--peer" beside libtorch'
	@echo 'make reproduce     every experiment of the paper; EXPERIMENT_ARGS="--quick" as a test'
	@echo 'make experiments-page  docs/experiments.md from what make reproduce left'
	@echo 'make docs          docs/methods.md and docs/http_api.md from the program'"'"'s records'
	@echo 'make format        clang-format over every source file'
	@echo 'make format-check  fails where make format would change something, or a line is too long'
	@echo 'make tidy          clang-tidy; TIDY=aha_nn for one module'
	@echo 'make asan          unit tests under AddressSanitizer and UBSan; MODULES="base kernels" for some'
	@echo 'make tsan          unit tests under ThreadSanitizer; MODULES as above'
	@echo 'make fuzz          each fuzz target for a minute; FUZZ_SECONDS=600 for longer'
	@echo 'make clean         removes build/'

clean:
	rm -rf build

// bin/aha: sets up the environment of OpenBLAS, oneDNN and OpenMP, which read it when they are loaded, then
// loads the product.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <string>
#include <thread>

#include "aha/base/startup.h"
#include "aha/base/timer.h"

namespace {

// The libraries themselves, and a buffer of OpenBLAS for each core.
constexpr size_t kLibraries = size_t{700} << 20;

// Libraries that bring many symbols of their own, each before those that need it. The product comes with 300
// libraries, and a symbol is looked for in all of them in turn; one that is loaded by itself finds its own at
// once: 0.29 s of CPU time instead of 0.40 until everything is there. What this system does not have under
// these names (Debian 12's) is loaded in its turn.
constexpr const char* kLoadedFirst[] = {
    "libblas.so.3",        "libxerces-c-3.2.so", "libgeos.so.3.11.1",    "libproj.so.25",
    "libgdal.so.32",       "libQt5Widgets.so.5", "libopencv_dnn.so.406", "libopencv_imgcodecs.so.406",
    "libtorch_cpu.so.1.13"};

// Files that the program opens must not become its standard output: what is closed gets a place holder that
// cannot be written.
void keep_standard_files() {
  for (int fd = ::open("/dev/null", O_RDONLY); fd >= 0; fd = ::open("/dev/null", O_RDONLY)) {
    if (fd <= 2) continue;
    ::close(fd);
    return;
  }
}

// What is missing to load the product; null = nothing.
const char* missing_resource() {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (!aha::may_map(kLibraries + static_cast<size_t>(cores) * aha::kOpenblasBuffer))
    return "too little memory to start (ulimit -v)";
  // OpenBLAS's, OpenMP's and those that read images.
  return aha::may_start_threads(2 * cores + 2) ? nullptr : "too few processes to start (ulimit -u)";
}

}  // namespace

int main(int argc, char** argv) {
  aha::set_library_environment();
  aha::keep_freed_memory();
  keep_standard_files();
  if (const char* missing = missing_resource()) {
    std::fprintf(stderr, "aha: %s\n", missing);
    return 1;
  }
  char self[PATH_MAX + 1] = {};
  if (::readlink("/proc/self/exe", self, PATH_MAX) < 0) {
    std::fputs("aha: cannot find out where this program is\n", stderr);
    return 1;
  }
  std::string folder(self);
  folder.erase(folder.rfind('/'));
  const aha::Timer loading;
  for (const char* library : kLoadedFirst) ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void* product = ::dlopen((folder + "/../lib/libaha_core.so").c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!product) {
    std::fprintf(stderr, "aha: cannot load the program: %s\n", ::dlerror());
    return 1;
  }
  const auto run = reinterpret_cast<int (*)(int, char**, double)>(::dlsym(product, "aha_main"));
  const int code = run(argc, argv, loading.seconds());
  // What 300 libraries would tidy up takes a tenth of a second, and the kernel does it anyway.
  std::fflush(nullptr);
  ::_exit(code);
}

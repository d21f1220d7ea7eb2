// bin/aha: sets up the environment of OpenBLAS, oneDNN and OpenMP, which read it when they are loaded, then
// loads the product.
#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <string>

#include "aha/base/startup.h"

int main(int argc, char** argv) {
  aha::set_library_environment();
  aha::keep_freed_memory();
  char self[PATH_MAX + 1] = {};
  if (::readlink("/proc/self/exe", self, PATH_MAX) < 0) {
    std::fputs("aha: cannot find out where this program is\n", stderr);
    return 1;
  }
  std::string folder(self);
  folder.erase(folder.rfind('/'));
  void* product = ::dlopen((folder + "/../lib/libaha.so").c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!product) {
    std::fprintf(stderr, "aha: cannot load the program: %s\n", ::dlerror());
    return 1;
  }
  const auto run = reinterpret_cast<int (*)(int, char**)>(::dlsym(product, "aha_main"));
  return run(argc, argv);
}

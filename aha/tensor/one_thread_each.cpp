#include "aha/tensor/one_thread_each.h"

#include <dlfcn.h>
#include <omp.h>
#include "aha/tensor/torch.h"

#include <mutex>

#include "aha/base/parallel.h"

namespace aha {
namespace {

// OpenBLAS has threads of its own and one count for the whole process; several callers may ask for one thread
// at the same time.
struct Blas {
  int (*get)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  void (*set)(int) = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  std::mutex guard;
  int holders = 0, before = 1;

  void hold() {
    const std::lock_guard lock(guard);
    if (holders++ > 0 || !get || !set) return;
    before = get();
    set(1);
  }
  void release() {
    const std::lock_guard lock(guard);
    if (--holders == 0 && get && set) set(before);
  }
};

Blas& blas() {
  static Blas blas;
  return blas;
}

}  // namespace

OneThread::OneThread() {
  blas().hold();
  // libtorch sets the count of a thread at its first question; that must not happen later and undo ours.
  at::get_num_threads();
  before_ = omp_get_max_threads();
  omp_set_num_threads(1);  // oneDNN plans for this number even inside a parallel region
}

OneThread::~OneThread() {
  omp_set_num_threads(before_);
  blas().release();
}

void one_thread_each(int64_t n, const std::function<void(int64_t)>& piece) {
  parallel_for(n, [&](int64_t i, int) {
    const OneThread one_thread;
    const torch::AutoGradMode grad(true);
    piece(i);
  });
}

}  // namespace aha

// Makes the numeric libraries fast and safe on this CPU before they start; the user sets nothing.
//
// Four traps, all measured on Sapphire-Rapids-class machines with Debian 12's libraries:
//   OpenBLAS 0.3.21 does not know recent CPU models and falls back to SSE3 code: 38 instead of 195 GFLOP/s.
//   It reads OPENBLAS_CORETYPE when it is loaded, so the variable has to be there before. oneDNN 2.6.3 uses
//   CPUID leaf 0x1D and dies with an illegal instruction on virtual machines that hide it. It reads
//   DNNL_MAX_CPU_ISA at its first use. libgomp's idle threads spin: on cores shared with anything else they
//   take the time of those that work. Training steps of a small ViT beside another busy process: 70 images/s
//   spinning, 460 sleeping; alone on two cores 243 and 360. It reads OMP_WAIT_POLICY when it is loaded. glibc
//   gives every large tensor back to the kernel and gets it anew, page by page: a fifth of a training step.
//   keep_freed_memory() ends that.
//
// The launcher (cli/launcher.cpp, linked to none of them) sets all and only then loads the product; so does
// the installed library (library/face.cpp), which leaves the allocator to its host. A program that links
// libtorch directly calls prepare_process() first thing in main: where OpenBLAS has already chosen a core
// that is below this CPU, it starts itself once more. A variable that the user has set is never touched;
// AHA_TUNING=off leaves all of them as the system has them, for comparisons.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace aha {

struct TuningChoice {
  std::string variable, value, why;
  bool by_user = false;
};

// Sets the variables in this process' environment and says what was chosen.
std::vector<TuningChoice> set_library_environment();

// What the environment says now, without changing it.
const std::vector<TuningChoice>& library_choices();

// For programs that link libtorch: sets the environment, starts the program again if OpenBLAS was faster to
// choose, flushes denormals.
void prepare_process(char** argv);

// Freed memory stays with the process: its size is that of its largest moment.
void keep_freed_memory();

// Whether this process may map so many more bytes and start so many more threads (ulimit -v, -d, -u): asked
// before a library is loaded or used that would loop or abort without them.
bool may_map(size_t bytes);
bool may_start_threads(int threads);

// OpenBLAS maps a buffer for each thread that multiplies, at its first use, and tries forever where it
// cannot. Under a limit of memory these are mapped here; false where they do not fit.
bool reserve_openblas_buffers(int threads);
constexpr size_t kOpenblasBuffer = size_t{128} << 20;  // bytes

// How many threads OpenBLAS uses; nothing and 0 where none is loaded.
void set_openblas_threads(int threads);
int openblas_threads();

// The core OpenBLAS runs ("SkylakeX"), empty where no OpenBLAS is loaded.
std::string openblas_core();
// The core it runs where that is below what this CPU can do; empty = it is not, or the user has chosen it.
std::string openblas_below_cpu();
// What OPENBLAS_CORETYPE has to be for this CPU; empty = OpenBLAS's own choice.
std::string openblas_core_for_cpu();

}  // namespace aha

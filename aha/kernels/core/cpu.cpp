#include "aha/kernels/core/cpu.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <vector>

#include "aha/base/error.h"
#include "aha/kernels/core/tile_instructions.h"

namespace aha {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"ref", "avx2", "avx512", "avx512bf16", "amx"};

bool has_avx2() {
  __builtin_cpu_init();
  unsigned a, b, c = 0, d;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);  // clang 14 does not know its name
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && f16c;
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

bool has_fast_bf16_dots() {
  return has_avx512() && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_is("amd");
}

bool cpuid_has_tiles() {
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  const bool tiles = (d >> 24 & 1) && (d >> 22 & 1);  // AMX-TILE, AMX-BF16
  if (!__get_cpuid_count(7, 1, &a, &b, &c, &d)) return false;
  return tiles && (a >> 5 & 1);  // AVX512-BF16: narrowing to bf16
}

bool system_saves_tiles() {
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & 0x60000) == 0x60000;  // XTILECFG, XTILEDATA
}

bool kernel_grants_tiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

sigjmp_buf g_trial_failed;

// One 16x32 by 32x16 product of ones: 256 times 32.
bool trial_multiplication() {
  struct sigaction guard {
  }, before{};
  guard.sa_handler = [](int) { siglongjmp(g_trial_failed, 1); };
  ::sigaction(SIGILL, &guard, &before);
  bool right = false;
  if (sigsetjmp(g_trial_failed, 1) == 0) {
    alignas(64) uint16_t ones[512];
    alignas(64) float sums[256];
    for (auto& one : ones) one = 0x3f80;
    using T = TileInstructions;
    T::begin();
    T::zero<0>();
    T::load<1>(ones, 64);
    T::load<2>(ones, 64);
    T::multiply_add<0, 1, 2>();
    T::store<0>(sums, 64);
    T::end();
    right = true;
    for (float sum : sums) right = right && sum == 32.0f;
  }
  ::sigaction(SIGILL, &before, nullptr);
  return right;
}

IsaChoice probed() {
  if (!has_avx2()) return {Isa::kReference, "AVX2: not in this CPU"};
  if (!has_avx512()) return {Isa::kAvx2, "AVX-512: not in this CPU"};
  const Isa without_tiles = has_fast_bf16_dots() ? Isa::kAvx512Bf16 : Isa::kAvx512;
  if (!cpuid_has_tiles()) return {without_tiles, "AMX: not in this CPU, or hidden by the hypervisor"};
  if (!system_saves_tiles()) return {without_tiles, "AMX: the operating system does not save tiles"};
  if (!kernel_grants_tiles()) return {without_tiles, "AMX: the kernel refused the permission"};
  if (!trial_multiplication()) return {without_tiles, "AMX: the trial multiplication failed"};
  return {Isa::kAmx, "trial multiplication passed"};
}

const IsaChoice& chosen() {
  static const IsaChoice choice = [] {
    const char* request = std::getenv("AHA_ISA");
    return lowered_isa(present_isa(), request ? request : "");
  }();
  return choice;
}

}  // namespace

std::string_view name_of(Isa isa) {
  return kNames[static_cast<int>(isa)];
}

const IsaChoice& present_isa() {
  static const IsaChoice choice = probed();
  return choice;
}

IsaChoice lowered_isa(const IsaChoice& present, std::string_view request) {
  if (request.empty()) return present;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (request != kNames[i]) continue;
    const auto wanted = static_cast<Isa>(i);
    if (wanted > present.isa)
      return {present.isa, fmt::format("AHA_ISA={} asked for more; {}", request, present.why)};
    return {wanted, fmt::format("AHA_ISA={}", request)};
  }
  throw unknown_name_error("AHA_ISA", request, std::vector<std::string>(kNames.begin(), kNames.end()));
}

Isa best_isa() {
  return chosen().isa;
}

std::string describe_cpu() {
  return fmt::format("{} ({})", name_of(chosen().isa), chosen().why);
}

}  // namespace aha

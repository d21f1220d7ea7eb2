// Which instructions really run here.
//
// A level is used only if the CPU says it has it, the operating system saves its registers and, for tiles,
// the kernel grants them and a trial multiplication gives the right answer. (CPUID leaf 0x1D, which describes
// the tiles, is never read: some virtual machines hide it.) AHA_ISA=ref|avx2|avx512|avx512bf16|amx lowers the
// level, for tests and comparisons; it cannot raise it.
#pragma once

#include <string>
#include <string_view>

namespace aha {

// Each level includes the ones before it.
enum class Isa {
  kReference,  // plain C++
  kAvx2,       // AVX2 and FMA
  kAvx512,     // F, BW, VL, DQ
  // AVX512-BF16. Alone it counts on AMD's CPUs only: there a dot product of bf16 pairs is as fast as a
  // float32 multiply-add, so that a core does 227 GFLOP/s instead of 114 (Zen 4); on Intel's it is slower
  // than float32 (105 instead of 200, Sapphire Rapids).
  kAvx512Bf16,
  kAmx,  // bf16 tiles, AVX512-BF16
};

std::string_view name_of(Isa isa);  // as AHA_ISA takes it

struct IsaChoice {
  Isa isa = Isa::kReference;
  std::string why;  // "AMX: hidden by the hypervisor or not in this CPU"
};

// The highest level that works on this machine, whatever AHA_ISA says.
const IsaChoice& present_isa();

// What a request for a level gives on a machine that has `present`; empty = no request. An unknown name is an
// input error.
IsaChoice lowered_isa(const IsaChoice& present, std::string_view request);

// The level to use: present_isa() lowered by AHA_ISA. Probed once; call it before threads start, as the
// permission for tiles is inherited.
Isa best_isa();

// "avx512 (AMX: ...)" for --verbose and `aha bench`.
std::string describe_cpu();

}  // namespace aha

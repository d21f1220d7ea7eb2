#include "aha/bench/machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "aha/base/parallel.h"
#include "aha/kernels/kernel_set.h"

namespace aha {
namespace {

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return "unknown";
}

}  // namespace

Machine this_machine() {
  Machine m;
  m.cpu = cpu_name();
  m.cores = cores_present();
  m.threads = threads();
  m.memory_mb =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) / 1048576 * static_cast<double>(::sysconf(_SC_PAGESIZE));
  double load[1] = {};
  if (::getloadavg(load, 1) == 1) m.load = load[0];
  m.isa = name_of(best_isa());
  m.isa_why = describe_cpu();
  m.kernels_f32 = best_kernel_set(Precision::kF32).name;
  m.kernels_bf16 = best_kernel_set(Precision::kBf16).name;
  m.openblas_core = openblas_core();
  m.libraries = library_choices();
  const char* tuning = std::getenv("AHA_TUNING");
  m.tuned = !(tuning && std::string(tuning) == "off");
  return m;
}

nlohmann::ordered_json json_from(const Machine& m) {
  nlohmann::ordered_json libraries = nlohmann::ordered_json::array();
  for (const auto& choice : m.libraries)
    libraries.push_back({{"variable", choice.variable},
                         {"value", choice.value},
                         {"why", choice.why},
                         {"by_user", choice.by_user}});
  return {{"cpu", m.cpu},
          {"cores", m.cores},
          {"threads", m.threads},
          {"memory_mb", m.memory_mb},
          {"load", m.load},
          {"isa", m.isa},
          {"isa_why", m.isa_why},
          {"kernels", {{"f32", m.kernels_f32}, {"bf16", m.kernels_bf16}}},
          {"openblas_core", m.openblas_core},
          {"tuned", m.tuned},
          {"libraries", libraries}};
}

std::string text_from(const Machine& m) {
  std::string text = fmt::format(
      "{}, {} cores, {} threads, {:.1f} GB; load {:.2f}\n"
      "instructions  {}\n"
      "kernels       {} for f32, {} for bf16\n"
      "OpenBLAS      {}\n",
      m.cpu, m.cores, m.threads, m.memory_mb / 1024, m.load, m.isa_why, m.kernels_f32, m.kernels_bf16,
      m.openblas_core.empty() ? "not loaded" : "runs its " + m.openblas_core + " core");
  if (!m.tuned) text += "AHA_TUNING=off: the libraries are as the system has them\n";
  for (const auto& choice : m.libraries)
    text += fmt::format("  {}={}: {}\n", choice.variable, choice.value, choice.why);
  return text;
}

}  // namespace aha

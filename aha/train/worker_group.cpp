#include "aha/train/worker_group.h"

#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO  // opens the header; libtorch sets it only where it was configured so
#endif
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "aha/tensor/torch.h"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#ifdef USE_C10D_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include "aha/base/error.h"
#include "aha/train/run_folder.h"

extern char** environ;

namespace aha {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int number(const char* name, int low, int high) {
  const std::string text = variable(name);
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || code != std::errc() || end != text.data() + text.size() || value < low || value > high)
    throw input_error("a worker needs {} in its environment: expected {}..{}, found '{}'", name, low, high,
                      printable(text));
  return value;
}

// c10d's messages carry a stack trace behind the first line.
std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return printable(text.substr(0, text.find('\n')), 200);
}

std::shared_ptr<::gloo::transport::Device> gloo_device(const std::string& master) {
  if (const std::string interface = variable("GLOO_SOCKET_IFNAME"); !interface.empty())
    return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
  if (master == "127.0.0.1" || master == "localhost")
    return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
  return c10d::ProcessGroupGloo::createDefaultDevice();
}

constexpr const char* kParent = "AHA_WORKERS_OF";  // process id of run_workers' caller

}  // namespace

// What Gloo's and NCCL's groups derive from: since libtorch 2.0 a class of its own.
#if TORCH_VERSION_MAJOR >= 2
using Backend = c10d::Backend;
#else
using Backend = c10d::ProcessGroup;
#endif

struct WorkerGroup::Connection {
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<Backend> gloo, nccl;

  Backend& for_tensor(const Tensor& flat) { return flat.is_cuda() && nccl ? *nccl : *gloo; }
};

WorkerGroup::WorkerGroup() = default;
WorkerGroup::~WorkerGroup() = default;

bool is_worker() {
  return !variable("RANK").empty() && !variable("WORLD_SIZE").empty();
}

bool answers_for_folder() {
  return !is_worker() || (variable(kParent).empty() && variable("RANK") == "0");
}

int workers_here() {
  return variable("LOCAL_WORLD_SIZE").empty() ? 1 : number("LOCAL_WORLD_SIZE", 1, 4096);
}

std::unique_ptr<WorkerGroup> WorkerGroup::from_environment(double timeout_s) {
  auto group = std::make_unique<WorkerGroup>();
  if (!is_worker()) return group;
  group->size_ = number("WORLD_SIZE", 1, 65536);
  group->rank_ = number("RANK", 0, group->size_ - 1);
  if (const std::string parent = variable(kParent); !parent.empty()) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (std::to_string(::getppid()) != parent)
      throw work_error("the process that started this worker has ended");
  }
  if (group->size_ == 1) return group;

  const std::string master = variable("MASTER_ADDR");
  if (master.empty())
    throw input_error("a worker needs MASTER_ADDR in its environment: expected a host, found nothing");
  const auto timeout = std::chrono::milliseconds(static_cast<int64_t>(timeout_s * 1000));
  auto connection = std::make_unique<Connection>();
  try {
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(number("MASTER_PORT", 1, 65535));
    // torchrun and run_workers keep the store in the process that started the workers; elsewhere the leader
    // does.
    options.isServer = group->rank_ == 0 && variable("TORCHELASTIC_USE_AGENT_STORE") != "True";
    options.waitWorkers = false;
    options.timeout = timeout;
    const auto store = c10::make_intrusive<c10d::TCPStore>(master, options);
    connection->store =
        c10::make_intrusive<c10d::PrefixStore>("aha/" + variable("TORCHELASTIC_RESTART_COUNT"), store);
    auto gloo = c10d::ProcessGroupGloo::Options::create(timeout);
    gloo->devices.push_back(gloo_device(master));
    gloo->threads = 1;
    connection->gloo =
        c10::make_intrusive<c10d::ProcessGroupGloo>(connection->store, group->rank_, group->size_, gloo);
#ifdef USE_C10D_NCCL
    if (torch::cuda::is_available())
      connection->nccl = c10::make_intrusive<c10d::ProcessGroupNCCL>(
          c10::make_intrusive<c10d::PrefixStore>("nccl", connection->store), group->rank_, group->size_);
#endif
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw work_error("worker {} of {} cannot join the others at {}:{}: {}", group->rank_, group->size_,
                     printable(master), variable("MASTER_PORT"), first_line(error));
  }
  group->connection_ = std::move(connection);
  return group;
}

namespace {

template <class Operation>
void together(int rank, int size, Operation operation) {
  try {
    operation()->wait();
  } catch (const std::exception& error) {
    throw work_error("worker {} of {} lost contact with the others ({}); start the run again with --resume",
                     rank, size, first_line(error));
  }
}

}  // namespace

template <class Operation>
void WorkerGroup::collectively(Tensor& flat, Operation operation) {
  if (!connection_) return;
  const torch::NoGradGuard no_grad;
  const bool elsewhere = flat.is_cuda() && !connection_->nccl;  // Gloo knows only the CPU's memory
  std::vector<Tensor> tensors = {elsewhere ? flat.cpu() : flat};
  together(rank_, size_, [&] { return operation(connection_->for_tensor(tensors[0]), tensors); });
  if (elsewhere) flat.copy_(tensors[0]);
}

void WorkerGroup::sum(Tensor& flat) {
  collectively(flat, [](Backend& group, auto& tensors) { return group.allreduce(tensors); });
}

void WorkerGroup::broadcast(Tensor& flat) {
  collectively(flat, [](Backend& group, auto& tensors) { return group.broadcast(tensors); });
}

void WorkerGroup::barrier() {
  if (connection_) together(rank_, size_, [&] { return connection_->gloo->barrier(); });
}

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);  // has no size that could be asked for
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::vector<std::string> words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\0', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (!words.empty()) words.erase(words.begin());
  return words;
}

namespace {

pid_t start_worker(int rank, int workers, uint16_t port, const std::vector<std::string>& arguments) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry; ++entry) environment.emplace_back(*entry);
  const std::vector<std::pair<std::string, std::string>> own = {{"RANK", std::to_string(rank)},
                                                                {"LOCAL_RANK", std::to_string(rank)},
                                                                {"WORLD_SIZE", std::to_string(workers)},
                                                                {"LOCAL_WORLD_SIZE", std::to_string(workers)},
                                                                {"MASTER_ADDR", "127.0.0.1"},
                                                                {"MASTER_PORT", std::to_string(port)},
                                                                {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                                                {kParent, std::to_string(::getpid())}};
  for (const auto& [name, value] : own) {
    std::erase_if(environment, [&](const std::string& entry) { return entry.starts_with(name + "="); });
    environment.push_back(name + "=" + value);
  }
  const std::string program = "/proc/self/exe";
  std::vector<char*> argv = {const_cast<char*>("aha")}, envp;
  for (const auto& word : arguments) argv.push_back(const_cast<char*>(word.c_str()));
  for (const auto& entry : environment) envp.push_back(const_cast<char*>(entry.c_str()));
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  pid_t child = 0;
  if (const int failed = ::posix_spawn(&child, program.c_str(), nullptr, nullptr, argv.data(), envp.data()))
    throw work_error("cannot start worker {}: {}", rank, std::strerror(failed));
  return child;
}

std::string fate(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("ended with code {}", WEXITSTATUS(status));
}

}  // namespace

void run_workers(int workers, const std::vector<std::string>& arguments, const Context& context) {
  c10d::TCPStoreOptions options;
  options.port = 0;  // any that is free
  options.isServer = true;
  options.waitWorkers = false;
  const c10d::TCPStore store("127.0.0.1", options);

  using Clock = std::chrono::steady_clock;
  constexpr auto kGrace = std::chrono::seconds(20);  // to notice the loss, or to save
  std::vector<pid_t> running;
  for (int rank = 0; rank < workers; ++rank)
    running.push_back(start_worker(rank, workers, store.getPort(), arguments));
  const auto tell = [&](int signal) {
    for (const pid_t child : running)
      if (child) ::kill(child, signal);
  };

  std::string trouble;
  bool by_signal = false, refused = false, canceled = false, impatient = false;
  int failed = 0;  // workers
  bool leader_failed = false;
  auto patience = Clock::time_point::max();
  for (int left = workers; left > 0;) {
    bool any = false;
    for (int rank = 0; rank < workers; ++rank) {
      int status = 0;
      if (!running[rank] || ::waitpid(running[rank], &status, WNOHANG) != running[rank]) continue;
      running[rank] = 0;
      --left;
      any = true;
      if (status == 0) continue;
      ++failed;
      leader_failed |= rank == 0 && WIFEXITED(status);
      patience = std::min(patience, Clock::now() + kGrace);
      // The cause is the worker that was killed; the others fail because it is gone.
      const bool killed = WIFSIGNALED(status) && !impatient;
      if (!trouble.empty() && (by_signal || !killed)) continue;
      trouble = fmt::format("worker {} of {} {}", rank, workers, fate(status));
      by_signal = killed;
      refused = WIFEXITED(status) && WEXITSTATUS(status) == 2;
    }
    if (context.cancel->canceled() && !canceled) {
      canceled = true;
      tell(SIGTERM);
    }
    if (Clock::now() > patience) {
      tell(SIGKILL);
      impatient = true;
      patience = Clock::time_point::max();
    }
    if (!any) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (canceled) throw Error(ErrorKind::kCanceled, "stopped; the same command with --resume continues");
  if (refused) throw input_error("the workers refused the call; their own message says why");
  if (failed == 1 && leader_failed)  // after all others had done their part
    throw work_error("part of the work failed; the message above says what");
  if (!trouble.empty())
    throw work_error("{}; the same command with --resume continues from the last checkpoint", trouble);
}

namespace {

constexpr int kMostWorkersPerCore = 4;

// A divisor of what was asked for, so that it divides every batch that the other number divides.
int sensible_workers(int asked, const Context& context) {
  const int cores = cores_present();
  if (context.device.cuda || asked <= kMostWorkersPerCore * cores) return asked;
  int fewer = cores;
  while (asked % fewer != 0) --fewer;
  spdlog::warn("--workers {}: this machine has {} core{}; taking {}", asked, cores, cores == 1 ? "" : "s",
               fewer);
  return fewer;
}

}  // namespace

std::unique_ptr<WorkerGroup> start_or_join_workers(int workers, double timeout_s, Context& context) {
  if (workers > 1 && !is_worker()) workers = sensible_workers(workers, context);
  if (workers > 1 && !is_worker()) {
    run_workers(workers, own_arguments(), context);
    return nullptr;
  }
  auto group = WorkerGroup::from_environment(timeout_s);
  if (!group->leader()) start_log(LogLevel::kQuiet);
  if (context.threads == 0 && workers_here() > 1) {
    context.threads = std::max(1, cores_present() / workers_here());
    start_compute(context);
  }
  return group;
}

}  // namespace aha

// Data-parallel workers: processes that train copies of one network on shares of each batch, or evaluate
// shares of a data set.
//
// Built on PyTorch's c10d process groups: Gloo on CPU; NCCL where libtorch was built with it and the tensors
// are on a GPU. A process is a worker where RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say so (torchrun,
// srun, mpirun with a wrapper); run_workers starts N of them on this machine. Without these variables the
// group has one member and every operation does nothing.
//
// A worker that dies closes its connections: the others get a work error within seconds (the timeout is for a
// worker that hangs), and the run continues from its last checkpoint when it is started again with --resume.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "aha/base/context.h"
#include "aha/tensor/tensor.h"

namespace aha {

class WorkerGroup {
 public:
  // Joins the group that the environment names. Input error for variables that are incomplete or make no
  // sense.
  static std::unique_ptr<WorkerGroup> from_environment(double timeout_s);
  WorkerGroup();  // alone
  ~WorkerGroup();
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool leader() const { return rank_ == 0; }  // the one that writes

  void sum(Tensor& flat);        // in place, the same bits for every worker
  void broadcast(Tensor& flat);  // the leader's numbers for everyone
  void barrier();

 private:
  struct Connection;
  template <class Operation>
  void collectively(Tensor& flat, Operation operation);
  std::unique_ptr<Connection> connection_;
  int rank_ = 0, size_ = 1;
};

// True in a process that run_workers or torchrun started.
bool is_worker();

// How many workers share this machine (LOCAL_WORLD_SIZE), at least 1: each takes its share of the cores.
int workers_here();

// Starts this program `workers` times with these arguments, each as one worker, and waits for all. Work error
// that names the first worker that failed; the others are then ended. A canceled context ends them too,
// after each has saved its state.
void run_workers(int workers, const std::vector<std::string>& arguments, const Context& context);

// How a verb that several processes share begins. With several workers asked for: starts them, waits for them
// and returns null, as nothing is left to do here. Else joins the group that this process belongs to; each
// worker on this machine gets its share of the cores, and only the leader talks.
std::unique_ptr<WorkerGroup> start_or_join_workers(int workers, double timeout_s, Context& context);

// What this process was started with, without the program's own name.
std::vector<std::string> own_arguments();

}  // namespace aha

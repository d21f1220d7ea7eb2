// Apart from parallel.cpp, because libaha.so needs it before OpenMP's library may be loaded.
#include "aha/base/own_thread.h"

#include <cfenv>
#include <csignal>
#include <utility>

namespace aha {

std::thread own_thread(std::function<void()> body) {
  sigset_t hidden, before;
  sigfillset(&hidden);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF})
    sigdelset(&hidden, own);
  pthread_sigmask(SIG_BLOCK, &hidden, &before);
  const struct Restore {
    const sigset_t& mask;
    ~Restore() { pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } restore{before};
  return std::thread([body = std::move(body)] {
    std::fesetenv(FE_DFL_ENV);
    body();
  });
}

}  // namespace aha

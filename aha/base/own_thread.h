// A thread of the library's own inside somebody else's program.
//
// It computes as a new program does, whatever its maker has set: rounding to nearest, no floating-point
// traps. Signals that are sent to the process go to the program's threads, never to this one or to those that
// it starts; faults and SIGPROF stay where they happen.
#pragma once

#include <functional>
#include <thread>

namespace aha {

std::thread own_thread(std::function<void()> body);

}  // namespace aha

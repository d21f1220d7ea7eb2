// gtest's main for every module: the process is set up as the product's is, then the tests run. They are of
// what the program chooses, whatever this environment asks of OpenBLAS: with its kernels for older CPUs an
// image's bits on libtorch depend on its batch.
#include <gtest/gtest.h>

#include <cstdlib>

#include "aha/base/log.h"
#include "aha/base/startup.h"

int main(int argc, char** argv) {
  if (!std::getenv("AHA_STARTED_AGAIN"))
    for (const char* variable : {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"}) ::unsetenv(variable);
  aha::prepare_process(argv);
  aha::start_log(aha::LogLevel::kNormal);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

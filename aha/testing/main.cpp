// gtest's main for every module: the process is set up as the product's is, then the tests run.
#include <gtest/gtest.h>

#include "aha/base/log.h"
#include "aha/base/startup.h"

int main(int argc, char** argv) {
  aha::prepare_process(argv);
  aha::start_log(aha::LogLevel::kNormal);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

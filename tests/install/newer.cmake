find_package(aha 0.9999 REQUIRED)

# aha_module(name [TORCH] [LOOPS] [UNITY] [DEPS modules] [LIBS libraries])
#
# The folder aha/<name>, with the folders in it, becomes the static library aha_<name> of all its .cpp files, and the
# program <name>_test of all its *_test.cpp files, which ctest knows as <name>. A file called *_avx2.cpp, *_avx512.cpp, *_avx512bf16.cpp or *_amx.cpp is
# compiled for that instruction set and no other file is. TORCH modules share one precompiled torch header.
# They are compiled with -O1, half the time of a build, unless they have LOOPS of their own: what counts in the others is libtorch's or kernels/'.
# The files of a TORCH or UNITY module share compiler calls, up to nine each, and those of its tests up to six: an empty file with the
# precompiled torch header takes 3.1 s of CPU time, for templates that gcc can only instantiate at the end of a file.
# (Measured: the soft sort's own loops take the same time either way; the loop that measures the peak takes three times as long at -O1.)

# GCC 12 takes the "undefined" operand of its own intrinsics for a mistake (GCC bug 105593).
set(AHA_FLAGS_avx2 -mavx2 -mfma -mf16c -Wno-uninitialized -Wno-maybe-uninitialized)
set(AHA_FLAGS_avx512 ${AHA_FLAGS_avx2} -mavx512f -mavx512bw -mavx512vl -mavx512dq)
set(AHA_FLAGS_avx512bf16 ${AHA_FLAGS_avx512} -mavx512bf16)
set(AHA_FLAGS_amx ${AHA_FLAGS_avx512bf16} -mamx-tile -mamx-bf16)

add_library(aha_flags INTERFACE)
target_include_directories(aha_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(aha_flags INTERFACE -Wall -Wextra -Wno-unused-parameter -Wno-psabi -fno-math-errno)
# gcc's garbage collector goes through the whole precompiled header each time. Without it a large unit takes 15.4 s of CPU time instead of 18.3, and
# 1.6 GB instead of 1.4.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(aha_flags INTERFACE --param=ggc-min-heapsize=2000000)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang AND NOT AHA_FUZZ)
  target_compile_options(aha_flags INTERFACE "SHELL:-include ${CMAKE_SOURCE_DIR}/cmake/clang_vector.h")
endif()
if(AHA_SANITIZE)
  target_compile_options(aha_flags INTERFACE -fsanitize=${AHA_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(aha_flags INTERFACE -fsanitize=${AHA_SANITIZE})
endif()
if(AHA_FUZZ)
  target_compile_options(aha_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined)
  target_link_options(aha_flags INTERFACE -fsanitize=address,undefined)
endif()

if(NOT AHA_FUZZ)
  # Written only where it differs: a new file in a folder configures again, and must not compile this again.
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/torch_pch.cpp CONTENT "// holds the precompiled torch header for every TORCH module\n")
  add_library(aha_torch_pch OBJECT ${CMAKE_BINARY_DIR}/torch_pch.cpp)
  target_link_libraries(aha_torch_pch PUBLIC aha_flags aha_torch fmt::fmt aha_spdlog OpenMP::OpenMP_CXX nlohmann_json::nlohmann_json)
  target_precompile_headers(aha_torch_pch PRIVATE ${CMAKE_SOURCE_DIR}/aha/tensor/torch.h <nlohmann/json.hpp> <fmt/format.h>)

  # gtest's main, after the process has been set up as the product does it.
  add_library(aha_test_main STATIC ${CMAKE_SOURCE_DIR}/aha/testing/main.cpp)
  target_link_libraries(aha_test_main PUBLIC GTest::gtest GTest::gmock aha_flags aha_base)

  # gtest's headers, read once for the tests of the modules below torch: 27 files that took 1.6 s of CPU time each for them.
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/test_pch.cpp CONTENT "// holds the precompiled gtest headers\n")
  add_library(aha_test_pch OBJECT ${CMAKE_BINARY_DIR}/test_pch.cpp)
  target_link_libraries(aha_test_pch PRIVATE aha_test_main)
  target_compile_options(aha_test_pch PRIVATE $<$<CONFIG:Release>:-O1>)
  target_precompile_headers(aha_test_pch PRIVATE <gmock/gmock.h> <gtest/gtest.h>)

  # The tile kernels on modeled tiles, for tests; 10 s of CPU time to compile at -O1.
  add_library(aha_tile_model STATIC ${CMAKE_SOURCE_DIR}/aha/testing/tile_model_avx512.cpp)
  target_compile_options(aha_tile_model PRIVATE ${AHA_FLAGS_avx512} $<$<CONFIG:Release>:-O1>)
  target_link_libraries(aha_tile_model PUBLIC aha_kernels)
endif()

# A program that uses a precompiled header. CMake compiles programs with -fPIE, libraries with -fPIC, and gcc takes a precompiled header only with the
# flags it was made with.
function(aha_precompiled_program name pch)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  target_precompile_headers(${name} REUSE_FROM ${pch})
endfunction()
function(aha_torch_program name)
  aha_precompiled_program(${name} aha_torch_pch)
endfunction()

# As few compiler calls as `most` files in each allow, and about as many files in each of them.
function(aha_unity name most)
  get_target_property(files ${name} SOURCES)
  list(LENGTH files count)
  math(EXPR calls "(${count} + ${most} - 1) / ${most}")
  math(EXPR batch "(${count} + ${calls} - 1) / ${calls}")
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${AHA_UNITY} UNITY_BUILD_BATCH_SIZE ${batch})
endfunction()

function(aha_module name)
  cmake_parse_arguments(M "TORCH;LOOPS;UNITY" "" "DEPS;LIBS" ${ARGN})
  set(folder ${CMAKE_SOURCE_DIR}/aha/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${folder}/*_test.cpp)
  if(tests)
    list(REMOVE_ITEM sources ${tests})
  endif()
  foreach(isa avx2 avx512 avx512bf16 amx)
    file(GLOB_RECURSE isa_sources CONFIGURE_DEPENDS ${folder}/*_${isa}.cpp)
    if(isa_sources)
      set_source_files_properties(${isa_sources} PROPERTIES
        COMPILE_OPTIONS "${AHA_FLAGS_${isa}}" SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
  if(NOT sources)
    add_library(aha_${name} INTERFACE)
    set(visibility INTERFACE)
  else()
    add_library(aha_${name} STATIC ${sources})
    set(visibility PUBLIC)
  endif()
  target_link_libraries(aha_${name} ${visibility} aha_flags ${M_LIBS})
  foreach(dep ${M_DEPS})
    target_link_libraries(aha_${name} ${visibility} aha_${dep})
  endforeach()
  if(sources AND (M_TORCH OR M_UNITY))
    aha_unity(aha_${name} 9)
    if(AHA_UNITY)  # gcc takes the files of a unity build for headers of each other
      target_compile_options(aha_${name} PRIVATE -Wno-subobject-linkage)
    endif()
  endif()
  if(M_TORCH)
    target_link_libraries(aha_${name} ${visibility} aha_torch)
    if(sources)
      target_precompile_headers(aha_${name} REUSE_FROM aha_torch_pch)
      if(NOT M_LOOPS)
        target_compile_options(aha_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
      endif()
    endif()
  endif()
  if(tests AND NOT AHA_FUZZ)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE aha_${name} aha_test_main)
    if(TARGET aha_kernels)
      target_link_libraries(${name}_test PRIVATE aha_tile_model)
    endif()
    target_compile_options(${name}_test PRIVATE $<$<CONFIG:Release>:-O1>)
    if(M_TORCH)
      aha_torch_program(${name}_test)
    else()
      aha_precompiled_program(${name}_test aha_test_pch)
    endif()
    aha_unity(${name}_test 6)
    add_test(NAME ${name} COMMAND ${name}_test WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES LABELS fast)
  endif()
endfunction()

# Everything the tree builds on, found once. libtorch may come from CMAKE_PREFIX_PATH instead of the distribution.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
# Its headers; its code is compiled into our library (aha/base/spdlog.cpp), so that a program that uses spdlog too keeps its own loggers.
add_library(aha_spdlog INTERFACE)
get_target_property(AHA_SPDLOG_DEFINITIONS spdlog::spdlog INTERFACE_COMPILE_DEFINITIONS)
get_target_property(AHA_SPDLOG_INCLUDES spdlog::spdlog INTERFACE_INCLUDE_DIRECTORIES)
target_compile_definitions(aha_spdlog INTERFACE ${AHA_SPDLOG_DEFINITIONS})
target_include_directories(aha_spdlog SYSTEM INTERFACE ${AHA_SPDLOG_INCLUDES})
target_link_libraries(aha_spdlog INTERFACE Threads::Threads fmt::fmt)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Boost REQUIRED)  # Boost.Math, headers alone
find_package(PkgConfig REQUIRED)

pkg_check_modules(AHA_SPNG REQUIRED IMPORTED_TARGET spng)
pkg_check_modules(AHA_WEBP REQUIRED IMPORTED_TARGET libwebp)
pkg_check_modules(AHA_TOML REQUIRED IMPORTED_TARGET tomlplusplus)
find_package(JPEG REQUIRED)
add_library(aha_codecs INTERFACE)
pkg_check_modules(AHA_TIFF REQUIRED IMPORTED_TARGET libtiff-4)
pkg_check_modules(AHA_AVIF REQUIRED IMPORTED_TARGET libavif)
find_package(GIF 5 REQUIRED)
target_link_libraries(aha_codecs INTERFACE JPEG::JPEG PkgConfig::AHA_SPNG PkgConfig::AHA_WEBP PkgConfig::AHA_TIFF PkgConfig::AHA_AVIF GIF::GIF)

# The typeface of sheets. Both files become part of the library (aha/image/font_data.cpp).
find_package(Freetype REQUIRED)
set(AHA_FONT_FOLDERS /usr/share/fonts/truetype/dejavu /usr/share/fonts/dejavu /usr/share/fonts/dejavu-sans-fonts /usr/share/fonts/TTF)
find_file(AHA_FONT DejaVuSans.ttf PATHS ${AHA_FONT_FOLDERS} NO_DEFAULT_PATH REQUIRED DOC "typeface (Debian: fonts-dejavu-core)")
find_file(AHA_FONT_BOLD DejaVuSans-Bold.ttf PATHS ${AHA_FONT_FOLDERS} NO_DEFAULT_PATH REQUIRED DOC "its bold face")

# The protocol buffers of ONNX files; libtorch links to the same library.
find_package(Protobuf REQUIRED)
find_library(AHA_ONNX_PROTO onnx_proto REQUIRED DOC "(Debian: libonnx-dev)")
find_library(AHA_ONNX_CHECKER onnx REQUIRED DOC "(Debian: libonnx-dev)")
add_library(aha_onnx_proto INTERFACE)
target_compile_definitions(aha_onnx_proto INTERFACE ONNX_ML=1)
target_link_libraries(aha_onnx_proto INTERFACE ${AHA_ONNX_CHECKER} ${AHA_ONNX_PROTO} protobuf::libprotobuf)

if(AHA_FUZZ)
  return()
endif()

find_package(Eigen3 REQUIRED NO_MODULE)
pkg_check_modules(AHA_HDF5 REQUIRED IMPORTED_TARGET hdf5)
find_package(GTest REQUIRED)
find_package(CLI11 REQUIRED)
pkg_check_modules(AHA_HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)
set(AHA_SAVED_CXX_FLAGS "${CMAKE_CXX_FLAGS}")
find_package(Torch REQUIRED)
set(CMAKE_CXX_FLAGS "${AHA_SAVED_CXX_FLAGS}")

add_library(aha_torch INTERFACE)
target_include_directories(aha_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(aha_torch INTERFACE ${TORCH_LIBRARIES})

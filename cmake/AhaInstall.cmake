# What `cmake --install` puts where, and the Debian packages of it (`make deb`). Everything is found relative to bin/ or lib/ (aha/base/shipped.h), so that
# an installed prefix may be moved. Components: program (the Debian package aha), dev (libaha-dev), python (python3-aha, from python/CMakeLists.txt).
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # the tests are not installed: build `product` first
set(AHA_SHARE share/aha)
set(AHA_DOC share/doc/aha)

# The man page and the completions come from the declarations of the flags.
set(AHA_PAGES ${CMAKE_BINARY_DIR}/pages)
file(GLOB AHA_PAGE_RECORDS CONFIGURE_DEPENDS models/*/model.json protocols/*.toml recipes/*.toml)
add_custom_command(OUTPUT ${AHA_PAGES}/aha.1.gz ${AHA_PAGES}/aha.bash ${AHA_PAGES}/_aha ${AHA_PAGES}/aha.fish
  COMMAND ${CMAKE_COMMAND} -E make_directory ${AHA_PAGES}
  COMMAND $<TARGET_FILE:aha> help --man > ${AHA_PAGES}/aha.1
  COMMAND gzip -9 -n -f ${AHA_PAGES}/aha.1
  COMMAND $<TARGET_FILE:aha> help --completion bash > ${AHA_PAGES}/aha.bash
  COMMAND $<TARGET_FILE:aha> help --completion zsh > ${AHA_PAGES}/_aha
  COMMAND $<TARGET_FILE:aha> help --completion fish > ${AHA_PAGES}/aha.fish
  DEPENDS aha aha_product ${AHA_PAGE_RECORDS} VERBATIM)
if(AHA_SANITIZE)
  add_custom_target(aha_pages DEPENDS ${AHA_PAGES}/aha.1.gz)
else()
  add_custom_target(aha_pages ALL DEPENDS ${AHA_PAGES}/aha.1.gz)
endif()
add_custom_target(product DEPENDS aha aha_product aha_face aha_pages)
if(TARGET aha_python)
  add_dependencies(product aha_python)
endif()

install(TARGETS aha RUNTIME DESTINATION bin COMPONENT program)
set_target_properties(aha_product PROPERTIES NO_SONAME ON)
if(NOT TORCH_INSTALL_PREFIX MATCHES "^/usr/?$")  # not the distribution's
  set_target_properties(aha_product PROPERTIES INSTALL_RPATH ${TORCH_INSTALL_PREFIX}/lib)
endif()
install(TARGETS aha_product LIBRARY DESTINATION ${AHA_LIB} COMPONENT program)
install(TARGETS aha_face EXPORT ahaTargets LIBRARY DESTINATION ${AHA_LIB} COMPONENT program NAMELINK_COMPONENT dev)

install(DIRECTORY models protocols recipes data DESTINATION ${AHA_SHARE} COMPONENT program)
install(DIRECTORY bench/problems DESTINATION ${AHA_SHARE} COMPONENT program)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${AHA_DOC} COMPONENT program)
install(DIRECTORY docs DESTINATION ${AHA_DOC} COMPONENT program)
install(FILES ${AHA_PAGES}/aha.1.gz DESTINATION share/man/man1 COMPONENT program)
install(FILES ${AHA_PAGES}/aha.bash DESTINATION share/bash-completion/completions RENAME aha COMPONENT program)
install(FILES ${AHA_PAGES}/_aha DESTINATION share/zsh/vendor-completions COMPONENT program)
install(FILES ${AHA_PAGES}/aha.fish DESTINATION share/fish/vendor_completions.d COMPONENT program)

install(FILES library/include/aha/aha.h library/include/aha/aha_c.h ${CMAKE_BINARY_DIR}/include/aha/version.h DESTINATION include/aha COMPONENT dev)
include(CMakePackageConfigHelpers)
set(AHA_CONFIG ${AHA_LIB}/cmake/aha)
configure_package_config_file(cmake/ahaConfig.cmake.in ${CMAKE_BINARY_DIR}/ahaConfig.cmake INSTALL_DESTINATION ${AHA_CONFIG} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/ahaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/ahaConfig.cmake ${CMAKE_BINARY_DIR}/ahaConfigVersion.cmake DESTINATION ${AHA_CONFIG} COMPONENT dev)
install(EXPORT ahaTargets NAMESPACE aha:: DESTINATION ${AHA_CONFIG} COMPONENT dev)
configure_file(cmake/aha.pc.in ${CMAKE_BINARY_DIR}/aha.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/aha.pc DESTINATION ${AHA_LIB}/pkgconfig COMPONENT dev)
install(FILES LICENSE DESTINATION ${AHA_DOC} RENAME copyright COMPONENT program)
install(FILES LICENSE DESTINATION share/doc/libaha-dev RENAME copyright COMPONENT dev)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME aha)
set(CPACK_PACKAGE_CONTACT "aha maintainers <maintainers@aha.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
get_cmake_property(AHA_COMPONENTS COMPONENTS)
set(CPACK_COMPONENTS_ALL program dev)
if(python IN_LIST AHA_COMPONENTS)
  list(APPEND CPACK_COMPONENTS_ALL python)
  find_package(Python REQUIRED COMPONENTS Interpreter)  # the version that the module was compiled for
  math(EXPR AHA_NEXT_PYTHON "${Python_VERSION_MINOR} + 1")
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip)  # xz: 20 MB instead of 21, in a minute
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME aha)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "The program aha (explain, evaluate, train, serve), its library, bundled models,
evaluation protocols and recipes. It runs on the CPU.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
# libtorch takes any BLAS; the reference one would be many times slower.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "libopenblas0-pthread | libopenblas0-openmp | libopenblas0-serial")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "npm")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libaha-dev)
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers for C and C++, the CMake package aha (target aha::aha) and the pkg-config
file of libaha.")
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "aha (= ${PROJECT_VERSION})")

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-aha)
set(CPACK_COMPONENT_PYTHON_DESCRIPTION "The Python module aha: numpy arrays in and out.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "aha (= ${PROJECT_VERSION}), python3 (>= 3.${Python_VERSION_MINOR}), python3 (<< 3.${AHA_NEXT_PYTHON}), python3-numpy")
include(CPack)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# `cmake --install`: tools, the C library with its headers and CMake package,
# the plugin for mlir-opt, headers for plugins of others, manual pages and
# completions. `cpack` makes Debian packages of it: axopt, and axopt-mpi with what
# needs MPI.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# _ax_print(TOOL FLAG FOLDER NAME): what `TOOL FLAG` prints, in share/FOLDER.
function(_ax_print tool flag folder name)
  set(file "${CMAKE_BINARY_DIR}/share/${folder}/${name}")
  add_custom_command(OUTPUT "${file}" VERBATIM DEPENDS ${tool}
    COMMAND ${CMAKE_COMMAND} -E make_directory
            "${CMAKE_BINARY_DIR}/share/${folder}"
    COMMAND ${CMAKE_COMMAND} "-DCOMMAND=$<TARGET_FILE:${tool}>;${flag}"
            "-DOUTPUT=${file}" -P "${CMAKE_SOURCE_DIR}/cmake/WriteOutput.cmake")
  set_property(GLOBAL APPEND PROPERTY AX_PRINTED "${file}")
endfunction()

foreach(tool axopt axrun axlaunch ax-analyze-flight ax-collectives)
  _ax_print(${tool} --print-man man/man1 ${tool}.1)
  _ax_print(${tool} --print-completion=bash bash-completion/completions ${tool})
  _ax_print(${tool} --print-completion=zsh zsh/site-functions _${tool})
endforeach()
get_property(printed GLOBAL PROPERTY AX_PRINTED)
add_custom_target(manuals ALL DEPENDS ${printed})

# Before anything is copied: `cmake --install` builds nothing by itself, and of
# half a build (`tools/dev demo` makes what it runs) it would install half.
set(needed ${printed})
foreach(target axopt axrun axrun-core axlaunch ax-analyze-flight
        ax-collectives axopt-opt AxRunC AxPlugin)
  list(APPEND needed "$<TARGET_FILE:${target}>")
endforeach()
install(CODE "
  set(needed \"${needed}\")
  foreach(file IN LISTS needed)
    if(NOT EXISTS \"\${file}\")
      message(FATAL_ERROR \"'\${file}' is not built: before cmake --install, \"
              \"build everything: tools/dev build\")
    endif()
  endforeach()")

# Libraries of LLVM may lie where the loader does not look by itself.
set_target_properties(axopt axrun axrun-core axlaunch ax-analyze-flight
  ax-collectives axopt-opt AxRunC AxPlugin PROPERTIES
  INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}"
  INSTALL_RPATH_USE_LINK_PATH TRUE)
install(TARGETS axopt axrun axrun-core axlaunch ax-analyze-flight
        ax-collectives axopt-opt RUNTIME)
install(TARGETS AxRunC EXPORT axoptTargets LIBRARY
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES include/ax-c/axrun.h
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ax-c")
install(TARGETS AxPlugin LIBRARY)
# Where the loader looks for what the tools need.
if(TARGET ax-mpi)
  install(TARGETS ax-mpi ax-mpi-peer LIBRARY COMPONENT mpi)
endif()

# What passes in a library of their own are made with; the code is axopt-opt's.
add_library(AxPluginHeaders INTERFACE)
set_target_properties(AxPluginHeaders PROPERTIES EXPORT_NAME plugin)
target_compile_features(AxPluginHeaders INTERFACE cxx_std_17)
if(NOT LLVM_ENABLE_RTTI)
  target_compile_options(AxPluginHeaders INTERFACE -fno-rtti)
endif()
target_link_libraries(AxPluginHeaders INTERFACE MLIR LLVM)
install(TARGETS AxPluginHeaders EXPORT axoptTargets
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
foreach(room Cost Dialect Interpreter Local Passes Sharding Support)
  foreach(root "${CMAKE_SOURCE_DIR}" "${CMAKE_BINARY_DIR}")
    install(DIRECTORY "${root}/include/ax/${room}"
            DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ax" OPTIONAL
            FILES_MATCHING PATTERN "*.h" PATTERN "*.h.inc" PATTERN "*.def"
            PATTERN CMakeFiles EXCLUDE)
  endforeach()
endforeach()

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/axopt")
install(EXPORT axoptTargets NAMESPACE axopt:: DESTINATION "${package}")
configure_package_config_file(cmake/axoptConfig.cmake.in axoptConfig.cmake
                              INSTALL_DESTINATION "${package}")
write_basic_package_version_file(axoptConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/axoptConfig.cmake"
              "${CMAKE_BINARY_DIR}/axoptConfigVersion.cmake"
        DESTINATION "${package}")

foreach(file ${printed})
  file(RELATIVE_PATH name "${CMAKE_BINARY_DIR}/share" "${file}")
  get_filename_component(folder "${name}" DIRECTORY)
  install(FILES "${file}" DESTINATION "${CMAKE_INSTALL_DATADIR}/${folder}")
endforeach()
install(FILES tools/axopt-opt/axopt-opt.1
        DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
install(FILES LICENSE README.md CHANGELOG.md
        DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# What has no component is Unspecified.
set(CPACK_COMPONENTS_ALL Unspecified)
if(TARGET ax-mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "maintainers of axopt")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY
    "compile ONNX models into plans that many ranks run together")
set(CPACK_PACKAGING_INSTALL_PREFIX "/usr")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME axopt)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_SUGGESTS axopt-mpi)
set(CPACK_DEBIAN_UNSPECIFIED_DESCRIPTION
    "${CPACK_PACKAGE_DESCRIPTION_SUMMARY}")
# ZeroMQ is opened at run time. srun may stand in for mpirun.
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS
    "axopt (= ${PROJECT_VERSION}), libzmq5")
# Whose older packages have its files.
set(CPACK_DEBIAN_MPI_PACKAGE_BREAKS "axopt (<< ${PROJECT_VERSION})")
set(CPACK_DEBIAN_MPI_PACKAGE_REPLACES "axopt (<< ${PROJECT_VERSION})")
set(CPACK_DEBIAN_MPI_PACKAGE_RECOMMENDS openmpi-bin)
set(CPACK_DEBIAN_MPI_DESCRIPTION
    "ranks of axopt's plans as processes, by Open MPI")
include(CPack)

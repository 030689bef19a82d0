# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Libraries from outside. Optional ones leave their target undefined.

# What tools/dev builds outside the tree.
if(DEFINED ENV{AXOPT_CACHE})
  set(AX_CACHE "$ENV{AXOPT_CACHE}")
else()
  set(AX_CACHE "$ENV{HOME}/.cache/axopt")
endif()

find_program(AX_LLVM_CONFIG NAMES llvm-config-22)
if(AX_LLVM_CONFIG)
  execute_process(COMMAND "${AX_LLVM_CONFIG}" --prefix
                  OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
find_package(MLIR REQUIRED CONFIG HINTS "${prefix}/lib/cmake/mlir")
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "LLVM/MLIR 22 is needed, found ${LLVM_VERSION}: "
          "install libmlir-22-dev, or set MLIR_DIR")
endif()
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
find_program(LLVM_TABLEGEN_EXE NAMES llvm-tblgen
             HINTS "${LLVM_TOOLS_BINARY_DIR}" NO_DEFAULT_PATH REQUIRED)
include(TableGen)
include(AddLLVM)
include(AddMLIR)
set(LLVM_RUNTIME_OUTPUT_INTDIR "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
set(LLVM_LIBRARY_OUTPUT_INTDIR "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
separate_arguments(definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
add_definitions(${definitions})
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})

find_package(Threads REQUIRED)
find_package(GTest QUIET)

# The archives by themselves: LLVM's targets ask for libraries, as z3, of which
# nothing here is used.
add_library(AxStaticLLVM INTERFACE)
foreach(part Option TargetParser Support Demangle)
  target_link_libraries(AxStaticLLVM INTERFACE
    "${LLVM_LIBRARY_DIR}/libLLVM${part}.a")
endforeach()
target_link_libraries(AxStaticLLVM INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
include(AxOnnx)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Compiler, linker, cache: what every target is built with.

set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

set(AX_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g0 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")
# What tests of the compiler are compiled with, too: they run for less time than it
# takes to make them fast. Those of the runtime compute what they expect.
set(AX_COMPILER_TEST_OPTIONS "")
if(CMAKE_BUILD_TYPE STREQUAL Release AND NOT AX_SANITIZE)
  set(AX_COMPILER_TEST_OPTIONS -O0)
endif()
# One kind of code in libraries and programs, as one precompiled header serves both.
add_compile_options(-fPIC -Wall -Wextra -Wno-unused-parameter)
if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  # A precompiled header loses where the C++ library tells it to be silent.
  add_compile_options(-Wno-deprecated-declarations)
endif()

if(AX_SANITIZE)
  add_compile_options(-O1 -g1 -UNDEBUG -fno-omit-frame-pointer
                      -fsanitize=${AX_SANITIZE} -fno-sanitize-recover=all)
  # MLIR's shared library carries no type information of ours.
  add_compile_options(-fno-sanitize=vptr)
  add_link_options(-fsanitize=${AX_SANITIZE})
endif()

# Paths are hashed relative to the source tree, so clones share objects.
find_program(AX_CCACHE ccache)
if(AX_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
      CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${AX_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

find_program(AX_LLD ld.lld-22)
if(AX_LLD)
  # g++ finds `-fuse-ld=lld` only under the name ld.lld.
  file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/linker")
  file(CREATE_LINK "${AX_LLD}" "${CMAKE_BINARY_DIR}/linker/ld.lld" SYMBOLIC)
  add_link_options(-fuse-ld=lld "-B${CMAKE_BINARY_DIR}/linker")
endif()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# What rooms use in their CMakeLists.txt.

# ax_add_subdirectories(PATTERN...): every folder that matches and has a
# CMakeLists.txt. New ones are noticed without configuring by hand.
function(ax_add_subdirectories)
  foreach(pattern ${ARGN})
    file(GLOB lists CONFIGURE_DEPENDS
         "${CMAKE_CURRENT_SOURCE_DIR}/${pattern}/CMakeLists.txt")
    foreach(list ${lists})
      get_filename_component(folder "${list}" DIRECTORY)
      add_subdirectory("${folder}")
    endforeach()
  endforeach()
endfunction()

# ax_list_files(VARIABLE FOLDER FILE): the sources in FOLDER, and in the build
# folder a FILE with a line AX_FILE(Name) for each Name.cpp of them, so that what
# they hold can be called without a list by hand. New ones are noticed.
function(ax_list_files variable folder file)
  file(GLOB sources CONFIGURE_DEPENDS
       "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp")
  set(lines "")
  foreach(source ${sources})
    get_filename_component(name "${source}" NAME_WE)
    string(APPEND lines "AX_FILE(${name})\n")
  endforeach()
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${file}" CONTENT "${lines}"
       @ONLY)
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

# ax_add_sanitizer_options(tool): what sanitizers are told in each program.
function(ax_add_sanitizer_options name)
  if(AX_SANITIZE)
    target_sources(${name} PRIVATE
                   "${CMAKE_SOURCE_DIR}/cmake/SanitizerOptions.cpp")
  endif()
endfunction()

# Links DEPENDS (targets of ours) and LIBS (others); MLIR adds the shared
# libraries MLIR and LLVM. TABLEGEN names targets made by ax_add_tablegen.
# NOT_PRECOMPILED: its files are for other processors than precompiled headers are,
# or without LLVM. PRECOMPILED names another of these than the usual one.
macro(_ax_target_common name scope)
  target_link_libraries(${name} ${scope} ${ARG_DEPENDS} ${ARG_LIBS})
  if(ARG_MLIR)
    target_link_libraries(${name} ${scope} MLIR LLVM)
  endif()
  if(NOT ARG_NOT_PRECOMPILED)
    ax_use_precompiled(${name} ${ARG_SOURCES})
  endif()
  if(ARG_TABLEGEN)
    add_dependencies(${name} ${ARG_TABLEGEN})
  endif()
  get_target_property(_type ${name} TYPE)
  if(_type STREQUAL EXECUTABLE)
    ax_add_sanitizer_options(${name})
  endif()
endmacro()

# ax_add_library(AxFoo [SHARED] SOURCES a.cpp ... [DEPENDS AxBar ...] [MLIR]
#                [NOT_PRECOMPILED] [PRECOMPILED NAME] [LIBS ...] [TABLEGEN ...])
function(ax_add_library name)
  cmake_parse_arguments(ARG "MLIR;NOT_PRECOMPILED;SHARED" "PRECOMPILED"
                        "SOURCES;DEPENDS;LIBS;TABLEGEN" ${ARGN})
  if(NOT ARG_SOURCES)
    add_library(${name} INTERFACE)
    _ax_target_common(${name} INTERFACE)
    return()
  endif()
  if(ARG_SHARED)
    add_library(${name} SHARED ${ARG_SOURCES})
  else()
    add_library(${name} STATIC ${ARG_SOURCES})
  endif()
  _ax_target_common(${name} PUBLIC)
endfunction()

# ax_add_backend(Foo ...): the library AxFoo, made as ax_add_library does, whose
# devices or communicators axrun can be told to use: ax/Runtime/Backends.h.
function(ax_add_backend name)
  ax_add_library(Ax${name} ${ARGN})
  set_property(GLOBAL APPEND PROPERTY AX_BACKENDS ${name})
endfunction()

# ax_list_backends(VARIABLE Foo ...): a source in the build folder that defines
# allBackends() as these. They are called by name: of a static library the linker
# takes only what something names.
function(ax_list_backends variable)
  set(declarations)
  set(calls)
  foreach(backend ${ARGN})
    string(APPEND declarations "void register${backend}(Backends &);\n")
    string(APPEND calls "    register${backend}(made);\n")
  endforeach()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/AllBackends.cpp")
  configure_file("${CMAKE_SOURCE_DIR}/runtime/AllBackends.cpp.in" "${source}"
                 @ONLY)
  set(${variable} "${source}" PARENT_SCOPE)
endfunction()

# ax_add_flag_table(target name): NAMEFlags.inc of the folder's Flags.td
# (ax/Support/FlagTable.def), which sources of the target, and of what links it,
# may include.
function(ax_add_flag_table target name)
  set(LLVM_TARGET_DEFINITIONS Flags.td)
  set(TABLEGEN_OUTPUT)
  tablegen(LLVM ${name}Flags.inc -gen-opt-parser-defs
           DEPENDS "${CMAKE_SOURCE_DIR}/include/ax/Support/Flags.td")
  add_public_tablegen_target(${name}FlagsIncGen)
  add_dependencies(${target} ${name}FlagsIncGen)
  target_include_directories(${target} PUBLIC "${CMAKE_CURRENT_BINARY_DIR}")
endfunction()

# ax_add_tool(name SOURCES main.cpp ... [DEPENDS ...] [MLIR] [LIBS ...]):
# a program in bin/, with a table of flags where the folder has a Flags.td that
# no library of it has taken.
function(ax_add_tool name)
  cmake_parse_arguments(ARG "MLIR" "" "SOURCES;DEPENDS;LIBS;TABLEGEN" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/Flags.td"
     AND NOT TARGET ${name}FlagsIncGen)
    ax_add_flag_table(${name} ${name})
  endif()
  _ax_target_common(${name} PRIVATE)
endfunction()

# Everything the tests need is a dependency of this target.
add_custom_target(tests)

# ax_add_unittest(AxFooTests SOURCES ... [DEPENDS ...] [MLIR] [NOT_PRECOMPILED]
#                 [LIBS ...]):
# GoogleTest program that the test runner finds by its name, *Tests. Not part
# of `all`: build it by name, or all of them by `tests`. The runner gives the
# path of test/ in the environment, AX_TEST_DIR (a macro would end the sharing
# of objects between clones).
function(ax_add_unittest name)
  cmake_parse_arguments(ARG "MLIR;NOT_PRECOMPILED" ""
                        "SOURCES;DEPENDS;LIBS;TABLEGEN" ${ARGN})
  if(NOT name MATCHES "Tests$")
    message(FATAL_ERROR "${name}: the test runner looks for names in *Tests")
  endif()
  if(NOT TARGET GTest::gtest_main)
    return()
  endif()
  add_executable(${name} EXCLUDE_FROM_ALL ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/test/unit")
  _ax_target_common(${name} PRIVATE)
  target_link_libraries(${name} PRIVATE GTest::gtest_main)
  if(ARG_MLIR)
    target_compile_options(${name} PRIVATE
      "$<$<COMPILE_LANGUAGE:CXX>:${AX_COMPILER_TEST_OPTIONS}>")
  endif()
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/Flags.td")
    ax_add_flag_table(${name} ${name})
  endif()
  add_dependencies(tests ${name})
endfunction()

# ax_add_fuzzer(FooFuzzer SOURCES ... [DEPENDS ...] [MLIR] [LIBS ...]): a
# program around LLVMFuzzerTestOneInput. It runs with
# our test/fuzz/Driver.cpp, or libFuzzer's own where that is linked.
function(ax_add_fuzzer name)
  cmake_parse_arguments(ARG "MLIR" "" "SOURCES;DEPENDS;LIBS;TABLEGEN" ${ARGN})
  if(NOT name MATCHES "Fuzzer$")
    message(FATAL_ERROR "${name}: the test runner looks for names in *Fuzzer")
  endif()
  if(AX_SANITIZE MATCHES fuzzer)
    set(driver)
  else()
    set(driver "${CMAKE_SOURCE_DIR}/test/fuzz/Driver.cpp")
  endif()
  add_executable(${name} EXCLUDE_FROM_ALL ${ARG_SOURCES} ${driver})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/test/fuzz")
  _ax_target_common(${name} PRIVATE)
  if(AX_SANITIZE MATCHES fuzzer)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  endif()
  add_dependencies(tests ${name})
endfunction()

# ax_add_tablegen(AxFooIncGen TD Foo.td OUTPUTS Foo.h.inc -gen-op-decls
#                 Foo.cpp.inc -gen-op-defs ...): files generated into the
# build's mirror of the current source folder, so a .td in include/ax/Dialect
# gives #include "ax/Dialect/Foo.h.inc". An option may be a list in quotes:
# "-gen-dialect-decls;-dialect=ax".
function(ax_add_tablegen name)
  if(ARGC LESS 6 OR NOT ARGV1 STREQUAL TD OR NOT ARGV3 STREQUAL OUTPUTS)
    message(FATAL_ERROR "${name}: expected TD FILE OUTPUTS (FILE OPTION)...")
  endif()
  set(LLVM_TARGET_DEFINITIONS ${ARGV2})
  set(TABLEGEN_OUTPUT)
  set(file 4)
  while(file LESS ARGC)
    math(EXPR option "${file} + 1")
    mlir_tablegen(${ARGV${file}} ${ARGV${option}})
    math(EXPR file "${file} + 2")
  endwhile()
  add_public_tablegen_target(${name})
endfunction()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Headers that most files include, precompiled. A compiler instantiates their
# templates once there (clang) where it would in each file.
#
# ccache takes what the headers say (.sum), not the file that the compiler makes
# of them, which has paths of this clone.

option(AX_PRECOMPILE "Precompile headers that most files include" ON)

# _ax_precompile(NAME [TARGET...]): cmake/NAME.h, with options of the targets,
# which are others' libraries. NAME_HEADER is the copy of it that files are told
# to include, NAME_FILE what the compiler made of it, which lies beside it.
function(_ax_precompile name)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    set(suffix gch)
  else()
    set(suffix pch)
    set(own -fpch-instantiate-templates)
  endif()
  set(source "${CMAKE_SOURCE_DIR}/cmake/${name}.h")
  set(folder "${CMAKE_BINARY_DIR}/precompiled")
  set(header "${folder}/${name}.h")
  configure_file("${source}" "${header}" COPYONLY)

  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  separate_arguments(flags NATIVE_COMMAND
                     "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}")
  get_directory_property(options COMPILE_OPTIONS)
  get_directory_property(macros COMPILE_DEFINITIONS)
  list(TRANSFORM macros PREPEND -D)
  list(APPEND flags ${macros} -std=c++17 ${options}
       "-I${CMAKE_SOURCE_DIR}/include" "-I${CMAKE_BINARY_DIR}/include")
  foreach(path ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
    list(APPEND flags -isystem "${path}")
  endforeach()
  if(name MATCHES "MlirTests$")
    list(APPEND flags ${AX_COMPILER_TEST_OPTIONS})
  endif()
  foreach(target ${ARGN})
    get_target_property(options ${target} INTERFACE_COMPILE_OPTIONS)
    get_target_property(paths ${target} INTERFACE_INCLUDE_DIRECTORIES)
    list(REMOVE_ITEM paths ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
    list(TRANSFORM paths PREPEND -isystem)
    list(APPEND flags ${options} ${paths})
  endforeach()

  set(file "${header}.${suffix}")
  add_custom_command(
    OUTPUT "${file}" "${file}.sum"
    COMMAND "${CMAKE_CXX_COMPILER}" ${flags} ${own} -x c++-header "${header}"
            -MD -MF "${header}.d" -MT "${file}" -o "${file}"
    COMMAND "${CMAKE_CXX_COMPILER}" ${flags} -x c++-header -E -P -dD
            "${header}" -o "${header}.ii"
    COMMAND sh -c "sha256sum <'${header}.ii' >'${file}.sum'"
    COMMAND "${CMAKE_COMMAND}" -E rm "${header}.ii"
    DEPENDS "${source}" AxDialectIncGen AxLocalIncGen
    DEPFILE "${header}.d"
    COMMENT "Precompiling ${name}.h"
    VERBATIM)
  add_custom_target(Ax${name} DEPENDS "${file}")
  set(${name}_HEADER "${header}" PARENT_SCOPE)
  set(${name}_FILE "${file}" PARENT_SCOPE)
endfunction()

if(AX_PRECOMPILE AND CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$")
  _ax_precompile(Precompiled)
  _ax_precompile(PrecompiledMlir)
  _ax_precompile(PrecompiledKernels)
  if(TARGET GTest::gtest)
    _ax_precompile(PrecompiledTests GTest::gtest)
    _ax_precompile(PrecompiledMlirTests GTest::gtest)
  endif()
endif()

# ax_use_precompiled(target SOURCE...): they include one of these before all else:
# that of ARG_PRECOMPILED, or with what MLIR, if ARG_MLIR, and GoogleTest, if the
# target's name says so, bring.
function(ax_use_precompiled name)
  set(which Precompiled${ARG_PRECOMPILED})
  if(ARG_MLIR AND NOT ARG_PRECOMPILED)
    string(APPEND which Mlir)
  endif()
  if(name MATCHES "Tests$")
    string(APPEND which Tests)
  endif()
  if(NOT ARGN OR NOT ${which}_FILE)
    return()
  endif()
  # GCC is told what ccache asks for, too.
  target_compile_options(${name} PRIVATE
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>"
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include ${${which}_HEADER}>")
  set_property(SOURCE ${ARGN} APPEND PROPERTY OBJECT_DEPENDS "${${which}_FILE}")
endfunction()

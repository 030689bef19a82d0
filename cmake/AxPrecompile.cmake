# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Precompiled headers of MLIR and LLVM. They are outside the tree, as the onnx
# library is, so that builds of every clone read, and ccache hashes, the same.

set(AX_PRECOMPILED_HEADER "" CACHE INTERNAL "Included before all else")
option(AX_PRECOMPILE "Precompile the headers of MLIR and LLVM" ON)
if(NOT AX_PRECOMPILE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  return()
endif()

string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
separate_arguments(flags NATIVE_COMMAND
                   "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}")
get_directory_property(options COMPILE_OPTIONS)
get_directory_property(macros COMPILE_DEFINITIONS)
list(TRANSFORM macros PREPEND -D)
list(APPEND flags ${macros} -std=c++17 -fPIC ${options})
foreach(folder ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  list(APPEND flags -isystem "${folder}")
endforeach()

set(source "${CMAKE_SOURCE_DIR}/cmake/Precompiled.h")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
file(SHA256 "${source}" sourceHash)
# Another package of the same version has other dates.
list(GET MLIR_INCLUDE_DIRS 0 folder)
file(TIMESTAMP "${folder}/mlir/IR/Operation.h" date)
set(key "${CMAKE_CXX_COMPILER_VERSION} ${LLVM_PACKAGE_VERSION} ${date}")
string(APPEND key " ${sourceHash} ${flags}")
string(SHA256 key "${key}")
string(SUBSTRING "${key}" 0 16 key)
set(folder "${AX_CACHE}/headers-${key}")
set(header "${folder}/Precompiled.h")
file(MAKE_DIRECTORY "${folder}")
file(LOCK "${folder}/lock")
if(NOT EXISTS "${header}.gch.sum")
  message(STATUS "Precompiling MLIR's headers into ${folder}")
  file(COPY_FILE "${source}" "${header}")
  execute_process(
    COMMAND "${CMAKE_CXX_COMPILER}" ${flags} -x c++-header "${header}"
            -o "${header}.gch.new"
    RESULT_VARIABLE failed ERROR_VARIABLE errors)
  if(failed)
    message(WARNING "precompiling headers failed, going on without: ${errors}")
    return()
  endif()
  file(RENAME "${header}.gch.new" "${header}.gch")
  # What ccache hashes in place of 250 MB.
  file(WRITE "${header}.gch.sum" "${key}\n")
endif()
file(LOCK "${folder}/lock" RELEASE)
set(AX_PRECOMPILED_HEADER "${header}" CACHE INTERNAL "Included before all else")

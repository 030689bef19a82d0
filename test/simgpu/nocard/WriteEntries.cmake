# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Functions of all names that STUB, a library of CUDA's driver to link with,
# defines, into OUTPUT. Each gives CUDA_SUCCESS where there is no better one.
execute_process(COMMAND "${NM}" -D --defined-only "${STUB}"
                OUTPUT_VARIABLE symbols RESULT_VARIABLE failed)
string(REGEX MATCHALL " T cu[A-Za-z0-9_]+" names "${symbols}")
if(failed OR NOT names)
  message(FATAL_ERROR "${NM}: ${STUB}: no functions of CUDA's driver: ${failed}")
endif()
set(text "#define ENTRY(NAME) __attribute__((weak)) int NAME(void) { return 0; }\n")
foreach(name IN LISTS names)
  string(REPLACE " T " "" name "${name}")
  string(APPEND text "ENTRY(${name})\n")
endforeach()
file(WRITE "${OUTPUT}" "${text}")

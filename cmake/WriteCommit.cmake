# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# The commit of SOURCE as a macro in OUTPUT, which changes only when that does.
find_program(git git)
set(commit "no commit")
if(git)
  execute_process(
    COMMAND "${git}" -C "${SOURCE}" describe --always --dirty --abbrev=12
    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed)
    set(commit "commit ${described}")
  endif()
endif()
set(text "#define AX_COMMIT \"${commit}\"\n")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" before)
endif()
if(NOT "${before}" STREQUAL "${text}")
  file(WRITE "${OUTPUT}" "${text}")
endif()

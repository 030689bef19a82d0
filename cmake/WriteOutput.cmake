# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# What COMMAND prints into OUTPUT; nothing stays there when it fails.
execute_process(COMMAND ${COMMAND} OUTPUT_FILE "${OUTPUT}"
                RESULT_VARIABLE failed)
if(failed)
  file(REMOVE "${OUTPUT}")
  message(FATAL_ERROR "${COMMAND}: ${failed}")
endif()

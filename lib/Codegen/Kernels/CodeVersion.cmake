# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# cmake -DFILES=... -DOUTPUT=... -P CodeVersion.cmake: a header with the hash of
# all that is in FILES.
set(all)
foreach(file IN LISTS FILES)
  file(SHA256 "${file}" hash)
  string(APPEND all ${hash})
endforeach()
string(SHA256 hash "${all}")
file(WRITE "${OUTPUT}" "#define AX_CODE_VERSION \"${hash}\"\n")

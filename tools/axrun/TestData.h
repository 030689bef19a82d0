//===- TestData.h - Tensors of ONNX test cases ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXRUN_TESTDATA_H
#define AX_TOOLS_AXRUN_TESTDATA_H

#include "ax/Runtime/Npy.h"

#include "llvm/ADT/ArrayRef.h"

namespace ax {

/// Reads what `--test-data` names. Only who has ONNX's library can.
class TestData {
public:
  virtual ~TestData() = default;

  /// `PREFIX_0.pb`, `PREFIX_1.pb`, ... in the folder, or in the
  /// `test_data_set_0` in it.
  virtual std::vector<std::string> files(llvm::StringRef folder,
                                         llvm::StringRef prefix) const = 0;
  /// Reads the tensors of files; one that has none of `names` gets that at its
  /// place.
  virtual llvm::Expected<rt::NamedTensors>
  read(llvm::StringRef folder, llvm::StringRef prefix,
       llvm::ArrayRef<std::string> names) const = 0;
};

} // namespace ax

#endif // AX_TOOLS_AXRUN_TESTDATA_H

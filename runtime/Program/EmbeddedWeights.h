//===- EmbeddedWeights.h - Weights in a compiled plan -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last field of the message, in which every weight begins at a multiple of
// 64 bytes, zeros between them. It is not read into memory: states come from
// the plan's own file.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_PROGRAM_EMBEDDEDWEIGHTS_H
#define AX_RUNTIME_PROGRAM_EMBEDDEDWEIGHTS_H

#include "ax/Runtime/CompiledPlan.h"
#include "ax/Runtime/StateFiles.h"
#include "ax/Support/AtomicFile.h"

namespace ax::rt {

class EmbeddedWeights {
public:
  static constexpr uint64_t alignment = 64;

  /// Those of the plan's states that come from files, in `folder`. The plan
  /// becomes one whose states come from itself, by offset from the first of
  /// them.
  static llvm::Expected<EmbeddedWeights> take(CompiledPlan &plan,
                                              const std::string &folder);

  /// Returns tag and length of the field; nothing when there are no weights.
  static std::string header(int64_t bytes);
  /// Returns the bytes of the field's contents.
  int64_t getBytes() const { return bytes; }
  llvm::Error write(AtomicFile &file) const;

private:
  int64_t bytes = 0;
  std::vector<StateFiles::Range> pieces;
};

/// `rest`: the bytes of the file behind the rest of the message. They must be
/// the field with the weights that the plan says it has, whose states come from
/// that file then; nothing when it has none. A BadPlan error otherwise.
llvm::Error placeEmbedded(CompiledPlan &plan, llvm::ArrayRef<uint8_t> rest,
                          const std::shared_ptr<MappedFile> &file);

} // namespace ax::rt

#endif // AX_RUNTIME_PROGRAM_EMBEDDEDWEIGHTS_H

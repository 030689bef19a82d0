//===- GivenWeights.h - Weights of a file for those of a model --*- C++ -*-===//
//
// What is common to axrun --weights and axopt --export-onnx: a file from
// elsewhere does not have all that a model names, and not always as it has it.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SUPPORT_GIVENWEIGHTS_H
#define AX_SUPPORT_GIVENWEIGHTS_H

#include "ax/Support/HostTensor.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ax {

/// As the model has it. The bytes are there as long as its files are mapped.
struct ModelWeight {
  std::string name;
  DType type = DType::F32;
  Shape shape;
  llvm::ArrayRef<uint8_t> bytes;
};

/// For each of `missing` that has the bytes of one of `given` in the model, the
/// name of that one: exporters write a weight that is used twice two times, and
/// save_pretrained does so once. Only floats that are not all equal count: a
/// bias of zeros equals every other one. So do layers that began as copies:
/// what differs from a name in the file only by numbers is no twin.
std::map<std::string, std::string> findTied(llvm::ArrayRef<ModelWeight> missing,
                                            llvm::ArrayRef<ModelWeight> given);

/// The user's word for such: names of weights that a file lacks, each with that
/// of the file's whose values it gets (`--tied A=B`).
using Ties = std::map<std::string, std::string>;
llvm::Expected<Ties> parseTies(llvm::ArrayRef<std::string> pairs);
/// `lacking` are the model's that the file `path` lacks; `isGiven` knows the
/// file's.
llvm::Error checkTies(const Ties &ties, llvm::ArrayRef<std::string> lacking,
                      llvm::function_ref<bool(const std::string &)> isGiven,
                      llvm::StringRef path);

/// Whether a tensor of that name is computed by the model's code, and not
/// learned, so that state_dict leaves it out: PyTorch's buffers that are not
/// persistent (`rotary_emb.inv_freq`).
bool isComputedBuffer(llvm::StringRef name);

/// Given tensors in the types that the model has.
class Widening {
public:
  /// Whether a tensor of type `given` can be taken: bf16 and f16 as f32, which
  /// loses nothing, or what is `wanted`.
  static bool fits(DType wanted, DType given);
  llvm::Expected<HostTensor> to(DType wanted, const HostTensor &tensor);
  /// One line about all of them, if there were any.
  void tell(llvm::StringRef path,
            const std::function<void(const std::string &)> &warn) const;

private:
  std::map<DType, int64_t> counts;
};

/// `'a', 'b' and 3 more`.
std::string listSome(llvm::ArrayRef<std::string> names, size_t most = 5);

} // namespace ax

#endif // AX_SUPPORT_GIVENWEIGHTS_H

//===- CpuLibrary.h - Library operations on the CPU -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CPULIBRARY_H
#define AX_RUNTIME_CPULIBRARY_H

#include "ax/Runtime/Device.h"
#include "ax/Runtime/HostMemory.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <map>
#include <mutex>
#include <string>
#include <tuple>

namespace ax::rt {

class CpuOp : public LibraryOp {
public:
  virtual llvm::Error execute(void *const *arguments, void *workspace) = 0;
};

/// A ConstantOperand, where it is in this process.
struct CpuConstant {
  const void *data = nullptr;
  uint64_t identity = 0;
  int64_t byteOffset = 0;
};

/// Packed weights by what they were packed from and how, as long as somebody
/// uses them.
class PackedWeights {
public:
  /// `pack` fills the memory; it runs once for equal contents and formats.
  llvm::Expected<std::shared_ptr<const HostMemory>>
  get(const CpuConstant &constant, const std::string &format, int64_t bytes,
      llvm::function_ref<llvm::Error(void *)> pack);

private:
  struct Entry {
    std::mutex mutex;
    std::weak_ptr<const HostMemory> memory;
  };
  std::mutex mutex;
  /// The packed weights, by identity, place in it, and format.
  std::map<std::tuple<uint64_t, int64_t, std::string>, std::shared_ptr<Entry>>
      entries;
};

using ExpectedCpuOp = llvm::Expected<std::unique_ptr<CpuOp>>;

/// Prepares `desc` by the fastest of what follows on this processor.
ExpectedCpuOp prepareCpuOp(const LibraryDesc &desc, const CpuConstant &constant,
                           PackedWeights &packed);

/// Prepares a product, or a convolution, by our own packed kernels. A null
/// pointer: not for these operands.
ExpectedCpuOp preparePackedMatmul(const MatmulDesc &desc,
                                  const CpuConstant &constant,
                                  PackedWeights &packed);
ExpectedCpuOp preparePackedConv(const ConvDesc &desc,
                                const CpuConstant &constant,
                                PackedWeights &packed);
/// Of a convolution's weight; the same.
ExpectedCpuOp preparePackedConvGradient(const ConvDesc &desc);

/// Prepares a product by oneDNN. A null pointer: oneDNN cannot do it.
ExpectedCpuOp prepareDnnlMatmul(const MatmulDesc &desc,
                                const CpuConstant &constant,
                                PackedWeights &packed);
ExpectedCpuOp prepareDnnlConv(const ConvDesc &desc, const CpuConstant &constant,
                              PackedWeights &packed);

/// What `prepare` makes, but that an activation keeps NaN. A null pointer where
/// `prepare` gives one.
ExpectedCpuOp
guardNaN(const MatmulDesc &desc, const CpuConstant &constant,
         llvm::function_ref<ExpectedCpuOp(const MatmulDesc &)> prepare);
ExpectedCpuOp
guardNaN(const ConvDesc &desc, const CpuConstant &constant,
         llvm::function_ref<ExpectedCpuOp(const ConvDesc &)> prepare);

/// Every group is one channel.
inline bool isDepthwise(const ConvDesc &desc) {
  return desc.groups > 1 && desc.x.sizes[1] == desc.groups &&
         desc.y.sizes[1] == desc.groups;
}

/// Whether our own kernel is for it: f32 of which channels lie together, or
/// places of signals.
bool isPlainDepthwiseConv(const ConvDesc &desc);
/// Whether that kernel is for it as for a signal of one channel, which is
/// filtered.
bool isFilter(const ConvDesc &desc);
/// `desc` is one of these.
ExpectedCpuOp preparePlainDepthwiseConv(const ConvDesc &desc);

/// A transposed convolution of f32 to few channels, whose windows lie side by
/// side. A null pointer: it is another.
ExpectedCpuOp prepareSpreadConvTransposed(const ConvDesc &desc);

/// These are our own, for any element type.
ExpectedCpuOp preparePlainMatmul(const MatmulDesc &desc);
ExpectedCpuOp preparePlainConv(const ConvDesc &desc);
ExpectedCpuOp preparePlainConvTransposed(const ConvDesc &desc);
ExpectedCpuOp preparePlainConvWeightGradient(const ConvDesc &desc);
ExpectedCpuOp preparePool(const PoolDesc &desc);
ExpectedCpuOp prepareAttention(const AttentionDesc &desc);
ExpectedCpuOp prepareAttentionGradient(const AttentionGradientDesc &desc);
ExpectedCpuOp prepareTopK(const TopKDesc &desc);
ExpectedCpuOp prepareNonMaxSuppression(const NonMaxSuppressionDesc &desc);
ExpectedCpuOp prepareIndexCheck(const IndexCheckDesc &desc);
ExpectedCpuOp prepareLookUp(const LookUpDesc &desc);
ExpectedCpuOp prepareBlockMatmul(const BlockMatmulDesc &desc);

/// Of products by `prepareCpuOp`, or by our own packed kernels.
ExpectedCpuOp prepareGroupedMatmul(const GroupedMatmulDesc &desc,
                                   const CpuConstant &constant,
                                   PackedWeights &packed);
ExpectedCpuOp prepareGroupedWeightGradient(const GroupedMatmulDesc &desc);

} // namespace ax::rt

#endif // AX_RUNTIME_CPULIBRARY_H

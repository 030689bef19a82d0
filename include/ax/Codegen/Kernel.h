//===- Kernel.h - From axl.fusion to native code ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel compiler: one `axl.fusion` on local shapes becomes one function in
// an image of its own: an object file for processors, PTX for GPUs.
//
// The function is a kernel's entry (ax/Runtime/Program.h): it does outer
// iterations begin .. end - 1. `buffers`: operands, then results, then scratch
// when the signature asks for it. Tensors are contiguous and row-major, 64-byte
// aligned, i1 is one byte (0 or 1); no result overlaps another buffer, but for
// those of `in_place`. `scalars`: KernelSignature::scalars. Threads may share
// it, as long as each has scratch of its own and outer iterations of its own.
//
//===----------------------------------------------------------------------===//
#ifndef AX_CODEGEN_KERNEL_H
#define AX_CODEGEN_KERNEL_H

#include "ax/Local/Local.h"
#include "ax/Runtime/Program.h"
#include "ax/Support/Target.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ax::codegen {

struct KernelSignature {
  int64_t numOperands = 0;
  int64_t numResults = 0;
  /// The axes of the `axl.axis_index` ops, each once, in order of appearance:
  /// argument i is this rank's number along axes i.
  llvm::SmallVector<AxesAttr, 2> scalars;
  /// Independent outer iterations; a caller may deal them out to threads in
  /// any pieces. All of [0, outerCount) must be done.
  int64_t outerCount = 1;
  /// When > 0: buffer number numOperands + numResults, one per thread, 64-byte
  /// aligned (rt::Kernel::scratchBytes); its content before and after does not
  /// matter.
  int64_t scratchBytes = 0;
  /// Content hash (hexadecimal) of the fusion, the target, and the version of
  /// the compiler: equal keys are the same function.
  std::string key;

  int64_t numBuffers() const {
    return numOperands + numResults + (scratchBytes > 0);
  }
};

struct CompiledKernel {
  KernelSignature signature;
  /// The kernel, without a name. Equal fusions share one.
  std::shared_ptr<const rt::Kernel> image;
};

/// What a collective makes of its members' tensors, for rt::reductionKernel.
struct Reduction {
  /// max, min or sum; of i1 no sum.
  ReduceOpKind kind = ReduceOpKind::sum;
  /// An element type of ax.
  mlir::Type type;
  size_t sources = 0, destinations = 0;

  size_t numBuffers() const { return sources + destinations; }
};

/// How an operation behaves inside a fusion. A fusion may hold any mix; this is
/// what makes a mix fast.
enum class FusionKind {
  /// The kernel compiler has nothing for it (contractions, collectives, ...).
  None,
  /// An element of the result is a function of a few elements of the operands:
  /// costs nothing to fuse into its consumers when it has one use or is cheap
  /// to repeat.
  Pull,
  /// Needs whole rows of its operand: reductions, softmax, norms, arg_reduce,
  /// cumulative. Fast with others that keep the same leading dimensions; its
  /// result is computed once per row.
  Row,
  /// Writes its result at random (scatter): producers are best left outside,
  /// and
  /// the fusion has one outer iteration.
  Window,
};
FusionKind fusionKind(mlir::Operation *op);
/// Whether `op` may be inside a fusion, with the element types it has.
inline bool canFuse(mlir::Operation *op) {
  return fusionKind(op) != FusionKind::None;
}

/// What kernels are written in on their way to code.
void addLoweringDialects(mlir::DialectRegistry &registry);

/// Makes of a fusion what is written of it, and says in attributes which loops
/// that has for a target (KernelNests in lib/Codegen/Kernels/Nests.h). Errors
/// as of KernelCompiler::compile.
llvm::Error showNests(FusionOp fusion, const Target &target = Target::native());

struct KernelOptions {
  /// Folder of compiled objects; created when missing, empty: no cache. A file
  /// that is damaged or of another version is compiled again and replaced.
  std::string cacheDir;
  /// Threads that `compileAll` may use.
  int64_t numThreads = 1;
  /// Told once by `compileAll` when many are in no cache: how many it was given
  /// that differ. May be left empty; any thread may call it.
  std::function<void(int64_t)> onMany;
  /// What runs the kernels.
  Target target = Target::native();
};

/// Thread-safe.
class KernelCompiler {
public:
  static llvm::Expected<std::unique_ptr<KernelCompiler>>
  create(KernelOptions options = {});
  ~KernelCompiler();

  /// Operands, results and values inside must have plain types (no layout).
  llvm::Expected<CompiledKernel> compile(FusionOp fusion);
  /// One kernel for each fusion, in order; equal fusions share theirs.
  llvm::Expected<std::vector<CompiledKernel>>
  compileAll(llvm::ArrayRef<FusionOp> fusions);

  /// Whether there is a kernel for a reduction, which only GPUs have, and not
  /// for more buffers than one may have.
  bool canReduce(const Reduction &reduction) const;
  /// A kernel for one that there is a kernel for. Equal ones share theirs.
  llvm::Expected<std::shared_ptr<const rt::Kernel>>
  compileReduction(const Reduction &reduction);

  struct Statistics {
    int64_t compiled = 0, fromDisk = 0, shared = 0;
    double seconds = 0;
  };
  Statistics getStatistics() const;

private:
  struct Impl;
  explicit KernelCompiler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNEL_H

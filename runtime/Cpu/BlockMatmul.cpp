//===- BlockMatmul.cpp - Products with matrices of few bits ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of x are rounded first. Few of them read the matrix as it lies; of more
// each thread parts some of its numbers, in which all rows meet them.
//
//===----------------------------------------------------------------------===//

#include "CpuLibrary.h"
#include "Threads.h"
#include "ax/Runtime/BlockKernels.h"

#include "llvm/Support/MathExtras.h"

namespace ax::rt {

namespace {

constexpr int64_t alignment = 64;

/// Numbers of a column that are parted at a time: with those of a panel they
/// stay in a core's cache.
constexpr int64_t partedNumbers = 4096;

class BlockMatmul : public CpuOp {
public:
  explicit BlockMatmul(const BlockMatmulDesc &desc)
      : rows(desc.x.sizes[0]), k(desc.x.sizes[1]), columns(desc.w.sizes[0]),
        hasZeros(desc.hasZeros) {
    shape.bits = static_cast<int32_t>(desc.bits);
    shape.blocks = desc.scales.sizes[1];
    shape.laneCount = k / shape.blocks / (laneBytes * shape.groups());
    isOfFew = rows <= kernels.maxFewRows;
    parted =
        std::min(shape.blocks,
                 std::max<int64_t>(1, partedNumbers / shape.blockLength()));
    numberBytes =
        llvm::alignTo(rows * shape.rowBytes(kernels.vectorLanes), alignment);
    int64_t lanesOfX =
        isOfFew ? shape.paddedLanes(kernels.vectorLanes) : shape.blocks;
    scaleBytes =
        llvm::alignTo(rows * lanesOfX * int64_t(sizeof(float)), alignment);
    sumBytes =
        llvm::alignTo(rows * shape.blocks * int64_t(sizeof(float)), alignment);
    int64_t lanes = parted * shape.laneCount * shape.groups();
    panelBytes = lanes * kernels.panelColumns * laneBytes;
    panelScaleBytes = parted * kernels.panelColumns * int64_t(sizeof(float));
    workspaceBytes = numberBytes + scaleBytes + sumBytes;
    if (!isOfFew)
      workspaceBytes += threads * bytesOfThread();
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    const auto *x = static_cast<const float *>(arguments[0]);
    BlockMatrix w = {static_cast<const uint8_t *>(arguments[1]),
                     static_cast<const float *>(arguments[2]),
                     hasZeros ? static_cast<const uint8_t *>(arguments[3])
                              : nullptr};
    auto *y = static_cast<float *>(arguments[hasZeros ? 4 : 3]);
    auto *memory = static_cast<char *>(workspace);
    QuantizedRows rounded = {
        reinterpret_cast<int8_t *>(memory),
        reinterpret_cast<float *>(memory + numberBytes),
        reinterpret_cast<float *>(memory + numberBytes + scaleBytes)};
    constexpr int64_t grain = 1 << 14;
    parallelFor(rows, grain / k + 1, [&](int64_t begin, int64_t end) {
      kernels.quantize(shape, x, begin, end, isOfFew, rounded);
    });
    if (isOfFew)
      parallelFor(columns, grain / k + 1, [&](int64_t begin, int64_t end) {
        kernels.multiplyFew(shape, rounded, rows, w, begin, end, y, columns);
      });
    else
      multiplyPanels(rounded, w, y,
                     memory + numberBytes + scaleBytes + sumBytes);
    return llvm::Error::success();
  }

private:
  int64_t bytesOfThread() const { return panelBytes + 2 * panelScaleBytes; }

  void multiplyPanels(const QuantizedRows &x, const BlockMatrix &w, float *y,
                      char *memory) const {
    int64_t panels = llvm::divideCeil(columns, kernels.panelColumns);
    parallelUnits(panels, threads, [&](int64_t panel, int64_t part) {
      char *ofThread = memory + part * bytesOfThread();
      auto *numbers = reinterpret_cast<uint8_t *>(ofThread);
      auto *scales = reinterpret_cast<float *>(ofThread + panelBytes);
      float *zeros = scales + panelScaleBytes / int64_t(sizeof(float));
      int64_t first = panel * kernels.panelColumns;
      int64_t count = std::min(kernels.panelColumns, columns - first);
      for (int64_t block = 0; block < shape.blocks; block += parted) {
        int64_t blocks = std::min(parted, shape.blocks - block);
        kernels.part(shape, w, first, first + count, block, blocks, numbers,
                     scales, zeros);
        for (int64_t row = 0; row < rows; row += kernels.maxTileRows)
          kernels.multiplyPanel(shape, x, row,
                                std::min(kernels.maxTileRows, rows - row),
                                block, blocks, numbers, scales, zeros, count,
                                y + row * columns + first, columns);
      }
    });
  }

  const BlockKernels &kernels = blockKernels();
  /// That have memory of their own.
  const int64_t threads = getNumThreads();
  BlockShape shape;
  int64_t rows, k, columns;
  bool hasZeros, isOfFew;
  /// Blocks that are parted at a time.
  int64_t parted;
  int64_t numberBytes, scaleBytes, sumBytes, panelBytes, panelScaleBytes;
};

} // namespace

ExpectedCpuOp prepareBlockMatmul(const BlockMatmulDesc &desc) {
  return std::make_unique<BlockMatmul>(desc);
}

} // namespace ax::rt

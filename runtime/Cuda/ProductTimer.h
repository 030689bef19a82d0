//===- ProductTimer.h - How long products take ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_PRODUCTTIMER_H
#define AX_RUNTIME_CUDA_PRODUCTTIMER_H

#include "CudaProducts.h"

namespace ax::rt::cuda {

/// Times ways to compute one product, on a stream and operands of its own.
class ProductTimer {
public:
  /// Returns null where operands and `workspaceBytes` are more than
  /// `mostBytes`, or than the card has free.
  static llvm::Expected<std::unique_ptr<ProductTimer>>
  create(const SharedCard &card, const MatmulDesc &desc, int64_t workspaceBytes,
         int64_t mostBytes);

  /// Returns the median of several executions, after one that does not count.
  llvm::Expected<std::chrono::nanoseconds> time(CudaOp &op);

private:
  explicit ProductTimer(SharedCard card) : card(std::move(card)) {}

  SharedCard card;
  // In this order: memory is freed when the stream has done its work.
  std::vector<std::unique_ptr<DeviceMemory>> memory;
  std::vector<DeviceAddress> arguments;
  DeviceAddress workspace;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Event> begin, end;
};

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_PRODUCTTIMER_H

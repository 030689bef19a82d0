//===- CudaStream.h - Streams, events and marks of a card -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_CUDASTREAM_H
#define AX_RUNTIME_CUDA_CUDASTREAM_H

#include "Card.h"

namespace ax::rt::cuda {

llvm::Expected<std::unique_ptr<Stream>> makeStream(const SharedCard &card,
                                                   StreamPriority priority);
llvm::Expected<std::unique_ptr<Event>> makeEvent(const SharedCard &card,
                                                 bool isTimed);
llvm::Expected<std::unique_ptr<Mark>> makeMark(const SharedCard &card);

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_CUDASTREAM_H

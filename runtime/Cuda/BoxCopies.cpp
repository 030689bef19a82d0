//===- BoxCopies.cpp - A strided box as copies that CUDA can do -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "BoxCopies.h"

namespace ax::rt::cuda {

namespace {

/// Whether rows of `bytes` bytes may be so far apart: CUDA has them one behind
/// another.
bool isPitch(int64_t stride, int64_t bytes, int64_t maxPitch) {
  return stride >= bytes && stride <= maxPitch;
}

/// Whether slices of `rows` rows, which are `pitch` bytes apart, may be
/// `stride` bytes apart: CUDA counts that in rows.
bool isSlice(int64_t stride, int64_t pitch, int64_t rows) {
  return stride % pitch == 0 && stride / pitch >= rows;
}

} // namespace

llvm::Error
forEachCopy(const StridedBox &box, CUdeviceptr source, CUdeviceptr destination,
            int64_t maxPitch,
            llvm::function_ref<llvm::Error(const CUDA_MEMCPY3D &)> copy) {
  CUDA_MEMCPY3D shape{};
  shape.srcMemoryType = shape.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  int64_t bytes = box.getRunBytes();
  shape.WidthInBytes = shape.srcPitch = shape.dstPitch =
      static_cast<size_t>(bytes);
  shape.Height = shape.Depth = shape.srcHeight = shape.dstHeight = 1;
  llvm::ArrayRef<StridedBox::Dim> dims = box.getDims();
  if (!dims.empty() && isPitch(dims.back().sourceStride, bytes, maxPitch) &&
      isPitch(dims.back().destinationStride, bytes, maxPitch)) {
    StridedBox::Dim rows = dims.back();
    dims = dims.drop_back();
    shape.srcPitch = static_cast<size_t>(rows.sourceStride);
    shape.dstPitch = static_cast<size_t>(rows.destinationStride);
    shape.Height = shape.srcHeight = shape.dstHeight =
        static_cast<size_t>(rows.size);
    if (!dims.empty() &&
        isSlice(dims.back().sourceStride, rows.sourceStride, rows.size) &&
        isSlice(dims.back().destinationStride, rows.destinationStride,
                rows.size)) {
      StridedBox::Dim slices = dims.back();
      dims = dims.drop_back();
      shape.srcHeight =
          static_cast<size_t>(slices.sourceStride / rows.sourceStride);
      shape.dstHeight = static_cast<size_t>(slices.destinationStride /
                                            rows.destinationStride);
      shape.Depth = static_cast<size_t>(slices.size);
    }
  }

  StridedBox around(1);
  around.sourceOffset = box.sourceOffset;
  around.destinationOffset = box.destinationOffset;
  for (const StridedBox::Dim &dim : dims)
    around.addDim(dim.size, dim.sourceStride, dim.destinationStride);
  if (box.isEmpty())
    return llvm::Error::success();
  llvm::Error failed = llvm::Error::success();
  around.forEachRun([&](int64_t sourceAt, int64_t destinationAt, int64_t) {
    if (failed)
      return;
    shape.srcDevice = source + static_cast<CUdeviceptr>(sourceAt);
    shape.dstDevice = destination + static_cast<CUdeviceptr>(destinationAt);
    failed = copy(shape);
  });
  return failed;
}

} // namespace ax::rt::cuda

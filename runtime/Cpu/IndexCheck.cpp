//===- IndexCheck.cpp - Indices that are in range -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CpuLibrary.h"
#include "Threads.h"

#include "ax/Runtime/IndexFault.h"
#include "ax/Support/Error.h"

#include <atomic>

namespace ax::rt {

namespace {

/// Runs of this many elements go to a thread.
constexpr int64_t grain = 1 << 14;

template <typename T>
class IndexCheck : public CpuOp {
public:
  explicit IndexCheck(IndexCheckDesc descIn) : desc(std::move(descIn)) {}

  llvm::Error execute(void *const *arguments, void *) override {
    const T *from = static_cast<const T *>(arguments[0]);
    T *to = static_cast<T *>(arguments[1]);
    std::atomic<bool> outside{false};
    parallelFor(desc.indices.numElements(), grain,
                [&](int64_t begin, int64_t end) {
                  if (!copy(from, to, begin, end))
                    outside.store(true, std::memory_order_relaxed);
                });
    return outside ? findAll(from, to) : llvm::Error::success();
  }

private:
  int64_t sizeOf(int64_t i) const {
    return desc.sizes[static_cast<size_t>(i) % desc.sizes.size()];
  }
  bool isInside(int64_t index, int64_t size) const {
    return index >= (desc.isCount ? 0 : -size) && index < size;
  }

  bool copy(const T *from, T *to, int64_t begin, int64_t end) const {
    bool inside = true;
    auto one = [&](int64_t i, int64_t size) {
      int64_t index = from[i];
      inside &= isInside(index, size);
      to[i] = static_cast<T>(index < 0 ? index + size : index);
    };
    if (desc.sizes.size() == 1)
      for (int64_t i = begin, size = desc.sizes.front(); i < end; ++i)
        one(i, size);
    else
      for (int64_t i = begin; i < end; ++i)
        one(i, sizeOf(i));
    return inside;
  }

  llvm::Error findAll(const T *from, T *to) const {
    std::vector<IndexFault::Entry> entries;
    for (int64_t i = 0, e = desc.indices.numElements(); i < e; ++i)
      if (int64_t index = from[i]; !isInside(index, sizeOf(i))) {
        entries.push_back({i, index, sizeOf(i)});
        to[i] = 0;
      }
    return llvm::make_error<IndexFault>(std::move(entries));
  }

  IndexCheckDesc desc;
};

} // namespace

ExpectedCpuOp prepareIndexCheck(const IndexCheckDesc &desc) {
  if (!desc.indices.isDense() || desc.sizes.empty())
    return makeError(ExitCode::Unsupported, "impossible sizes or strides");
  if (desc.indices.dtype == DType::I32)
    return std::make_unique<IndexCheck<int32_t>>(desc);
  if (desc.indices.dtype == DType::I64)
    return std::make_unique<IndexCheck<int64_t>>(desc);
  return makeError(ExitCode::Unsupported, "indices are i32 or i64");
}

} // namespace ax::rt

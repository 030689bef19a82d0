//===- CudnnAttention.cpp - Attention by cuDNN ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What attention gave is at hand for its gradient, and mostly the sums of its
// softmax (Stats), too. Where they are not, they are computed again before,
// which takes a fifth of the time.
//
//===----------------------------------------------------------------------===//

#include "CudaMemory.h"
#include "CudnnAttentionGraphs.h"
#include "CudnnOps.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

namespace ax::rt::cuda {

using namespace attention;

namespace {

constexpr int64_t alignment = CudnnPlan::workspaceAlignment;

/// The numbers that graphs read from the host.
struct Numbers {
  explicit Numbers(const AttentionDesc &desc)
      : scale(static_cast<float>(desc.scale)),
        window(static_cast<float>(desc.window)) {}
  void addTo(llvm::SmallVectorImpl<CudnnPlan::Argument> &arguments,
             const AttentionDesc &desc) {
    arguments.push_back({Scale, &scale});
    if (desc.causal)
      arguments.push_back({Hidden, &hidden});
    if (desc.window)
      arguments.push_back({Window, &window});
  }
  float scale, window, hidden = -std::numeric_limits<float>::infinity(),
                       one = 1;
};

void *pointer(CUdeviceptr address) { return reinterpret_cast<void *>(address); }

/// Of one number for each query.
int64_t statsBytesOf(const AttentionDesc &desc) {
  int64_t rows = desc.q.sizes[0] * desc.q.sizes[1] * desc.q.sizes[2];
  return static_cast<int64_t>(
      llvm::alignTo(rows * static_cast<int64_t>(sizeof(float)), alignment));
}

/// In its workspace are the stats, where nobody reads them, and behind them
/// what the plan needs.
class Attention : public CudaOp {
public:
  Attention(const AttentionDesc &desc, SharedPlan plan)
      : desc(desc), plan(std::move(plan)),
        ownBytes(desc.givesLogSums ? 0 : statsBytesOf(desc)) {
    workspaceBytes = ownBytes + this->plan->getWorkspaceBytes() + alignment;
  }

  llvm::Error execute(CUstream stream, const DeviceAddress *arguments,
                      DeviceAddress workspace) override {
    CUdeviceptr base = llvm::alignTo(toCuda(workspace), alignment);
    Numbers numbers(desc);
    llvm::SmallVector<CudnnPlan::Argument> all;
    auto add = [&](int64_t number) {
      all.push_back({number, pointer(toCuda(*arguments++))});
    };
    for (int64_t number : {Q, K, V})
      add(number);
    if (desc.hasMask)
      add(Mask);
    add(Out);
    all.push_back(
        {Stats, pointer(desc.givesLogSums ? toCuda(*arguments) : base)});
    numbers.addTo(all, desc);
    return plan->execute(stream, all,
                         base + static_cast<CUdeviceptr>(ownBytes));
  }

private:
  AttentionDesc desc;
  SharedPlan plan;
  int64_t ownBytes;
};

class AttentionGradient : public CudaOp {
public:
  /// `forwards`: null where the stats are given.
  AttentionGradient(const AttentionGradientDesc &desc, SharedPlan forwards,
                    SharedPlan backwards, bool nondeterministic)
      : desc(desc), forwards(std::move(forwards)),
        backwards(std::move(backwards)), hasSums(nondeterministic) {
    workspaceBytes = place(End) + alignment;
  }

  llvm::Error execute(CUstream stream, const DeviceAddress *arguments,
                      DeviceAddress workspace) override {
    CUdeviceptr base = llvm::alignTo(toCuda(workspace), alignment);
    auto at = [&](Piece piece) {
      return pointer(base + static_cast<CUdeviceptr>(place(piece)));
    };
    auto next = [&] { return pointer(toCuda(*arguments++)); };
    Numbers numbers(desc.forward);
    llvm::SmallVector<CudnnPlan::Argument> all = {
        {Q, next()}, {K, next()}, {V, next()}};
    numbers.addTo(all, desc.forward);
    void *out = next(), *gradient = next();
    if (desc.forward.hasMask)
      all.push_back({Mask, next()});
    llvm::SmallVector<CudnnPlan::Argument> first(all);
    all.append({{Out, out},
                {Gradient, gradient},
                {Stats, forwards ? at(OfStats) : next()},
                {DQ, next()},
                {DK, next()},
                {DV, next()},
                {Delta, at(OfDelta)},
                {One, &numbers.one}});
    if (hasSums)
      all.push_back({DQSums, at(OfSums)});
    CUdeviceptr scratch = base + static_cast<CUdeviceptr>(place(OfPlans));
    if (forwards) {
      first.append({{Out, at(OfOut)}, {Stats, at(OfStats)}});
      if (llvm::Error error = forwards->execute(stream, first, scratch))
        return error;
    }
    return backwards->execute(stream, all, scratch);
  }

private:
  /// What is in the workspace, one behind another.
  enum Piece { OfDelta, OfStats, OfOut, OfSums, OfPlans, End };
  int64_t place(Piece piece) const {
    int64_t perQuery = statsBytesOf(desc.forward);
    int64_t ofPlans = backwards->getWorkspaceBytes(), outBytes = 0;
    if (forwards) {
      ofPlans = std::max(ofPlans, forwards->getWorkspaceBytes());
      outBytes = desc.forward.out.spanBytes();
    }
    int64_t sumBytes =
        desc.dq.numElements() * static_cast<int64_t>(sizeof(float));
    const int64_t bytes[] = {perQuery, forwards ? perQuery : 0, outBytes,
                             hasSums ? sumBytes : 0, ofPlans};
    int64_t begin = 0;
    for (int i = 0; i < piece; ++i)
      begin += static_cast<int64_t>(llvm::alignTo(bytes[i], alignment));
    return begin;
  }

  AttentionGradientDesc desc;
  SharedPlan forwards, backwards;
  /// dq is added up in f32.
  bool hasSums;
};

} // namespace

std::unique_ptr<CudaOp> makeAttention(const AttentionDesc &desc,
                                      SharedPlan plan) {
  return std::make_unique<Attention>(desc, std::move(plan));
}

std::unique_ptr<CudaOp> makeAttentionGradient(const AttentionGradientDesc &desc,
                                              SharedPlan forwards,
                                              SharedPlan backwards,
                                              bool nondeterministic) {
  return std::make_unique<AttentionGradient>(
      desc, std::move(forwards), std::move(backwards), nondeterministic);
}

} // namespace ax::rt::cuda

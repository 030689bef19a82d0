//===- CudnnDnn.cpp - Attention and convolutions by cuDNN -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CudaDnn.h"
#include "CudnnAttentionGraphs.h"
#include "CudnnConvolutionGraphs.h"
#include "CudnnOps.h"

namespace ax::rt::cuda {

namespace {

/// Layers are alike: each description has one plan, whose making takes about
/// half a second, and so does finding out that there is none.
template <typename Desc>
class PlansByDescription {
public:
  template <typename Build>
  llvm::Expected<SharedPlan> find(const Desc &desc, Build build) {
    for (const auto &[known, plan] : plans)
      if (known == desc)
        return plan;
    for (const auto &[known, why] : refused)
      if (known == desc)
        return makeError(ExitCode::Unsupported, why);
    llvm::Expected<std::unique_ptr<CudnnPlan>> made = build();
    if (made)
      return plans.emplace_back(desc, std::move(*made)).second;
    ErrorDescription error = describeError(made.takeError());
    if (error.code == ExitCode::Unsupported)
      refused.emplace_back(desc, error.message);
    return makeError(error.code, error.message);
  }

private:
  std::vector<std::pair<Desc, SharedPlan>> plans;
  std::vector<std::pair<Desc, std::string>> refused;
};

class CudnnDnn : public CudaDnn {
public:
  CudnnDnn(SharedCard card, const DeviceOptions &options)
      : card(std::move(card)), options(options) {}

  llvm::Expected<std::unique_ptr<CudaOp>>
  prepare(const AttentionDesc &desc) override {
    std::lock_guard<std::mutex> held(mutex);
    llvm::Expected<SharedPlan> plan = findForwards(desc);
    if (!plan)
      return plan.takeError();
    return makeAttention(desc, std::move(*plan));
  }

  llvm::Expected<std::unique_ptr<CudaOp>>
  prepare(const AttentionGradientDesc &desc) override {
    if (std::string obstacle = findObstacle(desc); !obstacle.empty())
      return makeError(ExitCode::Unsupported, obstacle);
    std::lock_guard<std::mutex> held(mutex);
    SharedPlan first;
    if (!desc.forward.givesLogSums) {
      llvm::Expected<SharedPlan> made = findForwards(desc.forward);
      if (!made)
        return made.takeError();
      first = std::move(*made);
    }
    if (llvm::Error error = start())
      return error;
    llvm::Expected<SharedPlan> plan = backwards.find(desc, [&] {
      return planAttentionGradient(handle, desc, options.nondeterministic);
    });
    if (!plan)
      return plan.takeError();
    return makeAttentionGradient(desc, std::move(first), std::move(*plan),
                                 options.nondeterministic);
  }

  llvm::Expected<std::unique_ptr<CudaOp>>
  prepare(const ConvDesc &given) override {
    if (std::string obstacle = findObstacle(given); !obstacle.empty())
      return makeError(ExitCode::Unsupported, obstacle);
    // Nothing is packed.
    ConvDesc desc = given;
    desc.constantW = false;
    std::lock_guard<std::mutex> held(mutex);
    if (llvm::Error error = start())
      return error;
    llvm::Expected<SharedPlan> plan = convolutions.find(
        desc, [&] { return planConvolution(handle, desc, options.tf32); });
    if (!plan)
      return plan.takeError();
    return makeConvolution(desc.kind, std::move(*plan));
  }

private:
  llvm::Expected<SharedPlan> findForwards(const AttentionDesc &desc) {
    if (std::string obstacle = findObstacle(desc); !obstacle.empty())
      return makeError(ExitCode::Unsupported, obstacle);
    if (llvm::Error error = start())
      return error;
    return forwards.find(desc, [&] { return planAttention(handle, desc); });
  }
  /// Finds the library, and makes the card's context the thread's.
  llvm::Error start() {
    if (fault)
      return makeError(fault->code, fault->message);
    if (!handle) {
      llvm::Expected<SharedCudnn> made = CudnnHandle::create(card);
      if (!made) {
        ErrorDescription why = describeError(made.takeError());
        if (why.code == ExitCode::Unsupported)
          fault = why;
        return makeError(why.code, why.message);
      }
      handle = std::move(*made);
    }
    return card->enter();
  }

  SharedCard card;
  DeviceOptions options;
  std::mutex mutex;
  SharedCudnn handle;
  /// Why there is no library: nobody looks once more.
  std::optional<ErrorDescription> fault;
  PlansByDescription<AttentionDesc> forwards;
  PlansByDescription<AttentionGradientDesc> backwards;
  PlansByDescription<ConvDesc> convolutions;
};

} // namespace

std::unique_ptr<CudaDnn> makeDnn(const SharedCard &card,
                                 const DeviceOptions &options) {
  return std::make_unique<CudnnDnn>(card, options);
}

} // namespace ax::rt::cuda

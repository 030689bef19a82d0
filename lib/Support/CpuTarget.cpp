//===- CpuTarget.cpp - Processors that code is made for -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Support/CpuTarget.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"

using namespace ax;

/// Returns the bits of the widest registers. A level names extensions of
/// AVX-512, which imply it.
static unsigned widestVector(const std::vector<std::string> &features) {
  if (llvm::is_contained(features, "avx512f") ||
      llvm::is_contained(features, "avx512vl"))
    return 512;
  return llvm::is_contained(features, "avx2") ? 256 : 128;
}

/// Whether code of kernels can be made with it. Others, as those for systems
/// and transactions, would only bind it to a machine.
static bool isForKernels(llvm::StringRef feature) {
  static const llvm::SmallVector<llvm::StringRef> level = [] {
    llvm::SmallVector<llvm::StringRef> features;
    llvm::X86::getFeaturesForCPU("x86-64-v4", features);
    return features;
  }();
  return llvm::is_contained(level, feature) || feature.starts_with("avx");
}

const CpuTarget &CpuTarget::native() {
  static const CpuTarget native = [] {
    CpuTarget target;
    target.triple = llvm::sys::getProcessTriple();
    target.cpu = llvm::sys::getHostCPUName().str();
    for (const auto &feature : llvm::sys::getHostCPUFeatures()) {
      if (!feature.second)
        target.missing.push_back(feature.first().str());
      else if (isForKernels(feature.first()))
        target.features.push_back(feature.first().str());
    }
    llvm::sort(target.features);
    llvm::sort(target.missing);
    target.vectorBits = widestVector(target.features);
    return target;
  }();
  return native;
}

llvm::ArrayRef<llvm::StringRef> CpuTarget::names() {
  static const llvm::StringRef names[] = {"native", "x86-64", "x86-64-v2",
                                          "x86-64-v3", "x86-64-v4"};
  return names;
}

std::optional<CpuTarget> CpuTarget::find(llvm::StringRef name) {
  if (name == "native")
    return native();
  if (!llvm::is_contained(names(), name))
    return std::nullopt;
  CpuTarget target;
  target.triple = native().triple;
  target.cpu = name.str();
  llvm::SmallVector<llvm::StringRef> features;
  llvm::X86::getFeaturesForCPU(name, features);
  for (llvm::StringRef feature : features)
    // All have an x87, but none says so.
    if (feature != "x87")
      target.features.push_back(feature.str());
  llvm::sort(target.features);
  target.vectorBits = widestVector(target.features);
  return target;
}

bool CpuTarget::hasProductsOfIntegers() const {
  return llvm::is_contained(features, "avx512vnni");
}

std::string CpuTarget::featureText() const {
  std::vector<std::string> all;
  for (const std::string &feature : features)
    all.push_back("+" + feature);
  for (const std::string &feature : missing)
    all.push_back("-" + feature);
  return llvm::join(all, ",");
}

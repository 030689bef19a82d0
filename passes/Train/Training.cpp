//===- Training.cpp - Choices among a few words ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Passes/Training.h"

#include "NumberTaker.h"

#include "ax/Support/Error.h"
#include "ax/Support/Flags.h"

#include "llvm/ADT/StringSwitch.h"

using namespace ax;

llvm::Expected<Decimal> Decimal::parse(llvm::StringRef text) {
  if (std::optional<double> number = parseNumber(text))
    return Decimal(*number);
  return makeError(ExitCode::Usage, "expected a number");
}

std::string Decimal::toText() const { return shortest(value); }

llvm::Expected<Precision> Precision::parse(llvm::StringRef text) {
  auto type = llvm::StringSwitch<std::optional<Type>>(text)
                  .Case("fp32", FP32)
                  .Case("bf16", BF16)
                  .Case("fp16", FP16)
                  .Default(std::nullopt);
  if (!type)
    return makeError(ExitCode::Usage, "expected fp32, bf16 or fp16");
  return Precision{*type};
}

std::string Precision::toText() const {
  return type == FP32 ? "fp32" : type == BF16 ? "bf16" : "fp16";
}

llvm::Expected<BatchNormMode> BatchNormMode::parse(llvm::StringRef text) {
  if (text.empty())
    return BatchNormMode();
  if (text != "train" && text != "frozen")
    return makeError(ExitCode::Usage, "expected train or frozen");
  return BatchNormMode{text == "train"};
}

std::string BatchNormMode::toText() const {
  return !isByBatch ? "" : *isByBatch ? "train" : "frozen";
}

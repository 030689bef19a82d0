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
  auto type = llvm::StringSwitch<std::optional<Type>>(text.split('(').first)
                  .Case("fp32", FP32)
                  .Case("bf16", BF16)
                  .Case("fp16", FP16)
                  .Case("fp8", FP8)
                  .Default(std::nullopt);
  if (!type || (type != FP8 && text.contains('(')))
    return makeError(ExitCode::Usage, "expected fp32, bf16, fp16 or fp8(...)");
  Precision result;
  result.type = *type;
  if (type != FP8)
    return result;
  llvm::Expected<Float8Recipe> recipe = Float8Recipe::parse(text);
  if (!recipe)
    return recipe.takeError();
  result.float8 = std::move(*recipe);
  return result;
}

std::string Precision::toText() const {
  switch (type) {
  case FP32:
    return "fp32";
  case BF16:
    return "bf16";
  case FP16:
    return "fp16";
  case FP8:
    return float8.text;
  }
  llvm_unreachable("a precision");
}

llvm::Expected<BatchNormMode> BatchNormMode::parse(llvm::StringRef text) {
  if (text.empty())
    return BatchNormMode();
  BatchNormMode mode{text != "frozen"};
  if (text == "train" || text == "frozen")
    return mode;
  if (!text.consume_front("train:") || text.getAsInteger(10, mode.numParts) ||
      mode.numParts < 1)
    return makeError(ExitCode::Usage, "expected train, train:PARTS or frozen");
  return mode;
}

std::string BatchNormMode::toText() const {
  if (!isByBatch || !*isByBatch)
    return isByBatch ? "frozen" : "";
  return numParts == 1 ? "train" : "train:" + std::to_string(numParts);
}

//===- OptionParsers.h - Options of passes that are structs -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_OPTIONPARSERS_H
#define AX_PASSES_OPTIONPARSERS_H

#include "ax/Passes/Strategy.h"
#include "ax/Support/Error.h"
#include "mlir/Pass/PassOptions.h"

namespace ax {

/// Goes between a pipeline's text (of axopt-opt, or of a reproducer) and a
/// struct that has `parse` and `toText`.
template <typename T>
class OptionParser : public llvm::cl::basic_parser<T> {
public:
  using llvm::cl::basic_parser<T>::basic_parser;

  bool parse(llvm::cl::Option &option, llvm::StringRef, llvm::StringRef text,
             T &value) {
    llvm::Expected<T> parsed = T::parse(text);
    if (!parsed)
      return option.error(describeError(parsed.takeError()).message);
    value = std::move(*parsed);
    return false;
  }
  static void print(llvm::raw_ostream &os, const T &value) {
    // Reading takes one pair of braces off, and splits lists between commas.
    std::string text = value.toText();
    bool needsBraces = text.find_first_of(", {}") != std::string::npos;
    os << (needsBraces ? "{" + text + "}" : text);
  }
  void printOptionDiff(const llvm::cl::Option &, const T &,
                       const llvm::cl::OptionValue<T> &, size_t) const {}
  void anchor() override {}
};

} // namespace ax

namespace llvm::cl {
template <>
class parser<ax::TensorGrid> : public ax::OptionParser<ax::TensorGrid> {
  using OptionParser::OptionParser;
};
template <>
class parser<ax::ShardPin> : public ax::OptionParser<ax::ShardPin> {
  using OptionParser::OptionParser;
};
template <>
class parser<ax::ScheduleChoice> : public ax::OptionParser<ax::ScheduleChoice> {
  using OptionParser::OptionParser;
};
template <>
class parser<ax::Decimal> : public ax::OptionParser<ax::Decimal> {
  using OptionParser::OptionParser;
};
template <>
class parser<ax::Loss> : public ax::OptionParser<ax::Loss> {
  using OptionParser::OptionParser;
};
template <>
class parser<ax::Optimizer> : public ax::OptionParser<ax::Optimizer> {
  using OptionParser::OptionParser;
};
template <>
class parser<ax::LearningRateSchedule>
    : public ax::OptionParser<ax::LearningRateSchedule> {
  using OptionParser::OptionParser;
};
template <>
class parser<ax::ParameterGroup> : public ax::OptionParser<ax::ParameterGroup> {
  using OptionParser::OptionParser;
};
template <>
class parser<ax::FrozenRows> : public ax::OptionParser<ax::FrozenRows> {
  using OptionParser::OptionParser;
};
template <>
class parser<ax::Precision> : public ax::OptionParser<ax::Precision> {
  using OptionParser::OptionParser;
};
template <>
class parser<ax::RecomputeMode> : public ax::OptionParser<ax::RecomputeMode> {
  using OptionParser::OptionParser;
};
template <>
class parser<ax::Strategy> : public ax::OptionParser<ax::Strategy> {
  using OptionParser::OptionParser;
};
} // namespace llvm::cl

#endif // AX_PASSES_OPTIONPARSERS_H

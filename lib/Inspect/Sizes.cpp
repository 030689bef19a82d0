//===- Sizes.cpp - Sizes for dimensions that nobody gave ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Sizes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace ax;
using namespace ax::inspect;

namespace {

class SizeMaker {
public:
  SizeMaker(int64_t size, import::ImportOptions &options,
            std::vector<std::string> &assumed)
      : size(size), options(options), assumed(assumed) {}

  void run(const import::ModelDescription &model) {
    // A value or a shape that is given says the sizes of its symbols, too.
    for (const import::ModelPort &input : model.inputs)
      if (isGiven(input) && input.dims)
        for (const import::ModelDim &dim : *input.dims)
          given.insert(dim.symbol);
    // Sums come after what they are made of.
    for (bool isSum : {false, true})
      for (const import::ModelPort &input : model.inputs)
        if (!isGiven(input) && input.dims)
          for (auto [i, dim] : llvm::enumerate(*input.dims))
            if (llvm::StringRef(dim.symbol).contains('+') == isSum)
              assume(dim, i == 0);
    for (const import::ModelPort &input : model.inputs)
      if (!isGiven(input) && input.dims &&
          llvm::any_of(*input.dims, [](const import::ModelDim &dim) {
            return !dim.size && dim.symbol.empty();
          }))
        assumeShape(input);
  }

private:
  bool isGiven(const import::ModelPort &input) const {
    return options.shapes.count(input.name) ||
           options.constants.count(input.name);
  }
  int64_t sizeOf(bool isFirst) const { return isFirst ? 2 : size; }

  void assume(const import::ModelDim &dim, bool isFirst) {
    if (dim.size || dim.symbol.empty() || given.count(dim.symbol) ||
        options.dims.count(dim.symbol))
      return;
    options.dims[dim.symbol] = sumOf(dim.symbol).value_or(sizeOf(isFirst));
    assumed.push_back(dim.symbol);
  }
  /// `past_sequence + 1`.
  std::optional<int64_t> sumOf(llvm::StringRef symbol) const {
    if (!symbol.contains('+'))
      return std::nullopt;
    int64_t sum = 0;
    for (llvm::StringRef term : llvm::split(symbol, '+')) {
      int64_t number = 0;
      auto known = options.dims.find(term.trim().str());
      if (known != options.dims.end())
        number = known->second;
      else if (!llvm::to_integer(term.trim(), number, 10))
        return std::nullopt;
      sum += number;
    }
    return sum;
  }
  void assumeShape(const import::ModelPort &input) {
    Shape shape;
    for (auto [i, dim] : llvm::enumerate(*input.dims)) {
      auto known = options.dims.find(dim.symbol);
      shape.push_back(dim.size                      ? *dim.size
                      : known != options.dims.end() ? known->second
                                                    : sizeOf(i == 0));
    }
    options.shapes[input.name] = shape;
    assumed.push_back(input.name);
  }

  int64_t size;
  import::ImportOptions &options;
  std::vector<std::string> &assumed;
  std::set<std::string> given;
};

} // namespace

void inspect::assumeSizes(const import::ModelDescription &model, int64_t size,
                          import::ImportOptions &options,
                          std::vector<std::string> &assumed) {
  assumed.clear();
  // Examples have all that is to be known.
  if (options.examples.empty())
    SizeMaker(size, options, assumed).run(model);
}

//===- InputBinder.cpp - Static shapes of a model's inputs ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "InputBinder.h"

#include "DimExpression.h"
#include "Types.h"

#include "ax/Dialect/Limits.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/StringExtras.h"

using namespace ax;
using namespace ax::import;

llvm::Error InputBinder::bindSymbol(const std::string &symbol, int64_t size,
                                    llvm::StringRef input) {
  auto [bound, isNew] = dims.emplace(symbol, size);
  if (isNew || bound->second == size)
    return llvm::Error::success();
  return makeErrorf(ExitCode::Usage,
                    "dimension '{0}' is {1}, but the shape given for input "
                    "'{2}' says {3}",
                    symbol, bound->second, input, size);
}

/// Shapes that the user gives bind the symbols in them.
llvm::Error InputBinder::bindShape(const PreparedModel &model,
                                   const onnx::ValueInfoProto &input) {
  const std::string &name = input.name();
  std::optional<Shape> given;
  if (auto shape = shapes.find(name); shape != shapes.end())
    given = shape->second;
  if (auto value = options.constants.find(name);
      value != options.constants.end())
    given = value->second.getShape();
  const onnx::TypeProto::Tensor &type = input.type().tensor_type();
  if (!given || model.unranked.count(name))
    return llvm::Error::success();
  const auto &shape = type.shape();
  std::optional<int> fixed;
  bool fits = static_cast<int>(given->size()) == shape.dim_size();
  for (int i = 0; fits && i < shape.dim_size(); ++i)
    if (shape.dim(i).has_dim_value() && shape.dim(i).dim_value() >= 0 &&
        shape.dim(i).dim_value() != (*given)[i]) {
      fixed = i;
      fits = false;
    }
  if (!fits) {
    std::string wanted;
    for (const auto &dim : shape.dim())
      wanted += (wanted.empty() ? "" : "x") +
                (dim.has_dim_value()       ? std::to_string(dim.dim_value())
                 : dim.dim_param().empty() ? "?"
                                           : dim.dim_param());
    return makeErrorf(ExitCode::Usage,
                      "input '{0}' has shape [{1}], the shape given is "
                      "[{2}]{3}",
                      name, wanted, shapeToString(*given),
                      fixed ? ": the file fixes dimension " +
                                  std::to_string(*fixed) +
                                  "; export it again with a dynamic one"
                            : "");
  }
  for (int i = 0; i < shape.dim_size(); ++i)
    if (!shape.dim(i).dim_param().empty())
      if (llvm::Error error =
              bindSymbol(shape.dim(i).dim_param(), (*given)[i], name))
        return error;
  return llvm::Error::success();
}

llvm::Error InputBinder::checkNames() {
  auto unknown = [](llvm::StringRef flag, llvm::StringRef name,
                    llvm::StringRef what, const llvm::StringSet<> &known) {
    std::string list;
    std::vector<llvm::StringRef> sorted(known.keys().begin(),
                                        known.keys().end());
    llvm::sort(sorted);
    for (llvm::StringRef key : sorted)
      list += (list.empty() ? "" : ", ") + key.str();
    return makeErrorf(ExitCode::Usage,
                      "{0} {1}: the model has no such {2}; it has {3}", flag,
                      name, what, list.empty() ? "none" : list);
  };
  for (const auto &[name, size] : options.dims)
    if (!symbols.contains(name))
      return unknown("--dim", name, "symbolic dimension", symbols);
  for (const auto &[name, shape] : options.shapes)
    if (!names.contains(name))
      return unknown("--shape", name, "input", names);
  for (const auto &[name, value] : options.constants)
    if (!names.contains(name))
      return unknown("--const", name, "input", names);
  return llvm::Error::success();
}

std::optional<int64_t> InputBinder::sizeOf(llvm::StringRef symbol) const {
  auto given = [&](llvm::StringRef name) -> std::optional<int64_t> {
    auto size = dims.find(name.str());
    return size == dims.end() ? std::nullopt : std::optional(size->second);
  };
  std::optional<int64_t> size = given(symbol);
  return size ? size : evaluateDim(symbol, given);
}

std::vector<std::string>
InputBinder::missingIn(const std::string &symbol) const {
  std::vector<std::string> missing;
  // Whether it is made of others, whatever they are.
  bool isMade = evaluateDim(symbol, [&](llvm::StringRef name) {
                  std::optional<int64_t> size = sizeOf(name);
                  if (!size && !llvm::is_contained(missing, name))
                    missing.push_back(name.str());
                  return size ? size : std::optional<int64_t>(1);
                }).has_value();
  return isMade ? missing : std::vector{symbol};
}

void InputBinder::takeExamples() {
  std::vector<std::string> order;
  for (const onnx::ValueInfoProto *input : protos)
    order.push_back(input->name());
  std::vector<NamedTensor> examples = options.examples;
  nameByPosition(examples, order);
  for (const NamedTensor &example : examples)
    if (names.contains(example.name))
      shapes.try_emplace(example.name, example.tensor.getShape());
}

llvm::Error InputBinder::run(const PreparedModel &model) {
  llvm::StringSet<> initializers;
  for (const onnx::TensorProto &tensor : model.proto.graph().initializer())
    initializers.insert(tensor.name());
  for (const onnx::ValueInfoProto &input : model.proto.graph().input()) {
    if (initializers.contains(input.name()) ||
        model.weights.count(input.name()))
      continue;
    if (!input.type().has_tensor_type())
      return makeErrorf(ExitCode::Unsupported, "input '{0}' is no tensor",
                        input.name());
    names.insert(input.name());
    protos.push_back(&input);
    for (const auto &dim : input.type().tensor_type().shape().dim()) {
      if (dim.dim_param().empty())
        continue;
      symbols.insert(dim.dim_param());
      for (llvm::StringRef name : namesInDim(dim.dim_param()))
        symbols.insert(name);
    }
  }
  if (llvm::Error error = checkNames())
    return error;
  takeExamples();
  for (const onnx::ValueInfoProto *input : protos)
    if (llvm::Error error = bindShape(model, *input))
      return error;

  for (const onnx::ValueInfoProto *input : protos) {
    const onnx::TypeProto::Tensor &type = input->type().tensor_type();
    std::optional<DType> dtype = fromOnnxType(type.elem_type());
    if (!dtype)
      return makeErrorf(ExitCode::Unsupported,
                        "input '{0}' has element type {1}, which is not "
                        "supported",
                        input->name(), onnxTypeName(type.elem_type()));
    ModelInput bound{input->name(), *dtype, {}};
    auto given = shapes.find(input->name());
    auto value = options.constants.find(input->name());
    if (value != options.constants.end()) {
      if (value->second.getType() != *dtype)
        return makeErrorf(
            ExitCode::Usage, "--const {0}: the input is {1}, the file has {2}",
            input->name(), toString(*dtype), toString(value->second.getType()));
      bound.shape = value->second.getShape();
    } else if (given != shapes.end()) {
      bound.shape = given->second;
    } else if (model.unranked.count(input->name())) {
      unboundShapes.push_back({input->name(), "AxBxC"});
    } else {
      std::string wanted;
      bool isUnnamed = false;
      int letter = 0;
      for (const auto &dim : type.shape().dim()) {
        std::optional<int64_t> size = sizeOf(dim.dim_param());
        if (dim.has_dim_value() && dim.dim_value() >= 0)
          bound.shape.push_back(dim.dim_value());
        else if (size)
          bound.shape.push_back(*size);
        else if (!dim.dim_param().empty())
          for (const std::string &symbol : missingIn(dim.dim_param()))
            unboundSymbols.emplace(symbol, input->name());
        else
          isUnnamed = true;
        // Sizes that are known stay, others are letters.
        wanted += wanted.empty() ? "" : "x";
        wanted += dim.has_dim_value() && dim.dim_value() >= 0
                      ? std::to_string(dim.dim_value())
                      : std::string(1, static_cast<char>('A' + letter++ % 26));
      }
      if (isUnnamed)
        unboundShapes.push_back({input->name(), wanted});
    }
    if (std::string fault = findSizeFault(bound.shape, byteSize(*dtype));
        !fault.empty()) {
      bool isFixed = llvm::all_of(type.shape().dim(), [](const auto &dim) {
        return dim.has_dim_value() && dim.dim_value() >= 0;
      });
      return makeErrorf(isFixed ? ExitCode::Unsupported : ExitCode::Usage,
                        "input '{0}' of shape [{1}] {2}", bound.name,
                        shorten(shapeToString(bound.shape)), fault);
    }
    inputs.push_back(std::move(bound));
  }
  if (unboundSymbols.empty() && unboundShapes.empty())
    return llvm::Error::success();
  std::string message = "the sizes of some dimensions are not known:";
  for (const auto &[symbol, input] : unboundSymbols) {
    bool isWord =
        llvm::StringRef(symbol).find_first_of(" *()") == llvm::StringRef::npos;
    message += "\n  '" + symbol + "' of input '" + input + "': give --dim " +
               (isWord ? symbol + "=SIZE" : "'" + symbol + "=SIZE'");
  }
  for (const auto &[input, shape] : unboundShapes)
    message += "\n  input '" + input + "': give --shape " + input + "=" + shape;
  return makeError(ExitCode::Usage, message);
}

std::string InputBinder::getBatchSymbol() const {
  for (const onnx::ValueInfoProto *input : protos) {
    const auto &shape = input->type().tensor_type().shape();
    if (!options.constants.count(input->name()) && shape.dim_size() > 0 &&
        !llvm::is_contained(options.unbatched, input->name()))
      return shape.dim(0).dim_param();
  }
  return "";
}

//===- Schemas.cpp - What ONNX says about an operator ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Schemas.h"

#include "OpTable.h"

#include <onnx/checker.h>

using namespace ax;
using namespace ax::import;

int ax::import::newestOpset() {
  return onnx::OpSchemaRegistry::DomainToVersionRange::Instance()
      .Map()
      .at("")
      .second;
}

namespace {

/// ONNX's schemas, with those deprecated ones that still have a meaning, and
/// those of the table where ONNX has none.
class Registry : public onnx::ISchemaRegistry {
public:
  // NOLINTNEXTLINE(google-default-arguments)
  const onnx::OpSchema *GetSchema(const std::string &name, int opset,
                                  const std::string &given) const override {
    std::string domain = isDefaultDomain(given) ? onnx::ONNX_DOMAIN : given;
    const onnx::OpSchema *schema =
        onnx::OpSchemaRegistry::Schema(name, opset, domain);
    // Set 18's is deprecated because its scale is of groups, not of channels;
    // set 21 asks for the same inputs and attributes.
    if (schema && schema->Deprecated() && name == "GroupNormalization")
      return onnx::OpSchemaRegistry::Schema(name, 21, domain);
    return schema ? schema : OpTable::get().findSchema(domain, name);
  }
};

} // namespace

static const Registry &registry() {
  static const Registry instance;
  return instance;
}

const onnx::OpSchema *ax::import::findSchema(llvm::StringRef domain,
                                             llvm::StringRef opType,
                                             int opset) {
  const onnx::OpSchema *schema =
      registry().GetSchema(opType.str(), opset, domain.str());
  return schema && !schema->Deprecated() ? schema : nullptr;
}

/// Longer reasons quote whole types.
static constexpr size_t maxReason = 300;

std::string ax::import::firstReason(llvm::StringRef what) {
  // `FILE:LINE: FUNCTION: Assertion `...` failed: reason`; reasons with the
  // node after an empty line; kinds of errors in brackets.
  if (size_t assertion = what.find("Assertion"); assertion != what.npos)
    if (size_t failed = what.find("failed", assertion); failed != what.npos)
      what = what.substr(failed + 6).ltrim(": ");
  auto [reason, context] = what.split("\n\n");
  reason = reason.trim();
  if (reason.consume_front("["))
    reason = reason.split(']').second.ltrim();
  // `==> Context: Bad node spec for node. Name: n OpType: Relu`
  std::string line;
  if (size_t name = context.find("Name: "); name != context.npos) {
    auto [node, type] = context.substr(name + 6).split(" OpType: ");
    line =
        ("node '" + node + "' (" + type.split('\n').first.trim() + "): ").str();
  }
  line += reason;
  std::replace(line.begin(), line.end(), '\n', ' ');
  // A place at the front ends in a line's number.
  llvm::StringRef rest = line;
  auto [place, after] = rest.split(": ");
  if (place.contains('/') && place.contains(':'))
    rest = after;
  return rest.take_front(maxReason).rtrim(". ").str();
}

std::string ax::import::checkModel(const onnx::ModelProto &model) {
  onnx::checker::CheckerContext context;
  context.set_schema_registry(&registry());
  context.set_ir_version(static_cast<int>(model.ir_version()));
  // Functions are written at their own operator sets, and imported so.
  context.set_skip_opset_compatibility_check(true);
  std::unordered_map<std::string, int> opsets;
  for (const onnx::OperatorSetIdProto &opset : model.opset_import()) {
    auto version = static_cast<int>(opset.version());
    opsets[opset.domain()] = version;
    if (isDefaultDomain(opset.domain()))
      opsets[""] = opsets["ai.onnx"] = version;
  }
  context.set_opset_imports(std::move(opsets));
  onnx::checker::LexicalScopeContext scope;
  try {
    onnx::checker::check_function_call_cycles(model);
    onnx::checker::check_graph(model.graph(), context, scope);
    onnx::checker::check_model_local_functions(model, context, scope);
  } catch (const std::exception &exception) {
    return firstReason(exception.what());
  }
  return "";
}

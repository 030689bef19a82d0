//===- PlanRunner.cpp - Plans on the reference interpreter ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PlanRunner.h"

#include "../Layouts/PlanOnRanks.h"

#include "ax/Interpreter/Elements.h"
#include "ax/Interpreter/Interpreter.h"

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>

using namespace mlir;

namespace ax::plan {

MLIRContext &testContext() {
  static MLIRContext *context = [] {
    auto *made = new MLIRContext(MLIRContext::Threading::DISABLED);
    made->loadDialect<AxDialect>();
    return made;
  }();
  return *context;
}

static HostTensor namedTensor(llvm::StringRef name, RankedTensorType type) {
  HostTensor tensor(*interpreter::toDType(type.getElementType()),
                    Shape(type.getShape()));
  std::mt19937 generator(std::hash<std::string>()(name.str()));
  std::uniform_real_distribution<double> real(-1, 1);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    if (isFloat(tensor.getType()))
      tensor.setDouble(i, real(generator));
    else
      tensor.setInt(i, generator() % 4);
  return tensor;
}

static ProgramOp programOf(ModuleOp module) {
  auto plan = *module.getOps<PlanOp>().begin();
  return *plan.getBody().getOps<ProgramOp>().begin();
}

static std::vector<HostTensor> namedInputs(ProgramOp program) {
  std::vector<HostTensor> inputs;
  for (auto [i, type] : llvm::enumerate(program.getArgumentTypes()))
    inputs.push_back(
        namedTensor(program.getArgName(i), cast<RankedTensorType>(type)));
  return inputs;
}

llvm::Expected<std::vector<HostTensor>> runPlan(ModuleOp module,
                                                ArrayRef<HostTensor> inputs) {
  ProgramOp program = programOf(module);
  auto plan = program->getParentOfType<PlanOp>();
  bool fromFiles = !inputs.empty();
  auto read = [&](llvm::StringRef name) -> llvm::Expected<HostTensor> {
    if (fromFiles)
      return test::readState(plan, name);
    auto state = cast<StateOp>(SymbolTable::lookupSymbolIn(plan, name));
    return namedTensor(name, state.getTensorType());
  };
  std::vector<HostTensor> made;
  if (inputs.empty())
    inputs = made = namedInputs(program);
  return test::interpretOnRanks(program, inputs, read);
}

llvm::Expected<std::vector<HostTensor>> runGlobally(ModuleOp module) {
  ProgramOp program = programOf(module);
  std::map<std::pair<std::string, int64_t>, HostTensor> stored;
  auto results = interpreter::interpretProgram(
      program, namedInputs(program),
      [](LoadOp load) -> llvm::Expected<HostTensor> {
        return namedTensor(load.getState(), tensorType(load.getResult()));
      },
      [&](StoreOp store, HostTensor value) {
        auto stage = store->getParentOfType<StageOp>();
        stored.insert_or_assign(
            {store.getState().str(), static_cast<int64_t>(stage.getOn())},
            std::move(value));
      });
  if (!results)
    return results.takeError();
  std::vector<HostTensor> all(results->begin(), results->end());
  for (auto &[key, value] : stored)
    all.push_back(std::move(value));
  return all;
}

double difference(ArrayRef<HostTensor> a, ArrayRef<HostTensor> b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (auto [x, y] : llvm::zip(a, b)) {
    if (x.typeToString() != y.typeToString())
      return INFINITY;
    for (int64_t i = 0; i < x.numElements(); ++i) {
      double d = std::fabs(x.getDouble(i) - y.getDouble(i));
      largest = std::isnan(d) ? INFINITY : std::max(largest, d);
    }
  }
  return largest;
}

} // namespace ax::plan

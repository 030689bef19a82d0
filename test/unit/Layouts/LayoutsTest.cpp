//===- LayoutsTest.cpp - Every op on every layout -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random operations, meshes and layouts: interpreting the whole tensors gives
// what all ranks give together, each interpreting its localised part, with the
// derived collectives simulated. Padding is poisoned.
//
//===----------------------------------------------------------------------===//

#include "RandomLayouts.h"

#include "ax/Codegen/Localize.h"
#include "ax/Interpreter/Distribute.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Interpreter/Interpreter.h"
#include "ax/Sharding/Reshard.h"
#include "ax/Support/Error.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>

using namespace mlir;

namespace ax::test {
namespace {

using sharding::Layout;

MLIRContext &context() {
  static auto *context = [] {
    auto *made = new MLIRContext(MLIRContext::Threading::DISABLED);
    made->loadDialect<AxDialect>();
    return made;
  }();
  return *context;
}

Value createStep(OpBuilder &builder, const sharding::Step &step, Value operand,
                 const sharding::Mesh &mesh) {
  Location loc = builder.getUnknownLoc();
  Type type = withLayout(tensorType(operand), step.result, mesh);
  auto axes = AxesAttr::get(builder.getContext(), step.axes, mesh);
  switch (step.kind) {
  case sharding::StepKind::AllSlice:
    return AllSliceOp::create(builder, loc, type, operand, axes, nullptr);
  case sharding::StepKind::AllGather:
    return AllGatherOp::create(builder, loc, type, operand, axes, nullptr)
        ->getResult(0);
  case sharding::StepKind::AllToAll:
    return AllToAllOp::create(builder, loc, type, operand, axes, nullptr);
  case sharding::StepKind::ReduceScatter:
    return ReduceScatterOp::create(builder, loc, type, operand, axes, nullptr)
        ->getResult(0);
  case sharding::StepKind::AllReduce:
    return AllReduceOp::create(builder, loc, type, operand, axes, nullptr)
        ->getResult(0);
  case sharding::StepKind::CollectivePermute:
    return CollectivePermuteOp::create(builder, loc, type, operand, axes,
                                       nullptr);
  case sharding::StepKind::ToPartial:
    return ToPartialOp::create(builder, loc, type, operand, axes, nullptr);
  }
  llvm_unreachable("step kind");
}

bool near(double a, double b, DType type) {
  if (a == b || (std::isnan(a) && std::isnan(b)))
    return true;
  double tolerance = type == DType::F16    ? 4e-3
                     : type == DType::BF16 ? 3e-2
                                           : 1e-5;
  return std::fabs(a - b) <= tolerance * (1 + std::fabs(a));
}

int64_t bytesOf(RankedTensorType type) {
  return type.getNumElements() *
         byteSize(*interpreter::toDType(type.getElementType()));
}

/// One random case: an op, a mesh, an assignment, layouts before and after.
class Case {
public:
  Case(StringRef name, uint64_t seed)
      : gen(&context(), seed), op(makeOp(name)), mesh(randomMesh(gen)),
        rule(cast<ShardingRuleOpInterface>(op).getShardingRule()),
        resharder(mesh, sharding::ringCost(1e-5, 1e10)) {
    for (Value operand : op->getOperands())
      tensors.push_back(
          gen.tensors[cast<BlockArgument>(operand).getArgNumber()]);
  }

  /// What is wrong; empty when nothing is.
  std::string run() {
    if (auto fault = sharding::findFault(rule, shapes(op->getOperandTypes()),
                                         shapes(op->getResultTypes())))
      return "rule: " + *fault;
    assignment = randomAssignment(gen, mesh, rule, gen.chance(50) && !isBool());
    std::string fault = checkInference();
    if (!fault.empty())
      return fault;
    buildPlan();
    if (failed(mlir::verify(*plan)))
      return "the plan does not verify";
    return compare();
  }

  bool splits() const {
    return llvm::any_of(assignment.factors, [](const sharding::DimLayout &dim) {
      return dim.isSplit();
    });
  }
  bool passesPartial() const { return !assignment.passedPartial.empty(); }

  std::string text() {
    std::string result;
    llvm::raw_string_ostream os(result);
    if (plan)
      os << *plan;
    else
      os << *op;
    if (local)
      os << "\nlocally:\n" << *local;
    return result;
  }

private:
  Operation *makeOp(StringRef name) {
    auto found = opGenerators().find(name);
    return found == opGenerators().end() ? nullptr : found->second(gen);
  }

  /// Truth values have no sums.
  bool isBool() {
    return llvm::any_of(op->getResultTypes(), [](Type type) {
      return cast<RankedTensorType>(type).getElementType().isInteger(1);
    });
  }

  static std::vector<Shape> shapes(TypeRange types) {
    std::vector<Shape> result;
    for (Type type : types) {
      ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
      result.emplace_back(shape.begin(), shape.end());
    }
    return result;
  }

  /// The layouts that the assignment gives lead back to it.
  std::string checkInference() {
    for (size_t i = 0; i < rule.operands.size(); ++i)
      operandLayouts.push_back(sharding::operandLayout(rule, assignment, i));
    for (size_t i = 0; i < rule.results.size(); ++i)
      resultLayouts.push_back(sharding::resultLayout(rule, assignment, i));
    auto inferred =
        sharding::inferAssignment(rule, operandLayouts, resultLayouts, mesh);
    if (!inferred.assignment)
      return "no assignment inferred: " + inferred.fault;
    for (size_t i = 0; i < rule.results.size(); ++i)
      if (sharding::resultLayout(rule, *inferred.assignment, i) !=
          resultLayouts[i])
        return "another result layout is inferred";
    return "";
  }

  Layout anyLayout(Type type, const Layout &wanted, bool mayBePartial) {
    if (gen.chance(50))
      return wanted;
    auto tensor = cast<RankedTensorType>(type);
    Type element = tensor.getElementType();
    bool sums = mayBePartial && !element.isInteger(1) && !isFloat8(element);
    return randomLayout(gen, mesh, shapes(type)[0], sums);
  }

  Value reshard(OpBuilder &builder, Value value, const Layout &from,
                const Layout &to) {
    for (const sharding::Step &step : resharder.plan(from, to, 4).steps)
      value = createStep(builder, step, value, mesh);
    return value;
  }

  bool sends(Value value) const {
    return isa_and_nonnull<AllReduceOp, ReduceScatterOp, AllGatherOp>(
        value.getDefiningOp());
  }
  void shareLast(OpBuilder &builder, MutableArrayRef<Value> values);
  void startLast(OpBuilder &builder, MutableArrayRef<Value> values);
  void buildPlan();
  std::string compare();

  Gen gen;
  Operation *op;
  sharding::Mesh mesh;
  sharding::Rule rule;
  sharding::Resharder resharder;
  sharding::Assignment assignment;
  /// Values of the operands.
  std::vector<HostTensor> tensors;
  std::vector<Layout> operandLayouts, resultLayouts;
  /// Of the stage.
  std::vector<Layout> inputLayouts, outputLayouts;
  OwningOpRef<PlanOp> plan;
  StageOp stage;
  OwningOpRef<LocalStageOp> local;
};

/// Sometimes the last collectives of two values become one, if they can.
void Case::shareLast(OpBuilder &builder, MutableArrayRef<Value> values) {
  auto keyOf = [&](Value value) {
    Operation *last = value.getDefiningOp();
    RankedTensorType from = tensorType(last->getOperand(0));
    Layout layout = getLayout(from, mesh);
    return std::tuple(last->getName().getStringRef(), last->getAttr("axes"),
                      from.getElementType(),
                      localPartType(from, mesh).getElementType(),
                      layout.partialKind);
  };
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t j = i + 1; j < values.size(); ++j) {
      if (!sends(values[i]) || !sends(values[j]) ||
          values[i].getDefiningOp()->getNumResults() > 1 ||
          values[j].getDefiningOp()->getNumResults() > 1 ||
          keyOf(values[i]) != keyOf(values[j]) || !gen.chance(75))
        continue;
      Operation *first = values[i].getDefiningOp(),
                *second = values[j].getDefiningOp();
      SmallVector<Value> operands{first->getOperand(0), second->getOperand(0)};
      SmallVector<Type> types{values[i].getType(), values[j].getType()};
      Operation *shared = builder.create(
          OperationState(first->getLoc(), first->getName().getStringRef(),
                         operands, types, first->getAttrs()));
      values[i] = shared->getResult(0);
      values[j] = shared->getResult(1);
      first->erase();
      second->erase();
    }
}

/// Sometimes others are only started, and waited for when all are.
void Case::startLast(OpBuilder &builder, MutableArrayRef<Value> values) {
  for (Value &value : values)
    if (sends(value) && value.getDefiningOp()->getNumResults() == 1 &&
        gen.chance(50)) {
      value.getDefiningOp()->setAttr("start", builder.getUnitAttr());
      value = WaitOp::create(builder, builder.getUnknownLoc(), value, nullptr);
    }
}

/// Inputs in any layout, resharded to what the op wants; its results resharded
/// to any layout.
void Case::buildPlan() {
  OpBuilder builder(&context());
  Location loc = builder.getUnknownLoc();
  auto typesIn = [&](TypeRange types, ArrayRef<Layout> layouts) {
    SmallVector<Type> result;
    for (auto [type, layout] : llvm::zip_equal(types, layouts))
      result.push_back(withLayout(cast<RankedTensorType>(type), layout, mesh));
    return result;
  };
  for (auto [type, layout] :
       llvm::zip_equal(op->getOperandTypes(), operandLayouts))
    inputLayouts.push_back(anyLayout(type, layout, true));
  for (auto [type, layout] :
       llvm::zip_equal(op->getResultTypes(), resultLayouts))
    outputLayouts.push_back(anyLayout(type, layout, true));
  SmallVector<Type> inputs = typesIn(op->getOperandTypes(), inputLayouts);
  SmallVector<Type> opTypes = typesIn(op->getResultTypes(), resultLayouts);
  SmallVector<Type> outputs = typesIn(op->getResultTypes(), outputLayouts);

  plan = PlanOp::create(builder, loc, "p", PlanOp::currentVersion);
  builder.setInsertionPointToEnd(&plan->getBody().emplaceBlock());
  MeshOp::create(builder, loc, mesh);
  if (isa<LoadOp>(op))
    StateOp::create(builder, loc, "state", opTypes[0], "file", 0,
                    bytesOf(tensorType(op->getResult(0))), nullptr, nullptr,
                    nullptr);
  auto program = ProgramOp::create(builder, loc, "main",
                                   builder.getFunctionType(inputs, outputs));
  Block &body = program.getBody().front();
  builder.setInsertionPointToEnd(&body);
  stage =
      StageOp::create(builder, loc, outputs, "stage", 0, body.getArguments());
  ReturnOp::create(builder, loc, stage.getResults());

  Block &block = stage.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(&block);
  SmallVector<Value> operands;
  for (auto [i, type] : llvm::enumerate(inputs))
    operands.push_back(reshard(builder, block.addArgument(type, loc),
                               inputLayouts[i], operandLayouts[i]));
  shareLast(builder, operands);
  startLast(builder, operands);
  IRMapping mapping;
  mapping.map(op->getOperands(), operands);
  Operation *clone = builder.clone(*op, mapping);
  SmallVector<Value> yielded;
  for (auto [i, result] : llvm::enumerate(clone->getResults())) {
    result.setType(opTypes[i]);
    yielded.push_back(
        reshard(builder, result, resultLayouts[i], outputLayouts[i]));
  }
  YieldOp::create(builder, loc, yielded);
}

std::string Case::compare() {
  llvm::SmallVector<HostTensor> dense;
  if (isa<LoadOp>(op)) {
    RankedTensorType type = tensorType(op->getResult(0));
    dense = {gen.values(*interpreter::toDType(type.getElementType()),
                        shapes(type)[0])};
  } else {
    auto results = interpreter::interpret(op, tensors);
    if (!results)
      return describeError(results.takeError()).message;
    dense = std::move(*results);
  }

  auto localized = codegen::localize(stage, mesh);
  if (!localized)
    return "localize: " + describeError(localized.takeError()).message;
  local = std::move(*localized);
  for (Operation &inner : local->getBlock())
    if (failed(mlir::verify(&inner)))
      return "what is made locally does not verify";

  interpreter::PerRank inputs(mesh.numRanks());
  for (auto [i, tensor] : llvm::enumerate(tensors)) {
    std::vector<HostTensor> addends =
        randomAddends(gen, tensor, inputLayouts[i]);
    Layout whole = inputLayouts[i];
    whole.partial.clear();
    for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
      std::vector<int64_t> at = mesh.coordinates(rank);
      RankedTensorType held =
          localPartType(withLayout(withoutLayout(tensorType(op->getOperand(i))),
                                   inputLayouts[i], mesh),
                        mesh);
      inputs[rank].push_back(
          interpreter::localPart(
              addends[mesh.index(inputLayouts[i].partial, at)], whole, mesh, at,
              interpreter::Padding::Poison)
              .cast(*interpreter::toDType(held.getElementType())));
    }
  }
  if (isa<LoadOp>(op))
    for (int64_t rank = 0; rank < mesh.numRanks(); ++rank)
      inputs[rank].push_back(interpreter::localPart(
          dense[0], resultLayouts[0], mesh, mesh.coordinates(rank),
          interpreter::Padding::Zero));
  auto results = interpreter::interpretRanks(*local, mesh, std::move(inputs));
  if (!results)
    return "ranks: " + describeError(results.takeError()).message;

  for (auto [i, layout] : llvm::enumerate(outputLayouts)) {
    std::vector<interpreter::Part> parts;
    for (int64_t rank = 0; rank < mesh.numRanks(); ++rank)
      parts.push_back({mesh.coordinates(rank), (*results)[rank][i]});
    auto whole = interpreter::assemble(parts, layout, mesh);
    if (!whole)
      return describeError(whole.takeError()).message;
    for (int64_t e = 0; e < whole->numElements(); ++e)
      if (!near(dense[i].getDouble(e), whole->getDouble(e), dense[i].getType()))
        return "result " + std::to_string(i) + ", element " +
               std::to_string(e) + ": " +
               std::to_string(dense[i].getDouble(e)) + " whole, " +
               std::to_string(whole->getDouble(e)) + " from the ranks";
  }
  return "";
}

int64_t numCases() {
  const char *text = std::getenv("AX_RANDOM_CASES");
  return text ? std::atoll(text) : 100;
}

class EveryOp : public testing::TestWithParam<std::string> {};

TEST_P(EveryOp, RanksTogetherGiveTheWhole) {
  if (!opGenerators().contains(GetParam()))
    GTEST_FAIL() << "ax." << GetParam()
                 << " has no generator in OpGenerators.cpp";
  int64_t split = 0, failures = 0;
  for (int64_t i = 0, e = numCases(); i < e && failures < 3; ++i) {
    uint64_t seed = std::hash<std::string>()(GetParam()) + i;
    Case random(GetParam(), seed);
    std::string fault = random.run();
    split += random.splits();
    if (!fault.empty()) {
      ++failures;
      ADD_FAILURE() << "case " << i << ": " << fault << "\n" << random.text();
    }
  }
  // A rule that splits nothing passes every test.
  bool splitsNothing = GetParam() == "dynamic_slice";
  EXPECT_EQ(split > 0, !splitsNothing);
}

std::vector<std::string> opsWithRules() {
  std::vector<std::string> names;
  for (RegisteredOperationName op : context().getRegisteredOperationsByDialect(
           AxDialect::getDialectNamespace()))
    if (op.hasInterface<ShardingRuleOpInterface>())
      names.push_back(op.stripDialect().str());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryOp, testing::ValuesIn(opsWithRules()),
                         [](const auto &info) { return info.param; });

} // namespace
} // namespace ax::test

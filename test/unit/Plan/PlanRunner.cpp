//===- PlanRunner.cpp - Plans on the reference evaluator ------------------===//
#include "PlanRunner.h"

#include "ax/Codegen/Localize.h"
#include "ax/Eval/Distribute.h"
#include "ax/Eval/Elements.h"
#include "ax/Eval/Evaluate.h"
#include "ax/Support/Error.h"

#include <cmath>
#include <functional>
#include <limits>
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
  HostTensor tensor(*eval::toDType(type.getElementType()),
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

static HostTensor poison(RankedTensorType type, const sharding::Mesh &mesh) {
  HostTensor tensor(*eval::toDType(type.getElementType()),
                    getLayout(type, mesh).localShape());
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    if (isFloat(tensor.getType()))
      tensor.setDouble(i, std::nan(""));
    else
      tensor.setInt(i, -1);
  return tensor;
}

namespace {

/// One micro-batch on every rank.
class SliceRunner {
public:
  SliceRunner(ProgramOp program, const sharding::Mesh &mesh, int64_t slice)
      : program(program), mesh(mesh), slice(slice) {
    for (int64_t rank = 0; rank < mesh.numRanks(); ++rank)
      places.push_back(mesh.coordinates(rank, slice));
    for (size_t a = 0; a < mesh.getAxes().size(); ++a)
      if (mesh.getAxes()[a].name == "pipe")
        pipe = a;
  }

  llvm::Error run() {
    for (BlockArgument argument : program.getBody().getArguments())
      held[argument] = partsOf(program.getArgName(argument.getArgNumber()),
                               tensorType(argument));
    for (Operation &op : program.getBody().front()) {
      if (auto stage = dyn_cast<StageOp>(op)) {
        if (llvm::Error error = runStage(stage))
          return error;
      } else if (auto transfer = dyn_cast<TransferOp>(op)) {
        send(transfer);
      }
    }
    return llvm::Error::success();
  }

  /// The parts of one output that the ranks of its stage hold.
  void collect(Value value, std::vector<eval::Part> &parts) {
    auto stage = value.getDefiningOp<StageOp>();
    for (size_t rank = 0; rank < places.size(); ++rank)
      if (stageOf(rank) == static_cast<int64_t>(stage.getOn()))
        parts.push_back({places[rank], held[value][rank]});
  }

private:
  int64_t stageOf(size_t rank) const {
    return pipe < 0 ? 0 : places[rank][pipe];
  }

  std::vector<HostTensor> partsOf(llvm::StringRef name, RankedTensorType type) {
    HostTensor global = namedTensor(name, type);
    std::vector<HostTensor> parts;
    for (const std::vector<int64_t> &place : places)
      parts.push_back(eval::localPart(global, getLayout(type, mesh), mesh,
                                      place, eval::Padding::Zero));
    return parts;
  }

  llvm::Error runStage(StageOp stage) {
    auto local = codegen::localize(stage, mesh);
    if (!local)
      return local.takeError();
    std::vector<std::vector<HostTensor>> arguments;
    for (Value operand : stage.getOperands())
      arguments.push_back(held[operand]);
    for (const std::string &name : local->states) {
      auto state = cast<StateOp>(SymbolTable::lookupNearestSymbolFrom(
          stage, StringAttr::get(stage.getContext(), name)));
      arguments.push_back(partsOf(name, state.getTensorType()));
    }
    eval::PerRank inputs(places.size());
    for (size_t rank = 0; rank < places.size(); ++rank)
      for (const std::vector<HostTensor> &argument : arguments)
        inputs[rank].push_back(argument[rank]);
    auto results = eval::evaluateRanks(*local->program, mesh, inputs, slice);
    if (!results)
      return results.takeError();
    for (OpResult result : stage.getResults()) {
      std::vector<HostTensor> &ranks = held[result];
      for (size_t rank = 0; rank < places.size(); ++rank)
        ranks.push_back(stageOf(rank) == static_cast<int64_t>(stage.getOn())
                            ? (*results)[rank][result.getResultNumber()]
                            : poison(tensorType(result), mesh));
    }
    return llvm::Error::success();
  }

  void send(TransferOp transfer) {
    std::vector<HostTensor> &ranks = held[transfer.getResult()];
    for (size_t rank = 0; rank < places.size(); ++rank) {
      std::vector<int64_t> from = places[rank];
      bool receives = stageOf(rank) == static_cast<int64_t>(transfer.getTo());
      if (receives)
        from[pipe] = transfer.getFrom();
      ranks.push_back(receives
                          ? held[transfer.getOperand()][mesh.rankOf(from)]
                          : poison(tensorType(transfer.getResult()), mesh));
    }
  }

  ProgramOp program;
  const sharding::Mesh &mesh;
  int64_t slice;
  int pipe = -1;
  std::vector<std::vector<int64_t>> places;
  llvm::DenseMap<Value, std::vector<HostTensor>> held;
};

} // namespace

static ProgramOp programOf(ModuleOp module) {
  auto plan = *module.getOps<PlanOp>().begin();
  return *plan.getBody().getOps<ProgramOp>().begin();
}

llvm::Expected<SmallVector<HostTensor>> runPlan(ModuleOp module) {
  ProgramOp program = programOf(module);
  sharding::Mesh mesh = getMesh(program);
  auto output = cast<ReturnOp>(program.getBody().front().getTerminator());
  std::vector<std::vector<eval::Part>> parts(output->getNumOperands());
  for (int64_t slice = 0; slice < mesh.numTimeSlices(); ++slice) {
    SliceRunner runner(program, mesh, slice);
    if (llvm::Error error = runner.run())
      return error;
    for (auto [i, value] : llvm::enumerate(output->getOperands()))
      runner.collect(value, parts[i]);
  }
  SmallVector<HostTensor> outputs;
  for (auto [i, value] : llvm::enumerate(output->getOperands())) {
    auto whole =
        eval::assemble(parts[i], getLayout(tensorType(value), mesh), mesh);
    if (!whole)
      return whole.takeError();
    outputs.push_back(std::move(*whole));
  }
  return outputs;
}

llvm::Expected<SmallVector<HostTensor>> runGlobally(ModuleOp module) {
  ProgramOp program = programOf(module);
  SmallVector<HostTensor> inputs;
  for (auto [i, type] : llvm::enumerate(program.getArgumentTypes()))
    inputs.push_back(
        namedTensor(program.getArgName(i), cast<RankedTensorType>(type)));
  return eval::evaluateProgram(
      program, inputs, [](LoadOp load) -> llvm::Expected<HostTensor> {
        return namedTensor(load.getState(), tensorType(load.getResult()));
      });
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

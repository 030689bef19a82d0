//===- Verify.cpp - Proving a plan without running it ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Faults.h"
#include "Precheck.h"
#include "Verifier.h"

#include "ax/Cost/Machine.h"
#include "ax/Dialect/Actions.h"
#include "ax/Dialect/PlanAttrs.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Dialect/StateNames.h"
#include "ax/Dialect/TrainingAttrs.h"
#include "ax/Interpreter/FoldedWeights.h"
#include "ax/Plan/Plan.h"
#include "ax/Support/Error.h"
#include "ax/Support/GivenWeights.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

#include <set>

using namespace mlir;
using namespace ax;

namespace {

/// More slots than this are a slip of the pen.
constexpr int64_t maxSlots = 1024;

/// Values between the stages of one program.
class ProgramVerifier {
public:
  ProgramVerifier(ProgramOp program, const sharding::Mesh &mesh)
      : program(program), mesh(mesh) {}

  void verify();

private:
  /// Which stage has `value`; nothing for the program's inputs, which all have.
  std::optional<int64_t> holderOf(Value value) const {
    Operation *producer = value.getDefiningOp();
    if (auto stage = dyn_cast_or_null<StageOp>(producer))
      return stage.getOn();
    if (auto transfer = dyn_cast_or_null<TransferOp>(producer))
      return transfer.getTo();
    return std::nullopt;
  }
  void verifyPorts();
  void verifyTraining();
  void verifyCounts();
  void verifyStages();
  void verifyTransfer(TransferOp transfer);
  void verifyReturn(ReturnOp output);

  ProgramOp program;
  const sharding::Mesh &mesh;
};

} // namespace

void ProgramVerifier::verifyPorts() {
  auto check = [&](auto types, StringRef what, auto nameOf) {
    std::set<StringRef> names;
    for (auto [i, type] : llvm::enumerate(types)) {
      StringRef name = nameOf(i);
      if (!name.empty() && !names.insert(name).second)
        program.emitOpError()
            << "has two " << what << "s named '" << name << "'";
      if (auto fault = plan::findHoldingFault(cast<RankedTensorType>(type),
                                              mesh, /*inTime=*/true))
        program.emitOpError() << what << " '" << name << "' " << *fault;
    }
  };
  check(program.getArgumentTypes(), "input",
        [&](unsigned i) { return program.getArgName(i); });
  check(program.getResultTypes(), "output",
        [&](unsigned i) { return program.getResultName(i); });
  verifyCounts();
}

/// What axrun cuts outputs by.
void ProgramVerifier::verifyCounts() {
  ArrayRef<Type> types = program.getResultTypes();
  for (auto [i, type] : llvm::enumerate(types)) {
    Attribute attribute = program.getResultAttr(i, kCountedDim);
    if (!attribute)
      continue;
    auto dim = dyn_cast<IntegerAttr>(attribute);
    int64_t rank = cast<RankedTensorType>(type).getRank();
    StringRef name = program.getResultName(i);
    if (!dim || dim.getInt() < 0 || dim.getInt() >= rank)
      program.emitOpError()
          << "output '" << name << "' has no dimension of results";
    bool isCounted = false;
    for (auto [j, other] : llvm::enumerate(types)) {
      auto count = cast<RankedTensorType>(other);
      isCounted |= program.getResultName(j) == countName(name) &&
                   count.getRank() == 0 && count.getElementType().isInteger(64);
    }
    if (!isCounted)
      program.emitOpError()
          << "has no number of results '" << countName(name) << "'";
  }
}

/// What axrun reads of a program that trains.
void ProgramVerifier::verifyTraining() {
  if (llvm::none_of(program.getBody().getOps<StageOp>(), [](StageOp stage) {
        return !stage.getBody().getOps<StoreOp>().empty();
      }))
    return;
  bool hasRoles = false;
  for (auto [i, type] : llvm::enumerate(program.getResultTypes())) {
    std::optional<ResultRole> role = program.getRole(i);
    if (!role)
      continue;
    hasRoles = true;
    auto tensor = cast<RankedTensorType>(type);
    if (tensor.getRank() != 0 || !tensor.getElementType().isF32())
      program.emitOpError()
          << "gives '" << stringifyResultRole(*role) << "' as " << type
          << "; axrun takes a scalar of f32";
  }
  for (ResultRole role : {ResultRole::loss, ResultRole::gradient_norm})
    if (hasRoles && !program.findResult(role))
      program.emitOpError() << "trains, but no output has the role '"
                            << stringifyResultRole(role) << "'";
}

void ProgramVerifier::verifyStages() {
  int64_t stages = mesh.axisSize(meshAxis::pipe);
  plan::ObeyedRules obeyed;
  std::vector<std::set<ActionKind>> seen(stages);
  for (StageOp stage : program.getBody().getOps<StageOp>()) {
    int64_t on = stage.getOn();
    auto kind = actionOf(stage);
    if (!kind)
      stage.emitOpError() << "has no action that is known: F, B, W or U, and a "
                             "part of at least 0";
    else if (!seen[on].insert(*kind).second)
      stage.emitOpError() << "is a second stage on " << on
                          << " with the same action";
    if (Attribute slots = stage->getDiscardableAttr(kSlots)) {
      auto number = dyn_cast<IntegerAttr>(slots);
      if (!number || !number.getType().isInteger(64) || number.getInt() < 1 ||
          number.getInt() > maxSlots)
        stage.emitOpError() << "keeps values in " << slots << " slots; 1 to "
                            << maxSlots << " make sense";
    }
    for (auto [i, operand] : llvm::enumerate(stage.getOperands()))
      if (auto holder = holderOf(operand); holder && *holder != on)
        stage.emitOpError()
            << "on " << on << " takes operand " << i << ", which stage "
            << *holder << " has: there is no ax.transfer from " << *holder
            << " to " << on;
    plan::verifyOps(stage, mesh, obeyed);
  }
  for (int64_t on = 0; on < stages; ++on)
    if (seen[on].empty())
      program.emitOpError() << "has no stage on " << on;
}

void ProgramVerifier::verifyTransfer(TransferOp transfer) {
  auto fault = [&] {
    return transfer.emitOpError() << "from " << transfer.getFrom() << " to "
                                  << transfer.getTo() << ": ";
  };
  auto producer = transfer.getOperand().getDefiningOp<StageOp>();
  if (!producer)
    fault() << "sends what no stage has made";
  else if (producer.getOn() != transfer.getFrom())
    fault() << "sends what stage " << producer.getOn() << " has made";
  else if (auto kind = actionOf(producer);
           kind && !kind->isOnceAStep() &&
           isAccumulated(cast<OpResult>(transfer.getOperand()), mesh))
    fault() << "sends for each micro-batch what is added up for an update";
  if (transfer.getResult().use_empty())
    fault() << "is never received: no stage takes its result";
  else if (llvm::any_of(transfer.getResult().getUsers(), [&](Operation *user) {
             return user != *transfer.getResult().getUsers().begin();
           }))
    fault() << "is received by two lists of a stage";
  for (Operation *user : transfer.getResult().getUsers()) {
    auto stage = dyn_cast<StageOp>(user);
    if (!stage)
      fault() << "is used by " << user->getName()
              << "; only a stage can receive";
    else if (stage.getOn() != transfer.getTo())
      fault() << "is used by stage " << stage.getOn();
  }
  if (transfer.getSlots() > maxSlots)
    fault() << transfer.getSlots() << " slots; at most " << maxSlots
            << " make sense";
}

void ProgramVerifier::verifyReturn(ReturnOp output) {
  for (auto [i, value] : llvm::enumerate(output.getOperands()))
    if (!value.getDefiningOp<StageOp>())
      output.emitOpError() << "gives output " << i
                           << ", which is not the result of a stage";
}

void ProgramVerifier::verify() {
  verifyPorts();
  verifyTraining();
  for (Operation &op : program.getBody().front()) {
    if (auto transfer = dyn_cast<TransferOp>(op))
      verifyTransfer(transfer);
    else if (auto output = dyn_cast<ReturnOp>(op))
      verifyReturn(output);
    else if (!isa<StageOp, ScheduleOp>(op))
      op.emitOpError("stands outside of the program's stages");
  }
  verifyStages();
  plan::verifySchedule(program, mesh);
  plan::verifyStores(program);
  plan::verifyReplicas(program);
}

namespace {
/// Stages that load or store a state.
struct StateUses {
  std::set<int64_t> stages;
  /// The stages that store it, of each program that does.
  std::vector<std::set<int64_t>> storing;
};
} // namespace

static std::string text(const std::set<int64_t> &stages) {
  return "[" +
         llvm::join(llvm::map_range(
                        stages, [](int64_t s) { return std::to_string(s); }),
                    ", ") +
         "]";
}

static void collectUses(ProgramOp program, const sharding::Mesh &mesh,
                        llvm::DenseMap<StringAttr, StateUses> &uses) {
  llvm::DenseMap<StringAttr, std::set<int64_t>> storing;
  for (StageOp stage : program.getBody().getOps<StageOp>()) {
    for (auto load : stage.getBody().getOps<LoadOp>())
      uses[load.getStateAttr().getAttr()].stages.insert(stage.getOn());
    for (auto store : stage.getBody().getOps<StoreOp>()) {
      uses[store.getStateAttr().getAttr()].stages.insert(stage.getOn());
      if (!storing[store.getStateAttr().getAttr()].insert(stage.getOn()).second)
        store.emitOpError()
            << "stores @" << store.getState() << " a second time in one step";
      if (auto kind = actionOf(stage);
          mesh.numTimeSlices() > 1 && kind && !kind->isOnceAStep())
        store.emitOpError() << "stores @" << store.getState()
                            << " once a step, but its stage runs for each of "
                            << mesh.numTimeSlices() << " micro-batches";
    }
  }
  for (auto &[state, stages] : storing)
    uses[state].storing.push_back(stages);
}

/// Its file lies in the model's folder, its layout can be stored, it names the
/// stages that use it, and these all store it in a program in which one does.
static void verifyState(StateOp state, const StateUses &uses,
                        const sharding::Mesh &mesh) {
  StringRef file = state.getFile();
  if (llvm::sys::path::is_absolute(file) ||
      llvm::is_contained(llvm::make_range(llvm::sys::path::begin(file),
                                          llvm::sys::path::end(file)),
                         ".."))
    state.emitOpError() << "is in '" << file
                        << "', which is no path inside the model's folder";
  int64_t offset = state.getOffset(), length = state.getLength();
  if (offset > std::numeric_limits<int64_t>::max() - length)
    state.emitOpError() << "ends behind every file";
  if (auto fault = plan::findHoldingFault(state.getTensorType(), mesh,
                                          /*inTime=*/false))
    state.emitOpError() << *fault;
  std::set<int64_t> listed;
  if (auto stages = state.getStages())
    listed.insert(stages->begin(), stages->end());
  if (listed != uses.stages)
    state.emitOpError() << "@" << state.getSymName() << " is held by stages "
                        << text(listed) << ", and loaded by "
                        << text(uses.stages);
  if (state.isZeroAtFirst() && !uses.stages.empty() && uses.storing.empty() &&
      state.getSymName() != kRandomSeed)
    state.emitOpError()
        << "is in no file, so zero at first, and nothing stores "
           "it";
  for (const std::set<int64_t> &storing : uses.storing)
    if (storing != uses.stages)
      state.emitOpError() << "@" << state.getSymName() << " is held by stages "
                          << text(listed) << ", but stored by " << text(storing)
                          << " only: the others would go on with the old value";
}

static bool areFingerprints(PlanOp, Attribute value) {
  auto folded = dyn_cast<DictionaryAttr>(value);
  return folded && llvm::all_of(folded, [](NamedAttribute entry) {
           auto text = dyn_cast<StringAttr>(entry.getValue());
           return text && typeOfFingerprint(text).has_value();
         });
}

static bool areFolded(PlanOp plan, Attribute value) {
  auto names = dyn_cast<ArrayAttr>(value);
  auto folded = plan->getAttrOfType<DictionaryAttr>(kFolded);
  return names && folded && llvm::all_of(names, [&](Attribute entry) {
           auto name = dyn_cast<StringAttr>(entry);
           return name && folded.contains(name.getValue());
         });
}

/// Attributes with our prefix are how passes talk to themselves; in a plan they
/// would be believed.
static void verifyAttributes(Operation *op) {
  for (NamedAttribute attribute : op->getDiscardableAttrs())
    if (attribute.getName().getValue().starts_with("ax.") &&
        !isPlanAttribute(attribute.getName()))
      op->emitOpError() << "has attribute '" << attribute.getName().getValue()
                        << "' = " << attribute.getValue()
                        << ", which no plan has";
}

static void verifyFolded(PlanOp plan) {
  for (auto [name, isRight] :
       {std::pair(kFolded, &areFingerprints), {kFoldedParameters, &areFolded}})
    if (Attribute value = plan->getDiscardableAttr(name);
        value && !isRight(plan, value))
      plan.emitOpError() << "has attribute '" << name << "' = " << value
                         << ", which no plan has";
}

/// What is said to take no batches is an input.
static void verifyUnbatched(PlanOp plan) {
  auto names = plan->getAttrOfType<ArrayAttr>(kUnbatched);
  if (!names)
    return;
  std::set<StringRef> inputs;
  for (ProgramOp program : plan.getBody().getOps<ProgramOp>())
    for (unsigned i = 0, e = program.getNumArguments(); i < e; ++i)
      inputs.insert(program.getArgName(i));
  for (StringRef name : names.getAsValueRange<StringAttr>())
    if (!inputs.count(name))
      plan.emitOpError() << "has no input '" << name << "', which '"
                         << kUnbatched << "' names";
}

/// What it was priced for.
static void verifyMachine(PlanOp plan) {
  Attribute machine = plan->getAttr(kMachine);
  if (!machine)
    return;
  auto rates = cost::fromAttribute(machine);
  if (!rates)
    plan.emitOpError() << describeError(rates.takeError()).message;
}

llvm::Error plan::verifyPlan(ModuleOp module) {
  Faults faults(module.getContext());
  if (failed(precheckModule(module)) || failed(mlir::verify(module)))
    return faults.take();
  PlanOp plan = *module.getOps<PlanOp>().begin();
  for (ProgramOp program : plan.getBody().getOps<ProgramOp>())
    if (program.getBody().getOps<StageOp>().empty())
      program.emitOpError("has no ax.stage: what stands between passes becomes "
                          "a plan in the pipeline phase");
  // All else would be wrong, too.
  if (faults.any())
    return faults.take();
  module.walk(verifyAttributes);
  sharding::Mesh mesh = plan.getMesh();
  if (!llvm::hasSingleElement(plan.getBody().getOps<MeshOp>()))
    plan.emitOpError("has no ax.mesh");
  if (plan.getBody().getOps<ProgramOp>().empty())
    plan.emitOpError("has no ax.program");
  for (Operation &op : plan.getBody().front())
    if (!isa<MeshOp, StateOp, ProgramOp>(op))
      op.emitOpError("is of no plan: it is made when a plan runs");
  verifyFolded(plan);
  verifyUnbatched(plan);
  verifyMachine(plan);
  llvm::DenseMap<StringAttr, StateUses> uses;
  for (ProgramOp program : plan.getBody().getOps<ProgramOp>()) {
    ProgramVerifier(program, mesh).verify();
    collectUses(program, mesh, uses);
  }
  verifyPrepared(plan);
  for (StateOp state : plan.getBody().getOps<StateOp>())
    verifyState(state, uses[state.getSymNameAttr()], mesh);
  return faults.take();
}

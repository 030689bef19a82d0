//===- Machine.cpp - The machine that ranks run on ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Cost/Machine.h"

#include "ax/Dialect/PlanAttrs.h"
#include "ax/Support/Error.h"
#include "ax/Support/Target.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace ax;

cost::Machine::Machine(MachineRates rates)
    : MachineRates(std::move(rates)),
      library(target.empty() ? &cpuLibrary() : &gpuLibrary()) {}

static Attribute attributeOf(PlanOp plan) {
  return plan ? plan->getAttr(kMachine) : Attribute();
}

static PlanOp planOf(Operation *op) {
  auto plan = dyn_cast<PlanOp>(op);
  return plan ? plan : op->getParentOfType<PlanOp>();
}

cost::Machine cost::machineOf(Operation *op) {
  Attribute attribute = attributeOf(planOf(op));
  if (!attribute)
    return Machine();
  llvm::Expected<MachineRates> rates = fromAttribute(attribute);
  if (rates)
    return Machine(std::move(*rates));
  llvm::consumeError(rates.takeError());
  return Machine();
}

const Library &cost::libraryOf(Operation *op) {
  Attribute attribute = attributeOf(planOf(op));
  if (auto fields = dyn_cast_or_null<DictionaryAttr>(attribute))
    attribute = fields.get("target");
  auto target = dyn_cast_or_null<StringAttr>(attribute);
  return target && !target.empty() ? gpuLibrary() : cpuLibrary();
}

static Attribute toAttribute(const std::string &text, Builder &builder) {
  return builder.getStringAttr(text);
}
static Attribute toAttribute(double number, Builder &builder) {
  return builder.getF64FloatAttr(number);
}
static Attribute toAttribute(int64_t number, Builder &builder) {
  return builder.getI64IntegerAttr(number);
}
static Attribute toAttribute(bool truth, Builder &builder) {
  return builder.getBoolAttr(truth);
}

/// What a key of files is called in a plan, where it needs no quotes.
static std::string nameOf(StringRef key) {
  std::string name = key.str();
  llvm::replace(name, '-', '_');
  return name;
}

/// Returns the fields that are not as in `base`.
static SmallVector<NamedAttribute> fieldsBeside(const MachineRates &rates,
                                                const MachineRates &base,
                                                Builder &builder) {
  llvm::StringMap<Attribute> ofBase;
  MachineRates::forEach(base, [&](const char *key, const auto &value) {
    ofBase[key] = toAttribute(value, builder);
  });
  SmallVector<NamedAttribute> fields;
  MachineRates::forEach(rates, [&](const char *key, const auto &value) {
    Attribute field = toAttribute(value, builder);
    if (field != ofBase[key])
      fields.push_back(builder.getNamedAttr(nameOf(key), field));
  });
  return fields;
}

Attribute cost::toAttribute(const MachineRates &rates, MLIRContext *context) {
  Builder builder(context);
  std::optional<MachineRates> gpu = MachineRates::ofGpu(rates.target);
  SmallVector<NamedAttribute> fields =
      fieldsBeside(rates, gpu.value_or(MachineRates()), builder);
  if (!gpu)
    return builder.getDictionaryAttr(fields);
  StringAttr target = builder.getStringAttr(rates.target);
  if (fields.empty())
    return target;
  fields.push_back(builder.getNamedAttr("target", target));
  return builder.getDictionaryAttr(fields);
}

static bool read(Attribute field, std::string &text) {
  auto string = dyn_cast<StringAttr>(field);
  text = string ? string.str() : "";
  return static_cast<bool>(string);
}
static bool read(Attribute field, double &number) {
  auto value = dyn_cast<FloatAttr>(field);
  bool fits = value && value.getType().isF64();
  number = fits ? value.getValueAsDouble() : 0;
  return fits;
}
static bool read(Attribute field, bool &truth) {
  auto value = dyn_cast<BoolAttr>(field);
  truth = value && value.getValue();
  return static_cast<bool>(value);
}
static bool read(Attribute field, int64_t &number) {
  auto value = dyn_cast<IntegerAttr>(field);
  bool fits = value && value.getType().isSignlessInteger(64);
  number = fits ? value.getInt() : 0;
  return fits;
}

llvm::Expected<MachineRates> cost::fromAttribute(Attribute attribute) {
  if (auto target = dyn_cast<StringAttr>(attribute)) {
    if (auto rates = MachineRates::ofGpu(target.getValue()))
      return *rates;
    return makeError(ExitCode::BadPlan,
                     "has attribute '" + kMachine + "' = \"" +
                         target.getValue() + "\", and known are " +
                         llvm::join(GpuTarget::names(), ", "));
  }
  auto fields = cast<DictionaryAttr>(attribute);
  auto target = dyn_cast_or_null<StringAttr>(fields.get("target"));
  MachineRates rates = MachineRates::ofGpu(target ? target.getValue() : "")
                           .value_or(MachineRates());
  llvm::StringSet<> keys;
  std::string fault;
  MachineRates::forEach(rates, [&](const char *key, auto &value) {
    std::string name = nameOf(key);
    keys.insert(name);
    if (Attribute field = fields.get(name); field && !read(field, value))
      fault = llvm::formatv("has a machine with '{0}' = {1}, which is no "
                            "text, number of f64 or i64, or truth as it should",
                            name, field);
  });
  for (NamedAttribute field : fields)
    if (!keys.contains(field.getName().getValue()))
      fault = llvm::formatv("has a machine with '{0}', which is not known",
                            field.getName().getValue());
  if (fault.empty())
    if (std::string wrong = rates.findFault(); !wrong.empty())
      fault = "has a machine that " + wrong;
  if (!fault.empty())
    return makeError(ExitCode::BadPlan, fault);
  return rates;
}

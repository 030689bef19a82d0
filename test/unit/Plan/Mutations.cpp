//===- Mutations.cpp - Every single edit of a plan ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Mutations.h"

#include "ax/Dialect/Actions.h"
#include "ax/Sharding/Digits.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace ax::plan {

using sharding::Layout;
using sharding::Mesh;
using sharding::SubAxes;

namespace {

class Mutator {
public:
  explicit Mutator(ModuleOp module) : mesh(meshOf(module)) {
    module.walk([&](Operation *op) { ops.push_back(op); });
  }

  std::vector<Mutation> run() {
    for (size_t i = 0; i < ops.size(); ++i) {
      Operation *op = ops[i];
      if (isa<CollectiveOpInterface>(op))
        addCollective(i);
      if (isa<StateOp>(op))
        addState(i);
      addStoreMutations(
          op, [&](const std::string &what, auto edit) { add(i, what, edit); });
      if (isa<TransferOp>(op))
        addTransfer(i);
      if (isa<StageOp>(op))
        addStage(i);
      if (isa<ScheduleOp>(op))
        addSchedule(i);
      if (isa<MeshOp>(op))
        addMesh(i);
      if (!isa<PlanOp, ProgramOp>(op))
        addLayouts(i);
      if (isa_and_nonnull<StageOp>(op->getParentOp()) &&
          op->getNumOperands() > 1)
        addElementTypes(i);
    }
    return std::move(found);
  }

private:
  static Mesh meshOf(ModuleOp module) {
    return (*module.getOps<PlanOp>().begin()).getMesh();
  }
  std::string nameOf(size_t number) const {
    std::string text = "#" + std::to_string(number) + " ";
    return text + ops[number]->getName().getStringRef().str();
  }
  /// An edit of the op with this number.
  void add(size_t number, const std::string &what,
           std::function<bool(Operation *)> edit) {
    found.push_back({nameOf(number) + ": " + what, number, std::move(edit)});
  }

  void addCollective(size_t number);
  void addState(size_t number);
  void addTransfer(size_t number);
  void addStage(size_t number);
  void addSchedule(size_t number);
  void addMesh(size_t number);
  void addLayouts(size_t number);
  void addElementTypes(size_t number);
  std::vector<Layout> editsOf(const Layout &layout) const;
  std::vector<SubAxes> someAxes() const;

  Mesh mesh;
  std::vector<Operation *> ops;
  std::vector<Mutation> found;
};

} // namespace

/// Single axes, halves of them, and pairs in both orders.
std::vector<SubAxes> Mutator::someAxes() const {
  std::vector<SubAxes> result;
  for (const sharding::Axis &axis : mesh.getAxes())
    if (axis.size > 1) {
      result.push_back({mesh.whole(axis.name)});
      if (axis.size % 2 == 0 && axis.size > 2)
        for (sharding::SubAxis half :
             {sharding::SubAxis{axis.name, 1, axis.size / 2},
              sharding::SubAxis{axis.name, 2, axis.size / 2}})
          result.push_back({half});
    }
  size_t single = result.size();
  for (size_t a = 0; a < single; ++a)
    for (size_t b = 0; b < single; ++b)
      if (!sharding::overlap(result[a], result[b]))
        result.push_back({result[a][0], result[b][0]});
  return result;
}

static Operation *replaceKind(Operation *op, StringRef name) {
  OpBuilder builder(op);
  OperationState state(op->getLoc(), name, op->getOperands(),
                       op->getResultTypes(), op->getAttrs());
  Operation *made = builder.create(state);
  op->replaceAllUsesWith(made);
  op->erase();
  return made;
}

void Mutator::addCollective(size_t number) {
  add(number, "deleted", [](Operation *op) {
    op->replaceAllUsesWith(op->getOperands());
    op->erase();
    return true;
  });
  add(number, "deleted, its operand given the result's type",
      [](Operation *op) {
        for (auto [operand, result] :
             llvm::zip_equal(op->getOperands(), op->getResults()))
          operand.setType(result.getType());
        op->replaceAllUsesWith(op->getOperands());
        op->erase();
        return true;
      });
  add(number, "moved before its operand's user before it", [](Operation *op) {
    Operation *before = op->getPrevNode();
    if (!before)
      return false;
    op->moveBefore(before);
    return true;
  });
  add(number, "swapped with the next collective", [](Operation *op) {
    Operation *next = op->getNextNode();
    while (next && !isa<CollectiveOpInterface>(next))
      next = next->getNextNode();
    if (!next)
      return false;
    Operation *after = next->getNextNode();
    next->moveBefore(op);
    op->moveBefore(after);
    return true;
  });
  add(number, "operands swapped with the next collective's", [](Operation *op) {
    Operation *next = op->getNextNode();
    while (next && !isa<CollectiveOpInterface>(next))
      next = next->getNextNode();
    // Of the same type it is another computation, not another exchange.
    if (!next || next->getOperand(0).getType() == op->getOperand(0).getType())
      return false;
    Value mine = op->getOperand(0);
    op->setOperand(0, next->getOperand(0));
    next->setOperand(0, mine);
    return true;
  });
  for (const char *kind :
       {"ax.all_reduce", "ax.reduce_scatter", "ax.all_gather", "ax.all_slice",
        "ax.all_to_all", "ax.collective_permute", "ax.to_partial"})
    if (ops[number]->getName().getStringRef() != kind)
      add(number, std::string("becomes ") + kind, [kind](Operation *op) {
        replaceKind(op, kind);
        return true;
      });
  auto axes = someAxes();
  axes.push_back({});
  for (const SubAxes &other : axes) {
    AxesAttr attr = AxesAttr::get(ops[number]->getContext(), other, mesh);
    if (attr != cast<CollectiveOpInterface>(ops[number]).getMovedAxes()) {
      std::string text;
      llvm::raw_string_ostream(text) << attr;
      add(number, "over " + text, [attr](Operation *op) {
        op->setAttr("axes", attr);
        return true;
      });
    }
  }
}

/// Legal layouts that differ from `layout` in one place.
std::vector<Layout> Mutator::editsOf(const Layout &layout) const {
  std::vector<Layout> edits;
  std::vector<int64_t> shape = layout.globalShape();
  auto add = [&](Layout edit) {
    if (sharding::findFault(edit, shape, mesh))
      return;
    edit = sharding::canonicalize(std::move(edit));
    if (edit != layout && !llvm::is_contained(edits, edit))
      edits.push_back(std::move(edit));
  };
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    Layout whole = layout;
    whole.dims[d] = sharding::DimLayout::whole(shape[d]);
    add(whole);
    for (const SubAxes &axes : someAxes()) {
      Layout split = layout;
      split.dims[d] = sharding::DimLayout::split(shape[d], axes);
      add(split);
    }
    Layout reversed = layout;
    for (sharding::Factor &factor : reversed.dims[d].factors)
      std::reverse(factor.axes.begin(), factor.axes.end());
    add(reversed);
    for (size_t e = 0; e < d; ++e)
      if (shape[d] == shape[e]) {
        Layout swapped = layout;
        std::swap(swapped.dims[d], swapped.dims[e]);
        add(swapped);
      }
  }
  Layout complete = layout;
  complete.partial.clear();
  add(complete);
  for (auto kind : {sharding::ReduceKind::Sum, sharding::ReduceKind::Max,
                    sharding::ReduceKind::Min}) {
    Layout other = layout;
    other.partialKind = kind;
    add(other);
    for (const SubAxes &axes : someAxes()) {
      other.partial = axes;
      add(other);
    }
  }
  return edits;
}

void Mutator::addLayouts(size_t number) {
  auto addEdits = [&](RankedTensorType type, const std::string &what,
                      auto setType) {
    for (const Layout &layout : editsOf(getLayout(type, mesh))) {
      RankedTensorType edited = withLayout(type, layout, mesh);
      add(number, what + " as " + sharding::toString(layout, mesh),
          [=](Operation *op) {
            setType(op, edited);
            return true;
          });
    }
  };
  for (OpResult result : ops[number]->getResults()) {
    unsigned i = result.getResultNumber();
    addEdits(tensorType(result), "result " + std::to_string(i),
             [i](Operation *op, Type type) { op->getResult(i).setType(type); });
  }
  if (isa<StageOp>(ops[number]))
    for (BlockArgument argument : ops[number]->getRegion(0).getArguments()) {
      unsigned i = argument.getArgNumber();
      addEdits(tensorType(argument), "argument " + std::to_string(i),
               [i](Operation *op, Type type) {
                 op->getRegion(0).getArgument(i).setType(type);
               });
    }
}

void Mutator::addState(size_t number) {
  auto state = cast<StateOp>(ops[number]);
  for (const Layout &layout : editsOf(getLayout(state.getTensorType(), mesh))) {
    Type type = withLayout(state.getTensorType(), layout, mesh);
    for (bool loadsToo : {false, true})
      add(number,
          "stored as " + sharding::toString(layout, mesh) +
              (loadsToo ? ", loads too" : ""),
          [=](Operation *op) {
            auto state = cast<StateOp>(op);
            state.setTypeAttr(TypeAttr::get(type));
            if (loadsToo)
              op->getParentOp()->walk([&](LoadOp load) {
                if (load.getStateAttr().getAttr() == state.getSymNameAttr())
                  load.getResult().setType(cast<RankedTensorType>(type));
              });
            return true;
          });
  }
  add(number, "deleted", [](Operation *op) {
    op->erase();
    return true;
  });
  add(number, "held by nobody", [](Operation *op) {
    cast<StateOp>(op).removeStagesAttr();
    return true;
  });
  add(number, "held by stage 1", [](Operation *op) {
    Builder builder(op->getContext());
    auto attr = builder.getDenseI64ArrayAttr({1});
    bool changes = cast<StateOp>(op).getStagesAttr() != attr;
    cast<StateOp>(op).setStagesAttr(attr);
    return changes;
  });
}

void Mutator::addTransfer(size_t number) {
  auto setNumber = [&](const char *name, int64_t value) {
    add(number, std::string(name) + " = " + std::to_string(value),
        [=](Operation *op) {
          auto attr = Builder(op->getContext()).getI64IntegerAttr(value);
          bool changes = op->getAttr(name) != attr;
          op->setAttr(name, attr);
          return changes;
        });
  };
  for (int64_t stage = -1; stage <= mesh.axisSize("pipe"); ++stage) {
    setNumber("from", stage);
    setNumber("to", stage);
  }
  for (int64_t slots : {-1, 0, 1, 3, 1 << 30})
    setNumber("slots", slots);
  add(number, "deleted", [](Operation *op) {
    op->getResult(0).replaceAllUsesWith(op->getOperand(0));
    op->erase();
    return true;
  });
  add(number, "received by nobody", [](Operation *op) {
    OpBuilder builder(op);
    Operation *other = builder.clone(*op);
    op->getResult(0).replaceAllUsesWith(other->getResult(0));
    return true;
  });
  add(number, "received twice", [](Operation *op) {
    for (Operation *user : op->getResult(0).getUsers())
      for (OpOperand &operand : user->getOpOperands())
        if (operand.get() != op->getResult(0) &&
            operand.get().getType() != op->getResult(0).getType()) {
          operand.set(op->getResult(0));
          return true;
        }
    return false;
  });
}

void Mutator::addStage(size_t number) {
  auto setAttribute = [&](StringRef name, Attribute value) {
    std::string text = "without " + name.str();
    if (value)
      llvm::raw_string_ostream(text = name.str() + " = ") << value;
    add(number, text, [=](Operation *op) {
      bool changes = op->getDiscardableAttr(name) != value;
      if (value)
        op->setDiscardableAttr(name, value);
      else
        op->removeDiscardableAttr(name);
      return changes;
    });
  };
  Builder builder(ops[number]->getContext());
  for (const char *action : {"B", "W", "U", "x"})
    setAttribute(kAction, builder.getStringAttr(action));
  for (int64_t i : {-1, 0, 1, 3}) {
    setAttribute(kPart, builder.getI64IntegerAttr(i));
    setAttribute(kSlots, builder.getI64IntegerAttr(i));
  }
  for (StringRef name :
       {StringRef(kAction), StringRef(kPart), StringRef(kSlots)})
    setAttribute(name, {});
  for (int64_t on = -1; on <= mesh.axisSize("pipe"); ++on)
    add(number, "on " + std::to_string(on), [=](Operation *op) {
      bool changes = static_cast<int64_t>(cast<StageOp>(op).getOn()) != on;
      cast<StageOp>(op).setOn(on);
      return changes;
    });
}

void Mutator::addSchedule(size_t number) {
  auto schedule = cast<ScheduleOp>(ops[number]);
  auto setOrder = [&](const std::string &what, size_t stage, std::string text) {
    add(number, "stage " + std::to_string(stage) + ": " + what,
        [=](Operation *op) {
          SmallVector<Attribute> orders(
              cast<ScheduleOp>(op).getOrders().getValue());
          orders[stage] = StringAttr::get(op->getContext(), text);
          op->setAttr("orders", ArrayAttr::get(op->getContext(), orders));
          return true;
        });
  };
  for (auto [s, text] :
       llvm::enumerate(schedule.getOrders().getAsValueRange<StringAttr>())) {
    SmallVector<StringRef> entries;
    text.split(entries, ' ');
    for (size_t e = 0; e < entries.size(); ++e) {
      SmallVector<StringRef> edited(entries);
      edited.erase(edited.begin() + e);
      setOrder("without " + entries[e].str(), s, llvm::join(edited, " "));
      edited = entries;
      edited.insert(edited.begin() + e, entries[e]);
      setOrder("twice " + entries[e].str(), s, llvm::join(edited, " "));
      for (const char *other : {"F99", "B0", "F-1", "x", "F0", "U", "B1.1"}) {
        edited = entries;
        if (edited[e] == other)
          continue;
        edited[e] = other;
        setOrder(entries[e].str() + " as " + other, s, llvm::join(edited, " "));
      }
      if (e + 1 < entries.size()) {
        edited = entries;
        std::swap(edited[e], edited[e + 1]);
        setOrder("swapped " + entries[e].str(), s, llvm::join(edited, " "));
      }
    }
  }
  add(number, "deleted", [](Operation *op) {
    op->erase();
    return true;
  });
  add(number, "without its first stage", [](Operation *op) {
    ArrayRef<Attribute> orders = cast<ScheduleOp>(op).getOrders().getValue();
    op->setAttr("orders",
                ArrayAttr::get(op->getContext(), orders.drop_front()));
    return true;
  });
}

void Mutator::addMesh(size_t number) {
  auto meshOp = cast<MeshOp>(ops[number]);
  for (size_t a = 0; a < meshOp.getSizes().size(); ++a)
    for (int64_t size : {1, 2, 3, 4})
      if (size != meshOp.getSizes()[a])
        add(number, mesh.getAxes()[a].name + " = " + std::to_string(size),
            [=](Operation *op) {
              SmallVector<int64_t> sizes(cast<MeshOp>(op).getSizes());
              sizes[a] = size;
              cast<MeshOp>(op).setSizes(sizes);
              return true;
            });
  add(number, "time first", [](Operation *op) {
    cast<MeshOp>(op).setNumSpace(0);
    return true;
  });
  add(number, "no time", [](Operation *op) {
    cast<MeshOp>(op).setNumSpace(cast<MeshOp>(op).getSizes().size());
    return true;
  });
}

/// Each operand on its own, by a cast before the op.
void Mutator::addElementTypes(size_t number) {
  for (unsigned i = 0; i < ops[number]->getNumOperands(); ++i)
    add(number, "operand " + std::to_string(i) + " of another element type",
        [=](Operation *op) {
          OpBuilder builder(op);
          RankedTensorType type = tensorType(op->getOperand(i));
          Type wide = type.getElementType().isF64()
                          ? Type(builder.getF32Type())
                          : Type(builder.getF64Type());
          op->setOperand(i,
                         CastOp::create(builder, op->getLoc(), type.clone(wide),
                                        op->getOperand(i)));
          return true;
        });
}

std::vector<Mutation> allMutations(ModuleOp module) {
  return Mutator(module).run();
}

bool apply(ModuleOp module, ArrayRef<Mutation> mutations) {
  std::vector<Operation *> ops;
  module.walk([&](Operation *op) { ops.push_back(op); });
  return llvm::all_of(mutations, [&](const Mutation &mutation) {
    return mutation.edit(ops[mutation.number]);
  });
}

} // namespace ax::plan

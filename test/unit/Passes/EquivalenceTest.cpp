//===- EquivalenceTest.cpp - Normalize and Raise change no result ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// On every program of the passes' lit tests, and on random ones.
//
//===----------------------------------------------------------------------===//

#include "ax/Compile/Compile.h"
#include "ax/Dialect/Ax.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Interpreter/Interpreter.h"
#include "ax/Support/Error.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>

using namespace ax;
using mlir::RankedTensorType;
using mlir::Value;

namespace {

HostTensor randomTensor(RankedTensorType type, std::mt19937 &random) {
  HostTensor tensor(*interpreter::toDType(type.getElementType()),
                    Shape(type.getShape()));
  std::uniform_real_distribution<double> number(-2, 2);
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    if (tensor.getType() == DType::Bool)
      tensor.setInt(i, random() % 4 != 0);
    else if (mlir::isa<mlir::FloatType>(type.getElementType()))
      tensor.setDouble(i, number(random));
    else
      tensor.setInt(i, static_cast<int64_t>(random() % 3));
  }
  return tensor;
}

/// Inputs and states are functions of the seed.
llvm::SmallVector<HostTensor> interpret(ProgramOp program, unsigned seed) {
  std::mt19937 random(seed);
  llvm::SmallVector<HostTensor> inputs;
  for (mlir::Type type : program.getArgumentTypes())
    inputs.push_back(randomTensor(mlir::cast<RankedTensorType>(type), random));
  auto readState = [&](LoadOp load) -> llvm::Expected<HostTensor> {
    std::mt19937 ofState(seed + llvm::hash_value(load.getState()));
    return randomTensor(tensorType(load), ofState);
  };
  auto results = interpreter::interpretProgram(program, inputs, readState);
  if (!results) {
    ADD_FAILURE() << describeError(results.takeError()).message;
    return {};
  }
  return std::move(*results);
}

void expectClose(const HostTensor &actual, const HostTensor &expected,
                 const std::string &where) {
  ASSERT_EQ(actual.getShape(), expected.getShape()) << where;
  double tolerance = actual.getType() == DType::F32 ? 1e-5 : 1e-2;
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    double a = actual.getDouble(i), e = expected.getDouble(i);
    bool same = a == e || (std::isnan(a) && std::isnan(e)) ||
                std::abs(a - e) <= tolerance * std::max(1.0, std::abs(e));
    ASSERT_TRUE(same) << where << ", element " << i << ": " << a << " was "
                      << e;
  }
}

/// Interprets all programs, runs the phases, and interprets again.
void checkModule(mlir::ModuleOp module, const std::string &where) {
  llvm::SmallVector<llvm::SmallVector<HostTensor>> before;
  constexpr unsigned seed = 1;
  module.walk(
      [&](ProgramOp program) { before.push_back(interpret(program, seed)); });
  CompileOptions layers;
  layers.last = "raise";
  if (llvm::Error error = compile(module, layers))
    FAIL() << where << ": " << describeError(std::move(error)).message;
  size_t i = 0;
  module.walk([&](ProgramOp program) {
    std::string name = where + " @" + program.getSymName().str();
    llvm::SmallVector<HostTensor> after = interpret(program, seed);
    ASSERT_EQ(after.size(), before[i].size()) << name;
    for (size_t j = 0; j < after.size(); ++j)
      expectClose(after[j], before[i][j], name);
    ++i;
  });
}

/// Dropout that comes of random numbers drops other elements; and what is there
/// for its size, with millions of elements, would take minutes.
mlir::WalkResult isNotCompared(mlir::Operation *op) {
  constexpr int64_t most = int64_t(1) << 24;
  auto isLarge = [](Value value) {
    auto type = mlir::dyn_cast<RankedTensorType>(value.getType());
    return type && type.getNumElements() > most;
  };
  return mlir::isa<UniformOp>(op) || llvm::any_of(op->getResults(), isLarge)
             ? mlir::WalkResult::interrupt()
             : mlir::WalkResult::advance();
}

TEST(Equivalence, ProgramsOfLitTests) {
  const char *tests = std::getenv("AX_TEST_DIR");
  int count = 0;
  for (const char *phase : {"normalize", "raise"}) {
    std::string folder =
        std::string(tests ? tests : "test") + "/lit/passes/" + phase;
    std::error_code code;
    for (llvm::sys::fs::directory_iterator file(folder, code), end;
         file != end && !code; file.increment(code)) {
      mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
      context.loadDialect<AxDialect>();
      auto module =
          mlir::parseSourceFile<mlir::ModuleOp>(file->path(), &context);
      ASSERT_TRUE(module) << file->path();
      module->walk([](ProgramOp program) {
        if (program.walk(isNotCompared).wasInterrupted())
          program.erase();
      });
      checkModule(*module, file->path());
      ++count;
    }
  }
  EXPECT_GT(count, 5);
}

/// Builds a program of random operations on small tensors.
class RandomProgram {
public:
  RandomProgram(mlir::MLIRContext &context, unsigned seed)
      : random(seed), builder(&context), loc(mlir::UnknownLoc::get(&context)),
        module(mlir::ModuleOp::create(loc)) {
    builder.setInsertionPointToEnd(module->getBody());
    auto plan = PlanOp::create(builder, loc, "random", PlanOp::currentVersion);
    mlir::Block &body = plan.getBody().emplaceBlock();
    builder.setInsertionPointToEnd(&body);
    for (int64_t n : {2, 3, 4}) {
      auto type = RankedTensorType::get({4, n}, builder.getF32Type());
      StateOp::create(builder, loc, "w" + std::to_string(n), type, "none", 0,
                      4 * type.getNumElements(), mlir::TypeAttr(),
                      mlir::DenseI64ArrayAttr(), nullptr, false);
    }
    auto input = RankedTensorType::get({2, 3, 4}, builder.getF32Type());
    auto program = ProgramOp::create(
        builder, loc, "main", builder.getFunctionType({input, input}, {}));
    builder.setInsertionPointToEnd(&program.getBody().front());
    llvm::append_range(values, program.getArguments());
    for (int i = 0; i < 24; ++i)
      addOperation();
    llvm::SmallVector<Value> results(values.end() - 4, values.end());
    ReturnOp::create(builder, loc, results);
    program.setFunctionType(builder.getFunctionType(
        program.getArgumentTypes(), mlir::ValueRange(results).getTypes()));
  }

  mlir::OwningOpRef<mlir::ModuleOp> take() { return std::move(module); }

private:
  int64_t pick(int64_t n) { return static_cast<int64_t>(random() % n); }

  Value pickValue() {
    // The last ones more often: longer chains.
    size_t n = values.size();
    return values[n - 1 - std::min<size_t>(pick(n), pick(n))];
  }

  static llvm::ArrayRef<int64_t> shapeOf(Value value) {
    return tensorType(value).getShape();
  }
  RankedTensorType typeOf(llvm::ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, builder.getF32Type());
  }
  Value splat(llvm::ArrayRef<int64_t> shape) {
    const double numbers[] = {0, 1, 0.5, 2, 3, -1};
    return ConstantOp::create(
        builder, loc,
        mlir::DenseElementsAttr::get(
            typeOf(shape),
            llvm::APFloat(static_cast<float>(numbers[pick(6)]))));
  }

  void addOperation() {
    Value x = pickValue();
    llvm::SmallVector<int64_t> shape(shapeOf(x));
    int64_t rank = shape.size();
    switch (pick(9)) {
    case 0: {
      // Merge two neighbours, split an even one, or add a 1.
      int64_t choice = pick(3);
      if (choice == 0 && rank > 1) {
        int64_t dim = pick(rank - 1);
        shape[dim] *= shape[dim + 1];
        shape.erase(shape.begin() + dim + 1);
      } else if (choice == 1 && rank > 0) {
        int64_t dim = pick(rank);
        if (shape[dim] % 2 == 0) {
          shape[dim] /= 2;
          shape.insert(shape.begin() + dim + pick(2), 2);
        }
      } else {
        shape.insert(shape.begin() + pick(rank + 1), 1);
      }
      values.push_back(ReshapeOp::create(builder, loc, typeOf(shape), x));
      return;
    }
    case 1: {
      llvm::SmallVector<int64_t> permutation;
      for (int64_t i = 0; i < rank; ++i)
        permutation.push_back(i);
      std::shuffle(permutation.begin(), permutation.end(), random);
      values.push_back(TransposeOp::create(builder, loc, x, permutation));
      return;
    }
    case 2: {
      for (int64_t &size : shape)
        if (size == 1 && pick(2))
          size = 2;
      values.push_back(BroadcastOp::create(builder, loc, typeOf(shape), x));
      return;
    }
    case 3: {
      llvm::SmallVector<int64_t> starts(rank, 0), steps(rank, 1);
      for (int64_t i = 0; i < rank; ++i)
        if (shape[i] > 1 && pick(3) == 0) {
          bool back = pick(2);
          starts[i] = back ? shape[i] - 1 : 1;
          steps[i] = back ? -1 : 1;
          shape[i] = back ? shape[i] : shape[i] - 1;
        }
      values.push_back(
          SliceOp::create(builder, loc, typeOf(shape), x, starts, steps));
      return;
    }
    case 4: {
      const UnaryKind kinds[] = {UnaryKind::neg, UnaryKind::relu,
                                 UnaryKind::sigmoid, UnaryKind::tanh,
                                 UnaryKind::abs};
      values.push_back(UnaryOp::create(builder, loc, kinds[pick(5)], x));
      return;
    }
    case 5: {
      Value weight = LoadOp::create(builder, loc, typeOf({4, 2 + pick(3)}),
                                    mlir::FlatSymbolRefAttr());
      weight.getDefiningOp<LoadOp>().setState(
          "w" + std::to_string(shapeOf(weight)[1]));
      for (int64_t dim = 0; dim < rank; ++dim)
        for (int64_t side : {0, 1})
          if (shape[dim] == shapeOf(weight)[side]) {
            mlir::ArrayRef<int64_t> none;
            bool swap = pick(3) == 0;
            values.push_back(DotOp::create(
                builder, loc, swap ? weight : x, swap ? x : weight, none, none,
                llvm::ArrayRef<int64_t>{swap ? side : dim},
                llvm::ArrayRef<int64_t>{swap ? dim : side}));
            return;
          }
      return;
    }
    default:
      break;
    }
    // Two operands that broadcast together.
    Value y = pick(3) == 0 ? splat(pick(2) ? shape : llvm::ArrayRef<int64_t>())
                           : pickValue();
    auto joint = broadcastShapes(shape, shapeOf(y));
    if (failed(joint) ||
        RankedTensorType::get(*joint, builder.getF32Type()).getNumElements() >
            400)
      return;
    const BinaryKind kinds[] = {BinaryKind::add, BinaryKind::sub,
                                BinaryKind::mul, BinaryKind::max};
    if (pick(2))
      std::swap(x, y);
    if (pick(5) == 0) {
      Value condition = CompareOp::create(builder, loc, CompareKind::lt, x, y);
      values.push_back(SelectOp::create(builder, loc, condition, y, x));
    } else {
      values.push_back(BinaryOp::create(builder, loc, kinds[pick(4)], x, y));
    }
  }

  std::mt19937 random;
  mlir::OpBuilder builder;
  mlir::Location loc;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  llvm::SmallVector<Value> values;
};

TEST(Equivalence, RandomPrograms) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<AxDialect>();
  for (unsigned seed = 0; seed < 1000 && !testing::Test::HasFailure(); ++seed) {
    auto module = RandomProgram(context, seed).take();
    ASSERT_TRUE(mlir::succeeded(mlir::verify(*module))) << "seed " << seed;
    auto original = module->clone();
    checkModule(*module, "seed " + std::to_string(seed));
    if (testing::Test::HasFailure())
      original.print(llvm::errs());
    original.erase();
  }
}

} // namespace

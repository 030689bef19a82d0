//===- KernelTestSupport.cpp - A fusion against the interpreter -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelTestSupport.h"

#include "SimulatedGrid.h"

#include "ax/Interpreter/Elements.h"
#include "ax/Interpreter/Interpreter.h"
#include "ax/Runtime/CpuKernel.h"
#include "ax/Support/Error.h"
#include "mlir/Parser/Parser.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>

using namespace mlir;

namespace ax::codegen {

MLIRContext &testContext() {
  static MLIRContext *context = [] {
    auto *made = new MLIRContext();
    made->loadDialect<AxDialect, AxlDialect>();
    made->allowUnregisteredDialects();
    return made;
  }();
  return *context;
}

KernelCompiler &testCompiler() {
  static KernelCompiler *compiler = [] {
    KernelOptions options;
    options.target = testTarget();
    return llvm::cantFail(KernelCompiler::create(options)).release();
  }();
  return *compiler;
}

OwningOpRef<ModuleOp> parse(const FusionText &text) {
  auto tensor = [](const std::string &type) { return "tensor<" + type + ">"; };
  std::string types, names, arguments, resultTypes, results;
  for (size_t i = 0; i != text.operands.size(); ++i) {
    std::string comma = i ? ", " : "";
    types += comma + tensor(text.operands[i]);
    names += comma + "%in#" + std::to_string(i);
    arguments += comma + "%" + char('a' + i) + ": " + tensor(text.operands[i]);
  }
  for (size_t i = 0; i != text.results.size(); ++i) {
    std::string comma = i ? ", " : "";
    resultTypes += comma + tensor(text.results[i].second);
    results += comma + text.results[i].first;
  }
  std::string source;
  if (!text.operands.empty())
    source += "%in:" + std::to_string(text.operands.size()) +
              " = \"test.source\"() : () -> (" + types + ")\n";
  source += "%out:" + std::to_string(text.results.size()) + " = axl.fusion (" +
            names + ") {\n^bb0" +
            (arguments.empty() ? "" : "(" + arguments + ")") + ":\n" +
            text.body + "\naxl.yield " + results + " : " + resultTypes +
            "\n} : (" + types + ") -> (" + resultTypes + ")";
  auto module = parseSourceString<ModuleOp>(source, &testContext());
  EXPECT_TRUE(module) << source;
  return module;
}

FusionOp fusionOf(ModuleOp module) {
  FusionOp found;
  module.walk([&](FusionOp fusion) { found = fusion; });
  return found;
}

namespace {

/// Memory with a pattern before and after it.
class Guarded {
public:
  explicit Guarded(int64_t bytes) : bytes(bytes) {
    int64_t total = (bytes + 3 * guard + 63) / 64 * 64;
    base = static_cast<uint8_t *>(std::aligned_alloc(64, total));
    std::fill(base, base + total, 0xa5);
    size = total;
  }
  Guarded(Guarded &&o) : bytes(o.bytes), size(o.size), base(o.base) {
    o.base = nullptr;
  }
  ~Guarded() { std::free(base); }
  uint8_t *data() { return base + guard; }
  bool isIntact() const {
    auto isPattern = [](uint8_t byte) { return byte == 0xa5; };
    return std::all_of(base, base + guard, isPattern) &&
           std::all_of(base + guard + bytes, base + size, isPattern);
  }

private:
  static constexpr int64_t guard = 128;
  int64_t bytes, size;
  uint8_t *base;
};

} // namespace

std::vector<HostTensor> runKernel(const CompiledKernel &kernel, FusionOp fusion,
                                  llvm::ArrayRef<HostTensor> operands,
                                  int64_t pieces,
                                  llvm::ArrayRef<int64_t> scalars,
                                  uint64_t seed) {
  std::vector<Guarded> memory;
  for (const HostTensor &operand : operands) {
    memory.emplace_back(operand.numBytes());
    std::copy(operand.data(), operand.data() + operand.numBytes(),
              memory.back().data());
  }
  std::vector<HostTensor> results;
  for (Type type : fusion.getResultTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    results.emplace_back(*interpreter::toDType(tensor.getElementType()),
                         Shape(tensor.getShape()));
    memory.emplace_back(results.back().numBytes());
  }
  bool isCalled = kernel.image->format != rt::kernelFormat::ptx;
  rt::LaunchShape shape = kernel.image->launch;
  // Not a divisor of what there is to do, and not the kernel's own.
  if (pieces != 1) {
    shape.blocks = pieces;
    if (shape.groupThreads == 1)
      shape.threadsPerBlock = 7;
  }
  if (kernel.signature.scratchBytes > 0)
    memory.emplace_back(kernel.signature.scratchBytes *
                        (isCalled ? 1 : shape.numGroups()));
  EXPECT_EQ(int64_t(memory.size()), kernel.signature.numBuffers());
  std::vector<void *> buffers;
  for (Guarded &one : memory)
    buffers.push_back(one.data());
  if (isCalled) {
    auto loaded = llvm::cantFail(rt::loadCpuKernel(*kernel.image));
    int64_t count = kernel.signature.outerCount;
    for (int64_t p = pieces - 1; p >= 0; --p)
      loaded->getFunction()(buffers.data(), scalars.data(), count * p / pieces,
                            count * (p + 1) / pieces);
  } else {
    size_t numArguments = kernel.image->arguments.size();
    llvm::cantFail(runGrid(
        *kernel.image, shape, llvm::ArrayRef(buffers).take_front(numArguments),
        scalars, buffers.size() > numArguments ? buffers.back() : nullptr,
        {seed}));
  }
  for (size_t i = 0; i != memory.size(); ++i)
    EXPECT_TRUE(memory[i].isIntact()) << "buffer " << i << " overrun";
  for (size_t i = 0; i != results.size(); ++i)
    std::copy_n(memory[operands.size() + i].data(), results[i].numBytes(),
                results[i].mutableData());
  return results;
}

std::vector<HostTensor> interpretFusion(FusionOp fusion,
                                        llvm::ArrayRef<HostTensor> operands) {
  llvm::DenseMap<Value, HostTensor> values;
  Block &block = fusion.getBody().front();
  for (auto [argument, operand] : llvm::zip(block.getArguments(), operands))
    values[argument] = operand;
  for (Operation &op : block.without_terminator()) {
    std::vector<HostTensor> inputs;
    for (Value operand : op.getOperands())
      inputs.push_back(values[operand]);
    auto results = interpreter::interpret(&op, inputs);
    if (!results) {
      ADD_FAILURE() << describeError(results.takeError()).message;
      return {};
    }
    for (auto [result, tensor] : llvm::zip(op.getResults(), *results))
      values[result] = tensor;
  }
  std::vector<HostTensor> results;
  for (Value value : block.getTerminator()->getOperands())
    results.push_back(values[value]);
  return results;
}

HostTensor randomTensor(RankedTensorType type, std::mt19937 &random) {
  DType dtype = *interpreter::toDType(type.getElementType());
  HostTensor tensor(dtype, Shape(type.getShape()));
  // The library's distribution of reals takes logarithms for each.
  auto real = [&] {
    double low = random(), number = low + std::ldexp(random(), 32);
    return std::ldexp(number, -64) * 6 - 3;
  };
  std::uniform_int_distribution<int64_t> integer(-20, 20);
  for (int64_t i = 0; i != tensor.numElements(); ++i) {
    if (isFloat(dtype))
      tensor.setDouble(i, real());
    else if (dtype == DType::Bool)
      tensor.setInt(i, random() % 2);
    else
      tensor.setInt(i,
                    isUnsigned(dtype) ? integer(random) + 20 : integer(random));
  }
  return tensor;
}

HostTensor randomIndices(RankedTensorType type, int64_t bound,
                         std::mt19937 &random) {
  HostTensor tensor(*interpreter::toDType(type.getElementType()),
                    Shape(type.getShape()));
  std::uniform_int_distribution<int64_t> pick(-bound, bound - 1);
  for (int64_t i = 0; i != tensor.numElements(); ++i)
    tensor.setInt(i, pick(random));
  return tensor;
}

double toleranceOf(DType type) {
  switch (type) {
  case DType::F32:
    return 2e-6;
  case DType::F64:
    return 1e-12;
  case DType::F16:
    return 2e-3;
  case DType::BF16:
    return 1.6e-2;
  case DType::F8E4M3FN:
    return 0.125;
  case DType::F8E5M2:
    return 0.25;
  default:
    return 0;
  }
}

void expectClose(const HostTensor &actual, const HostTensor &expected,
                 double tolerance, const std::string &what) {
  ASSERT_EQ(actual.getShape(), expected.getShape()) << what;
  ASSERT_EQ(actual.getType(), expected.getType()) << what;
  for (int64_t i = 0; i != actual.numElements(); ++i) {
    if (!isFloat(actual.getType())) {
      ASSERT_EQ(actual.getInt(i), expected.getInt(i))
          << what << ", element " << i;
      continue;
    }
    double a = actual.getDouble(i), e = expected.getDouble(i);
    if (a == e || (std::isnan(a) && std::isnan(e)))
      continue;
    ASSERT_LE(std::abs(a - e), tolerance * std::max(1.0, std::abs(e)))
        << what << ", element " << i << ": " << a << " instead of " << e;
  }
}

void check(const FusionText &text,
           const std::vector<std::pair<size_t, HostTensor>> &fixed,
           double tolerance) {
  OwningOpRef<ModuleOp> module = parse(text);
  ASSERT_TRUE(module);
  FusionOp fusion = fusionOf(*module);
  auto kernel = testCompiler().compile(fusion);
  if (!kernel) {
    ADD_FAILURE() << describeError(kernel.takeError()).message;
    return;
  }
  std::mt19937 random(1);
  std::vector<HostTensor> operands;
  for (Type type : fusion.getOperandTypes())
    operands.push_back(randomTensor(cast<RankedTensorType>(type), random));
  for (auto &[position, tensor] : fixed)
    operands[position] = tensor;
  std::vector<HostTensor> expected = interpretFusion(fusion, operands);
  std::vector<HostTensor> first;
  for (int64_t pieces : {1, 3}) {
    std::vector<HostTensor> actual =
        runKernel(*kernel, fusion, operands, pieces);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i != actual.size(); ++i)
      expectClose(actual[i], expected[i],
                  tolerance > 0 ? tolerance : toleranceOf(actual[i].getType()),
                  text.body + "\nresult " + std::to_string(i) + " in " +
                      std::to_string(pieces) + " pieces");
    if (pieces == 1)
      first = std::move(actual);
  }
  if (kernel->image->launch.groupThreads == 1)
    return;
  constexpr uint64_t numOrders = 8;
  for (uint64_t seed = 1; seed != numOrders; ++seed) {
    std::vector<HostTensor> other =
        runKernel(*kernel, fusion, operands, 1 + seed % 2, {}, seed);
    for (size_t i = 0; i != other.size(); ++i)
      ASSERT_EQ(
          std::memcmp(other[i].data(), first[i].data(), first[i].numBytes()), 0)
          << text.body << "\nresult " << i << " in order " << seed;
  }
}

} // namespace ax::codegen

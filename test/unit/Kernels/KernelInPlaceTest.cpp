//===- KernelInPlaceTest.cpp - Results where an operand is ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of an old value that are chosen lie in pages that nobody may touch.
//
//===----------------------------------------------------------------------===//

#include "KernelTestSupport.h"

#include "SimulatedGrid.h"

#include "ax/Interpreter/Elements.h"
#include "ax/Runtime/CpuKernel.h"

#include <cstring>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ax::codegen {
namespace {

using Rows = std::vector<int64_t>;

/// A tensor, of which some pages may be out of reach.
class Pages {
public:
  explicit Pages(int64_t bytes)
      : size((bytes + page() - 1) / page() * page()),
        base(static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  Pages(Pages &&o) : size(o.size), base(std::exchange(o.base, nullptr)) {}
  ~Pages() {
    if (base)
      munmap(base, size);
  }
  static int64_t page() { return sysconf(_SC_PAGESIZE); }
  char *data() { return base; }
  void forbid(const Rows &pages) {
    for (int64_t one : pages)
      ASSERT_EQ(mprotect(base + one * page(), page(), PROT_NONE), 0);
  }
  void allow() { ASSERT_EQ(mprotect(base, size, PROT_READ | PROT_WRITE), 0); }

private:
  int64_t size;
  char *base;
};

void runOnce(const CompiledKernel &kernel, std::vector<void *> &buffers,
             int64_t pieces) {
  if (kernel.image->format != rt::kernelFormat::ptx) {
    auto loaded = llvm::cantFail(rt::loadCpuKernel(*kernel.image));
    int64_t count = kernel.signature.outerCount;
    for (int64_t p = 0; p != pieces; ++p)
      loaded->getFunction()(buffers.data(), nullptr, count * p / pieces,
                            count * (p + 1) / pieces);
    return;
  }
  rt::LaunchShape shape = kernel.image->launch;
  if (pieces != 1)
    shape.blocks = pieces;
  llvm::cantFail(runGrid(*kernel.image, shape, buffers, {}, nullptr, {0}));
}

/// Results, each in place of the operand that `places` says, or by itself;
/// `untouched`: of each result the pages that are not to be read or written.
void checkInPlace(const FusionText &text, const std::vector<int64_t> &places,
                  const std::vector<std::pair<size_t, HostTensor>> &fixed,
                  const std::vector<Rows> &untouched) {
  auto module = parse(text);
  ASSERT_TRUE(module);
  FusionOp fusion = fusionOf(*module);
  fusion.setInPlace(places);
  auto kernel = llvm::cantFail(testCompiler().compile(fusion));
  ASSERT_EQ(kernel.signature.scratchBytes, 0);
  std::mt19937 random(1);
  std::vector<HostTensor> operands;
  for (mlir::Type type : fusion.getOperandTypes())
    operands.push_back(
        randomTensor(mlir::cast<mlir::RankedTensorType>(type), random));
  for (auto &[position, tensor] : fixed)
    operands[position] = tensor;
  std::vector<HostTensor> expected = interpretFusion(fusion, operands);
  for (int64_t pieces : {1, 3}) {
    std::vector<Pages> memory;
    std::vector<void *> buffers;
    for (const HostTensor &operand : operands) {
      Pages &pages = memory.emplace_back(operand.numBytes());
      std::memcpy(pages.data(), operand.data(), operand.numBytes());
      buffers.push_back(pages.data());
    }
    for (size_t i = 0; i != expected.size(); ++i)
      buffers.push_back(
          places[i] >= 0 ? buffers[places[i]]
                         : memory.emplace_back(expected[i].numBytes()).data());
    for (size_t i = 0; i != untouched.size(); ++i)
      if (places[i] >= 0)
        memory[places[i]].forbid(untouched[i]);
    runOnce(kernel, buffers, pieces);
    for (Pages &pages : memory)
      pages.allow();
    for (size_t i = 0; i != expected.size(); ++i) {
      HostTensor actual(expected[i].getType(), Shape(expected[i].getShape()));
      std::memcpy(actual.mutableData(), buffers[operands.size() + i],
                  actual.numBytes());
      expectClose(actual, expected[i], toleranceOf(actual.getType()),
                  text.body + "\nresult " + std::to_string(i));
    }
  }
}

HostTensor numbers(DType type, Shape shape,
                   const std::function<int64_t(int64_t)> &of) {
  HostTensor tensor(type, std::move(shape));
  for (int64_t i = 0; i != tensor.numElements(); ++i)
    tensor.setInt(i, of(i));
  return tensor;
}

/// Pages of [heads, rows] that lie in other rows than first .. last - 1.
Rows pagesBeside(int64_t heads, int64_t rows, int64_t first, int64_t last) {
  Rows pages;
  for (int64_t page = 0; page != heads * rows; ++page)
    if (page % rows < first || page % rows >= last)
      pages.push_back(page);
  return pages;
}

/// A cache of two heads with room for eight rows of a page each.
struct Cache {
  explicit Cache(std::string type, int64_t bytes)
      : type(type), width(std::to_string(Pages::page() / bytes)),
        whole("tensor<2x8x" + width + "x" + type + ">"),
        fresh("tensor<2x1x" + width + "x" + type + ">") {}
  std::string inner(const std::string &tensor) const {
    return tensor.substr(7, tensor.size() - 8);
  }
  std::string select(const std::string &result, const std::string &condition,
                     const std::string &x, const std::string &xType,
                     const std::string &y, const std::string &yType) const {
    return result + " = ax.select " + condition + ", " + x + ", " + y +
           " : tensor<1x8x1xi1>, " + xType + ", " + yType + " -> " + whole +
           "\n";
  }
  std::string type, width, whole, fresh;
};

const std::vector<std::pair<std::string, int64_t>> types = {
    {"f32", 4}, {"f16", 2}, {"bf16", 2}, {"f64", 8}, {"i8", 1}};

/// Row 3 is new, those before are old, behind there are zeros.
TEST(KernelInPlace, RowsBeforeTheNewOneStay) {
  for (auto [type, bytes] : types) {
    Cache c(type, bytes);
    std::string zero = type[0] == 'i' ? "0" : "0.0";
    FusionText text{
        {c.inner(c.whole), c.inner(c.fresh), "1x8x1xi1", "1x8x1xi1"},
        "%z = ax.constant dense<" + zero + "> : tensor<" + type +
            "> -> tensor<" + type + ">\n" +
            c.select("%s", "%d", "%b", c.fresh, "%z", "tensor<" + type + ">") +
            c.select("%r", "%c", "%a", c.whole, "%s", c.whole),
        {{"%r", c.inner(c.whole)}}};
    checkInPlace(
        text, {0},
        {{2, numbers(DType::Bool, {1, 8, 1}, [](int64_t i) { return i < 3; })},
         {3, numbers(DType::Bool, {1, 8, 1}, [](int64_t i) { return i < 4; })}},
        {pagesBeside(2, 8, 3, 8)});
  }
}

/// What is behind stays, too; the two halves of a choice are of one old value.
TEST(KernelInPlace, RowsOnEitherSideStay) {
  for (auto [type, bytes] : types) {
    Cache c(type, bytes);
    FusionText text{
        {c.inner(c.whole), c.inner(c.fresh), "1x8x1xi1", "1x8x1xi1"},
        c.select("%s", "%d", "%b", c.fresh, "%a", c.whole) +
            c.select("%r", "%c", "%a", c.whole, "%s", c.whole),
        {{"%r", c.inner(c.whole)}}};
    checkInPlace(
        text, {0},
        {{2, numbers(DType::Bool, {1, 8, 1}, [](int64_t i) { return i < 3; })},
         {3, numbers(DType::Bool, {1, 8, 1}, [](int64_t i) { return i < 5; })}},
        {pagesBeside(2, 8, 3, 5)});
  }
}

/// A ring of rows, of which the kernel finds the place by itself; keys and
/// values together, and beside them what is in another place, or all new.
TEST(KernelInPlace, SeveralResultsStayEachWhereItDoes) {
  Cache c("f32", 4);
  std::string i64 = "tensor<i64>", places = "tensor<1x8x1xi64>";
  std::string conditions =
      "%i = ax.iota dim 1 : " + places +
      "\n%eight = ax.constant dense<8> : " + i64 + " -> " + i64 +
      "\n%at = ax.binary floor_mod %e, %eight : " + i64 + ", " + i64 + " -> " +
      i64 + "\n%is = ax.compare eq %i, %at : " + places + ", " + i64 +
      " -> tensor<1x8x1xi1>\n%from = ax.compare ge %i, %at : " + places + ", " +
      i64 + " -> tensor<1x8x1xi1>\n";
  FusionText text{{c.inner(c.whole), c.inner(c.whole), c.inner(c.fresh),
                   c.inner(c.fresh), "i64", c.inner(c.whole), c.inner(c.whole)},
                  conditions +
                      c.select("%k", "%is", "%c", c.fresh, "%a", c.whole) +
                      c.select("%v", "%is", "%d", c.fresh, "%b", c.whole) +
                      c.select("%w", "%from", "%f", c.whole, "%c", c.fresh) +
                      "%n = ax.unary neg %g : " + c.whole + " -> " + c.whole +
                      "\n%o = ax.binary add %k, %v : " + c.whole + ", " +
                      c.whole + " -> " + c.whole,
                  {{"%k", c.inner(c.whole)},
                   {"%v", c.inner(c.whole)},
                   {"%w", c.inner(c.whole)},
                   {"%n", c.inner(c.whole)}}};
  HostTensor at = numbers(DType::I64, {}, [](int64_t) { return 8 + 5; });
  checkInPlace(text, {0, 1, 5, 6}, {{4, at}},
               {pagesBeside(2, 8, 5, 6),
                pagesBeside(2, 8, 5, 6),
                pagesBeside(2, 8, 0, 5),
                {}});
  // Who reads a new value finds it, made or left as it was.
  text.results.push_back({"%o", c.inner(c.whole)});
  checkInPlace(text, {0, 1, 5, 6, -1}, {{4, at}}, {});
}

/// One condition for all, as of an update that is left out.
TEST(KernelInPlace, AllOrNothing) {
  std::string type = "tensor<4096xf32>";
  for (bool isNew : {false, true})
    for (bool isTurned : {false, true}) {
      FusionText text{{"4096xf32", "4096xf32", "i1"},
                      std::string("%r = ax.select %c, ") +
                          (isTurned ? "%a, %b" : "%b, %a") + " : tensor<i1>, " +
                          type + ", " + type + " -> " + type,
                      {{"%r", "4096xf32"}}};
      HostTensor flag =
          numbers(DType::Bool, {}, [&](int64_t) { return isNew != isTurned; });
      checkInPlace(text, {0}, {{2, flag}}, {isNew ? Rows() : Rows{0, 1, 2, 3}});
    }
}

/// What is read for something else is not left out: of a running mean, of a
/// choice by what was there, and of one that is chosen from elsewhere.
TEST(KernelInPlace, OldElementsThatAreReadAreRight) {
  Cache c("f32", 4);
  std::string all = c.inner(c.whole);
  std::vector<std::pair<std::string, std::vector<int64_t>>> cases = {
      {c.select("%r", "%d", "%a", c.whole, "%b", c.whole) +
           "%s = ax.binary sub %b, %a : " + c.whole + ", " + c.whole + " -> " +
           c.whole,
       {0, -1}},
      {c.select("%r", "%d", "%a", c.whole, "%b", c.whole) +
           c.select("%s", "%d", "%a", c.whole, "%c", c.whole),
       {0, 2}},
      {c.select("%r", "%d", "%a", c.whole, "%c", c.whole) +
           c.select("%s", "%d", "%c", c.whole, "%b", c.whole),
       {0, 2}},
      {"%m = ax.binary add %a, %b : " + c.whole + ", " + c.whole + " -> " +
           c.whole + "\n" + c.select("%r", "%d", "%a", c.whole, "%m", c.whole) +
           c.select("%s", "%d", "%b", c.whole, "%c", c.whole),
       {0, 1}}};
  for (auto &[body, places] : cases)
    checkInPlace(
        {{all, all, all, "1x8x1xi1"}, body, {{"%r", all}, {"%s", all}}}, places,
        {}, {});
}

/// Choices of choices between old elements and others, by any conditions.
class RandomChoices {
public:
  explicit RandomChoices(unsigned seed) : random(seed) {
    const std::vector<int64_t> sizes = {1, 2, 3, 8, 16, 33};
    for (int64_t d = 0, e = 1 + below(4); d != e; ++d)
      whole.push_back(sizes[below(sizes.size())]);
    type = types[below(types.size())].first;
  }

  void run() {
    int64_t count = 1 + below(2);
    for (int64_t i = 0; i != count; ++i)
      addOperand(whole, type);
    std::vector<int64_t> places;
    for (int64_t i = 0; i != count; ++i) {
      // The first operands of it are whole, so it is.
      Choice one = choose(name(i), 3);
      text.results.push_back({one.name, print(whole, type)});
      places.push_back(i);
    }
    checkInPlace(text, places, {}, {});
  }

private:
  struct Choice {
    std::string name;
    Shape shape;
  };

  int64_t below(int64_t count) {
    return static_cast<int64_t>(random() % count);
  }
  static std::string name(size_t operand) {
    return std::string("%") + static_cast<char>('a' + operand);
  }
  static std::string print(const Shape &shape, const std::string &type) {
    std::string printed;
    for (int64_t size : shape)
      printed += std::to_string(size) + "x";
    return printed + type;
  }
  std::string addOperand(const Shape &shape, const std::string &type) {
    text.operands.push_back(print(shape, type));
    return name(text.operands.size() - 1);
  }
  Choice addPart(const std::string &type) {
    Shape part;
    for (int64_t size : whole)
      part.push_back(below(2) ? size : 1);
    return {addOperand(part, type), part};
  }

  /// Between `old` and what is chosen from, too, `depth` choices deep at most.
  Choice choose(const std::string &old, int64_t depth) {
    Choice condition = addPart("i1");
    Choice x{old, whole};
    Choice y = depth > 1 && below(2)   ? choose(old, depth - 1)
               : below(4) || depth < 3 ? addPart(type)
                                       : Choice{old, whole};
    if (below(2))
      std::swap(x, y);
    auto tensor = [](const std::string &printed) {
      return "tensor<" + printed + ">";
    };
    std::string made = "%s" + std::to_string(numChoices++);
    text.body += made + " = ax.select " + condition.name + ", " + x.name +
                 ", " + y.name + " : " + tensor(print(condition.shape, "i1")) +
                 ", " + tensor(print(x.shape, type)) + ", " +
                 tensor(print(y.shape, type)) + " -> " +
                 tensor(print(whole, type)) + "\n";
    return {made, whole};
  }

  std::mt19937 random;
  Shape whole;
  std::string type;
  FusionText text;
  int64_t numChoices = 0;
};

TEST(KernelInPlace, ChoicesAtRandom) {
  for (unsigned seed = 0; seed != 60; ++seed)
    RandomChoices(seed).run();
}

} // namespace
} // namespace ax::codegen

//===- KernelBench.cpp - Speed of typical kernels on one core -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelTestSupport.h"

#include "ax/Interpreter/Elements.h"
#include "ax/Runtime/CpuKernel.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace ax;
using namespace ax::codegen;

namespace {

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Of this thread: others may have the cores.
double cpuTime() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

struct Memory {
  explicit Memory(int64_t bytes)
      : data(std::aligned_alloc(64, (bytes + 127) / 64 * 64)) {}
  void *data;
};

/// `elements`: what the rate counts.
void measure(const char *name, const FusionText &text, int64_t elements) {
  auto module = parse(text);
  if (!module)
    return;
  FusionOp fusion = fusionOf(*module);
  double start = cpuTime();
  auto compiled = testCompiler().compile(fusion);
  double compile = cpuTime() - start;
  if (!compiled) {
    std::printf("%s: failed\n", name);
    return;
  }
  std::mt19937 random(1);
  std::vector<void *> buffers;
  int64_t bytes = 0;
  for (mlir::Type type : fusion.getOperandTypes()) {
    HostTensor tensor =
        randomTensor(llvm::cast<mlir::RankedTensorType>(type), random);
    buffers.push_back(Memory(tensor.numBytes()).data);
    std::memcpy(buffers.back(), tensor.data(), tensor.numBytes());
    bytes += tensor.numBytes();
  }
  for (mlir::Type type : fusion.getResultTypes()) {
    auto tensor = llvm::cast<mlir::RankedTensorType>(type);
    int64_t size = tensor.getNumElements() *
                   byteSize(*interpreter::toDType(tensor.getElementType()));
    buffers.push_back(Memory(size).data);
    bytes += size;
  }
  const KernelSignature &signature = compiled->signature;
  if (signature.scratchBytes > 0)
    buffers.push_back(Memory(signature.scratchBytes).data);
  double best = 1e9;
  double until = now() + 0.15;
  auto loaded = llvm::cantFail(rt::loadCpuKernel(*compiled->image));
  while (now() < until) {
    double t = now();
    for (int i = 0; i != 4; ++i)
      loaded->getFunction()(buffers.data(), nullptr, 0, signature.outerCount);
    best = std::min(best, (now() - t) / 4);
  }
  std::printf("%-28s %9.2f us  %6.2f G elements/s  %6.1f GB/s  outer %-7ld "
              "scratch %-6ld compile %5.1f ms\n",
              name, best * 1e6, elements / best * 1e-9, bytes / best * 1e-9,
              long(signature.outerCount), long(signature.scratchBytes),
              compile * 1e3);
}

void measureUnary(const char *kind, const char *shape, int64_t elements,
                  const char *type = "f32") {
  std::string t = std::string(shape) + "x" + type;
  measure((std::string(kind) + " " + t).c_str(),
          {{t},
           std::string("%r = ax.unary ") + kind + " %a : tensor<" + t +
               "> -> tensor<" + t + ">",
           {{"%r", t}}},
          elements);
}

} // namespace

int main() {
  measureUnary("gelu", "128x512", 128 * 512); // the first also warms up
  for (const char *kind : {"gelu", "gelu_tanh", "silu", "exp", "tanh", "erf",
                           "log", "sqrt", "relu", "sin", "softplus"})
    measureUnary(kind, "128x512", 128 * 512);
  measureUnary("gelu", "128x512", 128 * 512, "bf16");
  measureUnary("gelu", "128x512", 128 * 512, "f16");
  measure("softmax 8x128x128",
          {{"8x128x128xf32"},
           "%r = ax.softmax %a dim 2 : tensor<8x128x128xf32> -> "
           "tensor<8x128x128xf32>",
           {{"%r", "8x128x128xf32"}}},
          8 * 128 * 128);
  measure("softmax masked",
          {{"8x128x128xf32", "128x128xi1"},
           R"(%c = ax.constant dense<0.125> : tensor<f32> -> tensor<f32>
              %n = ax.constant dense<-1.0e9> : tensor<f32> -> tensor<f32>
              %s = ax.binary mul %a, %c : tensor<8x128x128xf32>, tensor<f32> -> tensor<8x128x128xf32>
              %m = ax.select %b, %s, %n : tensor<128x128xi1>, tensor<8x128x128xf32>, tensor<f32> -> tensor<8x128x128xf32>
              %r = ax.softmax %m dim 2 : tensor<8x128x128xf32> -> tensor<8x128x128xf32>)",
           {{"%r", "8x128x128xf32"}}},
          8 * 128 * 128);
  measure("softmax 1x8192",
          {{"16x8192xf32"},
           "%r = ax.softmax %a dim 1 : tensor<16x8192xf32> -> "
           "tensor<16x8192xf32>",
           {{"%r", "16x8192xf32"}}},
          16 * 8192);
  measure("softmax dim 1",
          {{"8x128x128xf32"},
           "%r = ax.softmax %a dim 1 : tensor<8x128x128xf32> -> "
           "tensor<8x128x128xf32>",
           {{"%r", "8x128x128xf32"}}},
          8 * 128 * 128);
  for (const char *n : {"512", "768", "300"}) {
    std::string t = std::string("128x") + n + "xf32",
                v = std::string(n) + "xf32";
    measure((std::string("layer_norm ") + n).c_str(),
            {{t, v, v},
             "%r = ax.layer_norm %a scale %b : tensor<" + v +
                 "> bias %c : tensor<" + v +
                 "> axis 1 epsilon 1.0e-5 : tensor<" + t + "> -> tensor<" + t +
                 ">",
             {{"%r", t}}},
            128 * std::atol(n));
  }
  measure(
      "add + layer_norm 512",
      {{"128x512xf32", "128x512xf32", "512xf32", "512xf32"},
       R"(%x = ax.binary add %a, %b : tensor<128x512xf32>, tensor<128x512xf32> -> tensor<128x512xf32>
              %r = ax.layer_norm %x scale %c : tensor<512xf32> bias %d : tensor<512xf32> axis 1 epsilon 1.0e-5 : tensor<128x512xf32> -> tensor<128x512xf32>)",
       {{"%x", "128x512xf32"}, {"%r", "128x512xf32"}}},
      128 * 512);
  measure("bias add",
          {{"128x512xf32", "512xf32"},
           "%r = ax.binary add %a, %b : tensor<128x512xf32>, tensor<512xf32> "
           "-> tensor<128x512xf32>",
           {{"%r", "128x512xf32"}}},
          128 * 512);
  measure("reduce dim 0",
          {{"128x512xf32"},
           "%r = ax.reduce sum %a dims [0] : tensor<128x512xf32> -> "
           "tensor<512xf32>",
           {{"%r", "512xf32"}}},
          128 * 512);
  measure("reduce all",
          {{"128x512xf32"},
           "%r = ax.reduce sum %a dims [0, 1] : tensor<128x512xf32> -> "
           "tensor<f32>",
           {{"%r", "f32"}}},
          128 * 512);
  measure(
      "split heads",
      {{"1x128x1536xf32"},
       R"(%s = ax.slice %a starts [0, 0, 512] steps [1, 1, 1] : tensor<1x128x1536xf32> -> tensor<1x128x512xf32>
              %h = ax.reshape %s : tensor<1x128x512xf32> -> tensor<1x128x8x64xf32>
              %t = ax.transpose %h [0, 2, 1, 3] : tensor<1x128x8x64xf32> -> tensor<1x8x128x64xf32>)",
       {{"%t", "1x8x128x64xf32"}}},
      128 * 512);
  measure("transpose last two",
          {{"8x128x64xf32"},
           "%r = ax.transpose %a [0, 2, 1] : tensor<8x128x64xf32> -> "
           "tensor<8x64x128xf32>",
           {{"%r", "8x64x128xf32"}}},
          128 * 512);
  measure(
      "rotary",
      {{"1x8x128x64xf32", "128x64xf32", "128x64xf32"},
       R"(%x1 = ax.slice %a starts [0, 0, 0, 0] steps [1, 1, 1, 1] : tensor<1x8x128x64xf32> -> tensor<1x8x128x32xf32>
              %x2 = ax.slice %a starts [0, 0, 0, 32] steps [1, 1, 1, 1] : tensor<1x8x128x64xf32> -> tensor<1x8x128x32xf32>
              %n = ax.unary neg %x2 : tensor<1x8x128x32xf32> -> tensor<1x8x128x32xf32>
              %k = ax.concat %n, %x1 dim 3 : tensor<1x8x128x32xf32>, tensor<1x8x128x32xf32> -> tensor<1x8x128x64xf32>
              %p = ax.binary mul %k, %b : tensor<1x8x128x64xf32>, tensor<128x64xf32> -> tensor<1x8x128x64xf32>
              %q = ax.binary mul %a, %c : tensor<1x8x128x64xf32>, tensor<128x64xf32> -> tensor<1x8x128x64xf32>
              %r = ax.binary add %q, %p : tensor<1x8x128x64xf32>, tensor<1x8x128x64xf32> -> tensor<1x8x128x64xf32>)",
       {{"%r", "1x8x128x64xf32"}}},
      128 * 512);
  measure(
      "embedding",
      {{"8192x512xf32", "1x128xi64", "128x512xf32"},
       R"(%g = ax.gather %a[%b] axis 0 : tensor<8192x512xf32>, tensor<1x128xi64> -> tensor<1x128x512xf32>
              %r = ax.binary add %g, %c : tensor<1x128x512xf32>, tensor<128x512xf32> -> tensor<1x128x512xf32>)",
       {{"%r", "1x128x512xf32"}}},
      128 * 512);
  measure(
      "argmax 8x8192",
      {{"8x8192xf32"},
       "%r = ax.arg_reduce %a dim 1 : tensor<8x8192xf32> -> tensor<8x1xi64>",
       {{"%r", "8x1xi64"}}},
      8 * 8192);
}

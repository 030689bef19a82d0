//===- CpuKernelTest.cpp - Images of kernels ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelImage.h"

#include "ax/Support/Error.h"

#include "gtest/gtest.h"

#include <cstring>
#include <elf.h>

using namespace ax;
using namespace ax::rt;

namespace {

/// *buffers[1] = exp2(3 * *buffers[0]), of f64.
KernelImage powerImage() {
  KernelImage image;
  image.code = {
      0x53,                               // push %rbx
      0x48, 0x8B, 0x5F, 0x08,             // mov 8(%rdi), %rbx
      0x48, 0x8B, 0x07,                   // mov (%rdi), %rax
      0xF2, 0x0F, 0x10, 0x00,             // movsd (%rax), %xmm0
      0xF2, 0x0F, 0x59, 0x05, 0, 0, 0, 0, // mulsd constant(%rip), %xmm0
      0xE8, 0,    0,    0,    0,          // call exp2
      0xF2, 0x0F, 0x11, 0x03,             // movsd %xmm0, (%rbx)
      0x5B,                               // pop %rbx
      0xC3,                               // ret
  };
  double three = 3;
  image.constants.resize(sizeof(three));
  std::memcpy(image.constants.data(), &three, sizeof(three));
  image.calls = {"exp2"};
  image.relocations = {{16, R_X86_64_PC32, 0, -4}, {21, R_X86_64_PLT32, 1, -4}};
  return image;
}

Kernel kernelOf(const KernelImage &image) {
  Kernel kernel;
  kernel.name = "k";
  kernel.format = kernelFormat::elfX86;
  kernel.entry = "entry";
  kernel.image = image.write();
  return kernel;
}

double run(CpuKernelFn function, double x) {
  double y = 0;
  void *const buffers[] = {&x, &y};
  function(buffers, nullptr, 0, 1);
  return y;
}

std::string failureOf(const Kernel &kernel, ExitCode code = ExitCode::BadPlan) {
  auto loaded = loadCpuKernel(kernel);
  if (loaded)
    return "it is loaded";
  ErrorDescription description = describeError(loaded.takeError());
  EXPECT_EQ(description.code, code);
  return description.message;
}

std::string failureOf(const KernelImage &image) {
  return failureOf(kernelOf(image));
}

TEST(CpuKernelTest, ConstantsAndCalls) {
  auto loaded = llvm::cantFail(loadCpuKernel(kernelOf(powerImage())));
  EXPECT_EQ(run(loaded->getFunction(), 2), 64);
  // The same with the function's address read, not called by a jump: call
  // *exp2(%rip); and a constant by its address.
  KernelImage other = powerImage();
  std::vector<uint8_t> &code = other.code;
  code.erase(code.begin() + 20);
  code.insert(code.begin() + 20, {0xFF, 0x15});
  other.relocations[1] = {22, R_X86_64_GOTPCRELX, 1, -4};
  other.relocations.push_back({code.size(), R_X86_64_64, 0, 0});
  code.resize(code.size() + 8);
  loaded = llvm::cantFail(loadCpuKernel(kernelOf(other)));
  EXPECT_EQ(run(loaded->getFunction(), 3), 512);
  const double *constant;
  std::memcpy(&constant,
              reinterpret_cast<const uint8_t *>(loaded->getFunction()) +
                  code.size() - 8,
              sizeof(constant));
  EXPECT_EQ(*constant, 3);
}

TEST(CpuKernelTest, EqualImagesAreLoadedOnce) {
  Kernel kernel = kernelOf(powerImage()), same = kernel;
  same.name = "another name";
  auto loaded = llvm::cantFail(loadCpuKernel(kernel));
  EXPECT_EQ(llvm::cantFail(loadCpuKernel(same)), loaded);
  // By content, whatever the key says.
  KernelImage image = powerImage();
  image.constants[6] ^= 1;
  Kernel differs = kernelOf(image);
  differs.key = kernel.key;
  auto other = llvm::cantFail(loadCpuKernel(differs));
  EXPECT_NE(run(other->getFunction(), 2), 64);
  // Unloaded with the last who has it, and loaded again.
  std::weak_ptr<const LoadedKernel> watched = loaded;
  loaded.reset();
  EXPECT_TRUE(watched.expired());
  loaded = llvm::cantFail(loadCpuKernel(kernel));
  EXPECT_EQ(run(loaded->getFunction(), 2), 64);
}

TEST(CpuKernelTest, OtherFormatsAndFunctionsAreRefused) {
  Kernel kernel = kernelOf(powerImage());
  kernel.format = "ptx";
  EXPECT_EQ(failureOf(kernel, ExitCode::Unsupported),
            "kernel 'k' is ptx, and this device loads elf-x86-64");
  KernelImage image = powerImage();
  image.calls = {"system"};
  EXPECT_EQ(failureOf(image),
            "kernel 'k': it calls 'system', which this device does not have");
}

/// What is wrong with an image, and how the message says it.
TEST(CpuKernelTest, ImagesThatCannotBeRunAreRefused) {
  auto expect = [](const char *says, auto &&change) {
    KernelImage image = powerImage();
    change(image);
    EXPECT_EQ(failureOf(image),
              std::string("kernel 'k': its object file is damaged: ") + says);
  };
  expect("it has no function 'entry'",
         [](KernelImage &image) { image.entry = "other"; });
  expect("it is too large",
         [](KernelImage &image) { image.constants.resize(16 << 20); });
  expect("it is too large", [](KernelImage &image) {
    image.constants.resize((16 << 20) - 64);
    image.calls.resize(8, "exp2");
  });
  expect("a relocation is outside of its section",
         [](KernelImage &image) { image.relocations[0].offset = 28; });
  expect("a relocation is to no symbol",
         [](KernelImage &image) { image.relocations[1].symbol = 2; });
  expect("a relocation is too far", [](KernelImage &image) {
    image.relocations[0].addend = int64_t(1) << 40;
  });
  expect("a relocation is of kind 10",
         [](KernelImage &image) { image.relocations[0].type = R_X86_64_32; });
  expect("a relocation is of kind 9", [](KernelImage &image) {
    image.relocations[0].type = R_X86_64_GOTPCREL;
  });

  // Of the file itself: section headers are at its end.
  auto set = [](const char *says, size_t section, size_t field, size_t bytes,
                uint64_t value) {
    Kernel kernel = kernelOf(powerImage());
    constexpr size_t numSections = 6;
    size_t at = kernel.image.size() -
                (numSections - section) * sizeof(Elf64_Shdr) + field;
    std::memcpy(kernel.image.data() + at, &value, bytes);
    EXPECT_EQ(failureOf(kernel),
              std::string("kernel 'k': its object file is damaged: ") + says);
  };
  constexpr size_t code = 1, constants = 2, relocations = 3, symbols = 4,
                   names = 5;
#define AX_FIELD(name) offsetof(Elf64_Shdr, name), sizeof(Elf64_Shdr::name)
  set("a section is neither code nor constants", constants, AX_FIELD(sh_flags),
      SHF_ALLOC | SHF_WRITE);
  set("a section is neither code nor constants", constants, AX_FIELD(sh_type),
      SHT_NOBITS);
  set("a section cannot be aligned", code, AX_FIELD(sh_addralign), 24);
  set("a section cannot be aligned", code, AX_FIELD(sh_addralign), 1 << 20);
  set("a section is cut off", code, AX_FIELD(sh_offset), UINT64_MAX - 3);
  set("a section is cut off", code, AX_FIELD(sh_size), 1 << 20);
  set("symbols are missing", symbols, AX_FIELD(sh_entsize), 23);
  set("symbols are missing", symbols, AX_FIELD(sh_link), 17);
  set("symbols are missing", symbols, AX_FIELD(sh_size), 1 << 20);
  set("symbols are missing", names, AX_FIELD(sh_offset), 1 << 20);
  set("a symbol has no name", names, AX_FIELD(sh_size), 2);
  set("it has two tables of symbols", names, AX_FIELD(sh_type), SHT_SYMTAB);
  set("relocations are of no section", relocations, AX_FIELD(sh_info), 17);
  set("relocations are missing", relocations, AX_FIELD(sh_type), SHT_REL);
  set("relocations are missing", relocations, AX_FIELD(sh_link), code);
  set("relocations are missing", relocations, AX_FIELD(sh_size), 1 << 20);
  set("a relocation is to what is not loaded", constants, AX_FIELD(sh_flags),
      0);
#undef AX_FIELD
  Kernel kernel = kernelOf(powerImage());
  kernel.image[0] ^= 1;
  EXPECT_EQ(failureOf(kernel), "kernel 'k': its object file is damaged: it is "
                               "none for x86-64");
  kernel = kernelOf(powerImage());
  kernel.image.pop_back();
  EXPECT_EQ(failureOf(kernel),
            "kernel 'k': its object file is damaged: sections are missing");
}

/// Whatever is in it, an image is loaded or refused; nothing of it is called.
TEST(CpuKernelTest, DamagedImagesDoNoHarm) {
  const Kernel whole = kernelOf(powerImage());
  int64_t refused = 0;
  auto tryIt = [&](const Kernel &kernel) {
    auto loaded = loadCpuKernel(kernel);
    refused += !loaded;
    llvm::consumeError(loaded.takeError());
  };
  for (size_t i = 0; i < whole.image.size(); ++i) {
    for (unsigned change :
         {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF}) {
      Kernel kernel = whole;
      kernel.image[i] ^= static_cast<uint8_t>(change);
      tryIt(kernel);
    }
    Kernel kernel = whole;
    kernel.image.resize(i);
    tryIt(kernel);
    EXPECT_EQ(failureOf(kernel).rfind("kernel 'k': its object file", 0), 0u);
  }
  EXPECT_GT(refused, static_cast<int64_t>(whole.image.size()));
}

} // namespace

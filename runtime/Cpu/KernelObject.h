//===- KernelObject.h - Relocatable object files of kernels -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_KERNELOBJECT_H
#define AX_RUNTIME_KERNELOBJECT_H

#include "ax/Runtime/CpuKernel.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <elf.h>
#include <string>
#include <vector>

namespace ax::rt {

/// An object file for x86-64 in which nothing is to be written, as the kernel
/// compiler makes them. Whatever its bytes are, it reads none behind them, and
/// `link` writes none behind getSize(). It must not outlive the bytes.
class KernelObject {
public:
  /// A BadPlan error says what is wrong with the bytes, or what they call that
  /// `functions` does not have.
  static llvm::Expected<KernelObject> parse(llvm::ArrayRef<uint8_t> bytes,
                                            llvm::StringRef entry,
                                            FindFunction functions);

  /// Returns the bytes of what is loaded: sections one after another, then
  /// calls to the outside.
  uint64_t getSize() const { return size; }
  /// Where the function `entry` begins in it.
  uint64_t getEntry() const { return entry; }
  /// Makes it what is to be at `to`, aligned to a page.
  llvm::Error link(uint8_t *to) const;

private:
  struct Section {
    Elf64_Shdr header;
    /// Where it is loaded; nowhere: -1.
    int64_t place = -1;
  };
  struct Symbol {
    llvm::StringRef name;
    uint16_t section = 0;
    uint64_t value = 0;
    /// Where the address of a symbol that is not in the object, and then a jump
    /// to it, is loaded.
    int64_t stub = -1;
    const void *address = nullptr;
  };

  explicit KernelObject(llvm::ArrayRef<uint8_t> bytes) : bytes(bytes) {}
  llvm::Error readSections();
  llvm::Error placeSections();
  llvm::Error readSymbols(FindFunction functions);
  llvm::Error findEntry(llvm::StringRef name);
  llvm::Error relocate(const Section &relocations, uint8_t *to) const;
  llvm::Error relocate(const Section &target, const Elf64_Rela &relocation,
                       uint8_t *to) const;
  /// Reads what is at a place; nothing where it would be behind the end.
  template <typename T>
  bool read(uint64_t at, T &value) const;
  bool isInside(const Elf64_Shdr &section) const;

  llvm::ArrayRef<uint8_t> bytes;
  std::vector<Section> sections;
  std::vector<Symbol> symbols;
  uint64_t size = 0, entry = 0;
};

} // namespace ax::rt

#endif // AX_RUNTIME_KERNELOBJECT_H

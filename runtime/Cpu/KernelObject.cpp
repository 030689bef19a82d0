//===- KernelObject.cpp - Relocatable object files of kernels -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ELF format for x86-64, as far as code without data of its own uses it:
// what is not known here is an error, not passed over.
//
//===----------------------------------------------------------------------===//
#include "KernelObject.h"

#include "ax/Support/Error.h"

#include "llvm/Support/MathExtras.h"

#include <cstring>

namespace ax::rt {

namespace {

/// More is no kernel.
constexpr uint64_t mostBytes = 16 << 20;
constexpr uint64_t pageBytes = 4096;
/// An address and `jmp *address`, filled up to a multiple of 8 bytes.
constexpr uint64_t stubBytes = 16, stubAddressBytes = 8;
/// int3: what is between functions is not to be run.
constexpr int filler = 0xCC;

llvm::Error damaged(const llvm::Twine &what) {
  return makeError(ExitCode::BadPlan, "its object file is damaged: " + what);
}

/// Tables by which others unwind the stack: no errors go through kernels.
bool isUnwinding(const Elf64_Shdr &section) {
  return section.sh_type == SHT_X86_64_UNWIND;
}

} // namespace

template <typename T>
bool KernelObject::read(uint64_t at, T &value) const {
  if (at > bytes.size() || bytes.size() - at < sizeof(T))
    return false;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return true;
}

bool KernelObject::isInside(const Elf64_Shdr &section) const {
  return section.sh_offset <= bytes.size() &&
         section.sh_size <= bytes.size() - section.sh_offset;
}

llvm::Expected<KernelObject> KernelObject::parse(llvm::ArrayRef<uint8_t> bytes,
                                                 llvm::StringRef entry,
                                                 FindFunction functions) {
  KernelObject object(bytes);
  if (llvm::Error error = object.readSections())
    return error;
  if (llvm::Error error = object.placeSections())
    return error;
  if (llvm::Error error = object.readSymbols(functions))
    return error;
  if (llvm::Error error = object.findEntry(entry))
    return error;
  return object;
}

llvm::Error KernelObject::readSections() {
  Elf64_Ehdr header;
  if (!read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_type != ET_REL ||
      header.e_machine != EM_X86_64 || header.e_shentsize != sizeof(Elf64_Shdr))
    return damaged("it is none for x86-64");
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Section &section = sections.emplace_back();
    uint64_t at = i * sizeof(Elf64_Shdr);
    if (header.e_shoff > bytes.size() ||
        !read(header.e_shoff + at, section.header))
      return damaged("sections are missing");
  }
  return llvm::Error::success();
}

/// Code and constants; nothing is left where a section is to be written, or is
/// of another kind.
llvm::Error KernelObject::placeSections() {
  for (Section &section : sections) {
    const Elf64_Shdr &header = section.header;
    if (!(header.sh_flags & SHF_ALLOC) || isUnwinding(header) ||
        header.sh_size == 0)
      continue;
    if (header.sh_type != SHT_PROGBITS ||
        (header.sh_flags &
         ~uint64_t(SHF_ALLOC | SHF_EXECINSTR | SHF_MERGE | SHF_STRINGS)) != 0)
      return damaged("a section is neither code nor constants");
    uint64_t alignment = std::max<uint64_t>(1, header.sh_addralign);
    if (!llvm::isPowerOf2_64(alignment) || alignment > pageBytes)
      return damaged("a section cannot be aligned");
    if (!isInside(header))
      return damaged("a section is cut off");
    size = llvm::alignTo(size, alignment);
    section.place = static_cast<int64_t>(size);
    size += header.sh_size;
    if (size > mostBytes)
      return damaged("it is too large");
  }
  return llvm::Error::success();
}

llvm::Error KernelObject::readSymbols(FindFunction functions) {
  for (const Section &section : sections) {
    const Elf64_Shdr &header = section.header;
    if (header.sh_type != SHT_SYMTAB)
      continue;
    if (!symbols.empty())
      return damaged("it has two tables of symbols");
    if (header.sh_entsize != sizeof(Elf64_Sym) || !isInside(header) ||
        header.sh_link >= sections.size() ||
        !isInside(sections[header.sh_link].header))
      return damaged("symbols are missing");
    const Elf64_Shdr &names = sections[header.sh_link].header;
    llvm::StringRef text(reinterpret_cast<const char *>(bytes.data()) +
                             names.sh_offset,
                         names.sh_size);
    size = llvm::alignTo(size, stubAddressBytes);
    for (uint64_t i = 0; i < header.sh_size / sizeof(Elf64_Sym); ++i) {
      Elf64_Sym read;
      std::memcpy(&read, bytes.data() + header.sh_offset + i * sizeof(read),
                  sizeof(read));
      size_t end = text.find('\0', read.st_name);
      if (end == llvm::StringRef::npos)
        return damaged("a symbol has no name");
      Symbol &symbol = symbols.emplace_back();
      symbol.name = text.slice(read.st_name, end);
      symbol.section = read.st_shndx;
      symbol.value = read.st_value;
      if (i == 0 || read.st_shndx != SHN_UNDEF)
        continue;
      symbol.address = functions(symbol.name);
      if (!symbol.address)
        return makeErrorf(ExitCode::BadPlan,
                          "it calls '{0}', which this device does not have",
                          symbol.name);
      symbol.stub = static_cast<int64_t>(size);
      size += stubBytes;
      if (size > mostBytes)
        return damaged("it is too large");
    }
  }
  return llvm::Error::success();
}

llvm::Error KernelObject::findEntry(llvm::StringRef name) {
  for (const Symbol &symbol : symbols) {
    if (symbol.name != name || symbol.section == SHN_UNDEF ||
        symbol.section >= sections.size())
      continue;
    const Section &section = sections[symbol.section];
    if (section.place < 0 || !(section.header.sh_flags & SHF_EXECINSTR) ||
        symbol.value >= section.header.sh_size)
      continue;
    entry = static_cast<uint64_t>(section.place) + symbol.value;
    return llvm::Error::success();
  }
  return damaged("it has no function '" + name + "'");
}

llvm::Error KernelObject::link(uint8_t *to) const {
  std::memset(to, filler, size);
  for (const Section &section : sections)
    if (section.place >= 0)
      std::memcpy(to + section.place, bytes.data() + section.header.sh_offset,
                  section.header.sh_size);
  for (const Symbol &symbol : symbols) {
    if (symbol.stub < 0)
      continue;
    uint8_t *stub = to + symbol.stub;
    std::memcpy(stub, &symbol.address, sizeof(symbol.address));
    // jmp *-14(%rip)
    constexpr uint8_t jump[] = {0xFF, 0x25, 0xF2, 0xFF, 0xFF, 0xFF};
    std::memcpy(stub + stubAddressBytes, jump, sizeof(jump));
  }
  for (const Section &section : sections)
    if (section.header.sh_type == SHT_RELA || section.header.sh_type == SHT_REL)
      if (llvm::Error error = relocate(section, to))
        return error;
  return llvm::Error::success();
}

llvm::Error KernelObject::relocate(const Section &relocations,
                                   uint8_t *to) const {
  const Elf64_Shdr &header = relocations.header;
  if (header.sh_info >= sections.size())
    return damaged("relocations are of no section");
  const Section &target = sections[header.sh_info];
  if (target.place < 0)
    return llvm::Error::success();
  if (header.sh_type != SHT_RELA || header.sh_entsize != sizeof(Elf64_Rela) ||
      !isInside(header) || header.sh_link >= sections.size() ||
      sections[header.sh_link].header.sh_type != SHT_SYMTAB)
    return damaged("relocations are missing");
  for (uint64_t i = 0; i < header.sh_size / sizeof(Elf64_Rela); ++i) {
    Elf64_Rela relocation;
    std::memcpy(&relocation,
                bytes.data() + header.sh_offset + i * sizeof(relocation),
                sizeof(relocation));
    if (llvm::Error error = relocate(target, relocation, to))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error KernelObject::relocate(const Section &target,
                                   const Elf64_Rela &relocation,
                                   uint8_t *to) const {
  uint64_t number = ELF64_R_SYM(relocation.r_info);
  if (number == 0 || number >= symbols.size())
    return damaged("a relocation is to no symbol");
  const Symbol &symbol = symbols[number];
  uint64_t type = ELF64_R_TYPE(relocation.r_info);
  bool isAbsolute = type == R_X86_64_64;
  uint64_t width = isAbsolute ? 8 : 4;
  if (relocation.r_offset > target.header.sh_size ||
      target.header.sh_size - relocation.r_offset < width)
    return damaged("a relocation is outside of its section");
  // Where the symbol is loaded.
  int64_t place = -1;
  if (symbol.stub >= 0)
    place = symbol.stub + static_cast<int64_t>(stubAddressBytes);
  else if (symbol.section < sections.size() &&
           sections[symbol.section].place >= 0 &&
           symbol.value <= sections[symbol.section].header.sh_size)
    place = sections[symbol.section].place + static_cast<int64_t>(symbol.value);
  if (place < 0)
    return damaged("a relocation is to what is not loaded");
  if (relocation.r_addend > static_cast<int64_t>(mostBytes) ||
      relocation.r_addend < -static_cast<int64_t>(mostBytes))
    return damaged("a relocation is too far");
  place += relocation.r_addend;
  uint64_t at = static_cast<uint64_t>(target.place) + relocation.r_offset;
  switch (type) {
  case R_X86_64_64: {
    uint64_t value =
        reinterpret_cast<uintptr_t>(to) + static_cast<uint64_t>(place);
    std::memcpy(to + at, &value, sizeof(value));
    return llvm::Error::success();
  }
  case R_X86_64_GOTPCREL:
  case R_X86_64_GOTPCRELX:
  case R_X86_64_REX_GOTPCRELX:
    // The address itself is read.
    if (symbol.stub < 0)
      break;
    place -= static_cast<int64_t>(stubAddressBytes);
    [[fallthrough]];
  case R_X86_64_PC32:
  case R_X86_64_PLT32: {
    auto value = static_cast<int32_t>(place - static_cast<int64_t>(at));
    std::memcpy(to + at, &value, sizeof(value));
    return llvm::Error::success();
  }
  default:
    break;
  }
  return damaged("a relocation is of kind " + llvm::Twine(type));
}

} // namespace ax::rt

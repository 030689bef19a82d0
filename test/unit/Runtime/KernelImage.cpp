//===- KernelImage.cpp - Small object files for tests ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelImage.h"

#include <cstring>
#include <elf.h>

namespace ax::rt {

namespace {

enum SectionNumber : uint16_t {
  None,
  Code,
  Constants,
  Relocations,
  Symbols,
  Names,
  NumSections
};

template <typename T>
void append(std::vector<uint8_t> &bytes, const T &value) {
  const auto *from = reinterpret_cast<const uint8_t *>(&value);
  bytes.insert(bytes.end(), from, from + sizeof(value));
}

Elf64_Shdr sectionOf(uint32_t type, uint64_t flags, uint64_t alignment,
                     uint64_t entryBytes = 0, uint32_t link = 0,
                     uint32_t info = 0) {
  Elf64_Shdr section = {};
  section.sh_type = type;
  section.sh_flags = flags;
  section.sh_addralign = alignment;
  section.sh_entsize = entryBytes;
  section.sh_link = link;
  section.sh_info = info;
  return section;
}

Elf64_Sym symbolOf(uint32_t name, unsigned char bind, unsigned char type,
                   uint16_t section) {
  Elf64_Sym symbol = {};
  symbol.st_name = name;
  symbol.st_info = ELF64_ST_INFO(bind, type);
  symbol.st_shndx = section;
  return symbol;
}

} // namespace

std::vector<uint8_t> KernelImage::write() const {
  std::vector<uint8_t> names(1), symbols, table;
  auto addName = [&](const std::string &name) {
    auto at = static_cast<uint32_t>(names.size());
    names.insert(names.end(), name.begin(), name.end());
    names.push_back(0);
    return at;
  };
  append(symbols, Elf64_Sym{});
  append(symbols, symbolOf(0, STB_LOCAL, STT_SECTION, Constants));
  append(symbols, symbolOf(addName(entry), STB_GLOBAL, STT_FUNC, Code));
  for (const std::string &call : calls)
    append(symbols, symbolOf(addName(call), STB_GLOBAL, STT_NOTYPE, SHN_UNDEF));
  for (const Relocation &from : relocations)
    append(table, Elf64_Rela{from.offset,
                             ELF64_R_INFO(from.symbol ? from.symbol + 2 : 1,
                                          from.type),
                             from.addend});

  std::vector<uint8_t> bytes(sizeof(Elf64_Ehdr));
  std::vector<Elf64_Shdr> sections(NumSections);
  sections[Code] = sectionOf(SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 16);
  sections[Constants] = sectionOf(SHT_PROGBITS, SHF_ALLOC | SHF_MERGE, 8, 8);
  sections[Relocations] =
      sectionOf(SHT_RELA, SHF_INFO_LINK, 8, sizeof(Elf64_Rela), Symbols, Code);
  sections[Symbols] = sectionOf(SHT_SYMTAB, 0, 8, sizeof(Elf64_Sym), Names, 2);
  sections[Names] = sectionOf(SHT_STRTAB, 0, 1);
  auto place = [&](SectionNumber number, const std::vector<uint8_t> &content) {
    sections[number].sh_offset = bytes.size();
    sections[number].sh_size = content.size();
    bytes.insert(bytes.end(), content.begin(), content.end());
  };
  place(Code, code);
  place(Constants, constants);
  place(Relocations, table);
  place(Symbols, symbols);
  place(Names, names);

  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof(header);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = NumSections;
  header.e_shoff = bytes.size();
  std::memcpy(bytes.data(), &header, sizeof(header));
  for (const Elf64_Shdr &section : sections)
    append(bytes, section);
  return bytes;
}

Kernel makeKernel(const std::string &name, CpuKernelFn function) {
  KernelImage image;
  // movabs $function, %rax; jmp *%rax
  image.code = {0x48, 0xB8};
  append(image.code, function);
  image.code.insert(image.code.end(), {0xFF, 0xE0});
  Kernel kernel;
  kernel.name = name;
  kernel.format = kernelFormat::elfX86;
  kernel.entry = image.entry;
  kernel.image = image.write();
  return kernel;
}

} // namespace ax::rt

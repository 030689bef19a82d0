//===- Module.cpp - Images that the simulated driver loads ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Module.h"

#include <cstring>
#include <elf.h>
#include <sys/uio.h>
#include <unistd.h>

namespace simgpu {

/// More is no kernel.
static constexpr uint64_t mostBytes = 16 << 20;

/// The newest version of PTX that a driver takes, by the driver's.
static unsigned newestPtx(uint64_t driver) {
  constexpr std::pair<uint64_t, unsigned> versions[] = {
      {13000, 90}, {12090, 88}, {12080, 87}, {12070, 86}, {12050, 85},
      {12040, 84}, {12030, 83}, {12020, 82}, {12010, 81}, {12000, 80}};
  for (auto [since, newest] : versions)
    if (driver >= since)
      return newest;
  return 0;
}

static std::string toText(unsigned version) {
  return std::to_string(version / 10) + "." + std::to_string(version % 10);
}

static CUresult checkText(const PtxText &text, const Settings &settings,
                          int card, std::string &why) {
  uint64_t capability = settings.capabilityOf(card);
  if (text.version > newestPtx(settings.driver)) {
    why = "it is of version " + toText(text.version) + ", and a driver " +
          std::to_string(settings.driver) + " takes up to " +
          toText(newestPtx(settings.driver));
    return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  }
  if (text.isForOneCard ? text.capability != capability
                        : text.capability > capability) {
    why = "it is for sm_" + std::to_string(text.capability) +
          ", and the card is an sm_" + std::to_string(capability);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  return CUDA_SUCCESS;
}

/// Reads what may be no memory.
static bool readMemory(const char *from, void *to, size_t bytes) {
  iovec local = {to, bytes}, remote = {const_cast<char *>(from), bytes};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) ==
         static_cast<ssize_t>(bytes);
}

/// Puts the object at `from` behind what there is: objects end with the table
/// of their sections.
static CUresult appendObject(const char *from, std::vector<uint8_t> &image,
                             std::string &why) {
  Elf64_Ehdr header;
  if (!readMemory(from, &header, sizeof(header)) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    why = "there is no object behind the text, which is for real cards: one "
          "for sm_N+sim has an object";
    return CUDA_ERROR_INVALID_PTX;
  }
  uint64_t bytes = uint64_t(header.e_shnum) * header.e_shentsize;
  bytes += std::min(header.e_shoff, mostBytes);
  size_t begin = image.size();
  image.resize(begin + bytes);
  if (bytes > mostBytes || !readMemory(from, image.data() + begin, bytes)) {
    why = "its object file is damaged: it is not all there";
    return CUDA_ERROR_INVALID_IMAGE;
  }
  return CUDA_SUCCESS;
}

CUresult loadImage(const char *image, const Settings &settings, int card,
                   std::vector<Function> &functions, std::string &why) {
  PtxText text;
  why = text.read(image);
  if (!why.empty())
    return CUDA_ERROR_INVALID_PTX;
  if (CUresult result = checkText(text, settings, card, why))
    return result;
  const char *behind = image + std::strlen(image) + 1;
  std::vector<uint8_t> all(image, behind);
  if (CUresult result = appendObject(behind, all, why))
    return result;
  for (const PtxEntry &entry : text.entries) {
    auto grid = ax::SimulatedGrid::load(all, entry.name);
    if (!grid) {
      why = llvm::toString(grid.takeError());
      return CUDA_ERROR_INVALID_IMAGE;
    }
    functions.push_back({entry, std::move(*grid)});
  }
  return CUDA_SUCCESS;
}

} // namespace simgpu

//===- Table.cpp - Where ranks meet ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Table.h"

#include <cstdio>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace simnccl {

std::string Shape::describe() const {
  static const char *const names[] = {"an all-reduce", "an all-gather",
                                      "a reduce-scatter", "a message"};
  return std::string(names[static_cast<size_t>(kind)]) + " of " +
         std::to_string(count) + " elements of type " + std::to_string(type);
}

std::shared_ptr<Table> Table::open(const ncclUniqueId &id, int size) {
  std::string path = "/dev/shm/simnccl-";
  for (int i = 0; i < 16; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x",
                  static_cast<unsigned char>(id.internal[i]));
    path += digits;
  }
  int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0)
    return nullptr;
  void *mapped = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(allBytes)) == 0)
    mapped = mmap(nullptr, allBytes, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);
  if (mapped == MAP_FAILED)
    return nullptr;
  auto table = std::make_shared<Table>();
  // Zeros, which a new file has, are what all begins with.
  table->head = static_cast<Head *>(mapped);
  table->path = path;
  int none = 0;
  table->head->size.compare_exchange_strong(none, size);
  return table;
}

Table::~Table() {
  // Where not all have come, it is still there.
  unlink(path.c_str());
  munmap(head, allBytes);
}

std::string Table::join(int rank, uint64_t card) {
  for (int other = 0; other < getSize(); ++other)
    if (head->cards[other] == card)
      return "two ranks are on one card";
  uint64_t none = 0;
  if (!head->cards[rank].compare_exchange_strong(none, card))
    return "the rank has joined already";
  // Nobody looks for it any more.
  if (++head->numJoined == getSize())
    unlink(path.c_str());
  return "";
}

} // namespace simnccl

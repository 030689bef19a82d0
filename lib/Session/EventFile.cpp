//===- EventFile.cpp - What TensorBoard reads -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "EventFile.h"

#include "Flush.h"
#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/LEB128.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

#include <array>
#include <chrono>
#include <cstring>

#include <unistd.h>

using namespace ax;

uint32_t ax::crc32c(llvm::StringRef bytes) {
  static const std::array<uint32_t, 256> table = [] {
    constexpr uint32_t polynomial = 0x82f63b78;
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < made.size(); ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit)
        value = (value >> 1) ^ (value & 1 ? polynomial : 0);
      made[i] = value;
    }
    return made;
  }();
  uint32_t crc = ~0u;
  for (unsigned char byte : bytes)
    crc = table[(crc ^ byte) & 0xff] ^ (crc >> 8);
  return ~crc;
}

/// TFRecord keeps checksums so that those of data that has some differ.
static uint32_t maskedChecksum(llvm::StringRef bytes) {
  uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

namespace {

/// Fields of a protocol buffer, in its wire format.
class Message {
public:
  void addVarint(unsigned field, uint64_t value) {
    addTag(field, 0);
    appendVarint(value);
  }
  void addDouble(unsigned field, double value) {
    addTag(field, 1);
    appendBytes(value);
  }
  void addText(unsigned field, llvm::StringRef value) {
    addTag(field, 2);
    appendVarint(value.size());
    bytes += value;
  }
  void addFloat(unsigned field, float value) {
    addTag(field, 5);
    appendBytes(value);
  }
  llvm::StringRef text() const { return bytes; }

private:
  void addTag(unsigned field, unsigned wireType) {
    appendVarint(field << 3 | wireType);
  }
  void appendVarint(uint64_t value) {
    llvm::raw_string_ostream os(bytes);
    llvm::encodeULEB128(value, os);
  }
  template <typename T>
  void appendBytes(T value) {
    std::array<char, sizeof(T)> raw;
    std::memcpy(raw.data(), &value, sizeof(T));
    bytes.append(raw.data(), raw.size());
  }

  std::string bytes;
};

/// Numbers of fields in event.proto and summary.proto.
enum EventField { WallTime = 1, Step = 2, FileVersion = 3, Summary = 5 };
enum { SessionLog = 7, Status = 1, Start = 1 };
enum { Value = 1, Tag = 1, SimpleValue = 2 };

} // namespace

static Message beginEvent(int64_t step) {
  using Seconds = std::chrono::duration<double>;
  Message event;
  event.addDouble(
      WallTime,
      Seconds(std::chrono::system_clock::now().time_since_epoch()).count());
  event.addVarint(Step, static_cast<uint64_t>(step));
  return event;
}

/// TensorBoard tells files by the time in their names, and reads them in order.
static std::string makeName() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0)
    host[0] = 0;
  auto now = std::chrono::system_clock::now().time_since_epoch();
  int64_t micros =
      std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  constexpr int64_t second = 1000000;
  return llvm::formatv("events.out.tfevents.{0:d10}.{1:d6}.{2}.{3}",
                       micros / second, micros % second, host.data(),
                       llvm::sys::Process::getProcessId());
}

llvm::Expected<EventFile> EventFile::create(const std::string &folder,
                                            std::optional<int64_t> resumed) {
  if (std::error_code code = makeFolder(folder))
    return makeError(ExitCode::InputOutput,
                     "cannot make folder '" + folder + "': " + code.message());
  EventFile file;
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, makeName());
  file.path = path.str().str();
  std::error_code fault;
  file.os = std::make_unique<llvm::raw_fd_ostream>(file.path, fault,
                                                   llvm::sys::fs::CD_CreateNew);
  if (fault)
    return makeError(ExitCode::InputOutput,
                     "cannot write '" + file.path + "': " + fault.message());
  Message version = beginEvent(0);
  version.addText(FileVersion, "brain.Event:2");
  if (llvm::Error error = file.writeRecord(version.text()))
    return error;
  if (!resumed)
    return file;
  Message start = beginEvent(*resumed + 1), log;
  log.addVarint(Status, Start);
  start.addText(SessionLog, log.text());
  if (llvm::Error error = file.writeRecord(start.text()))
    return error;
  return file;
}

llvm::Error EventFile::write(int64_t step, Scalars scalars) {
  Message summary;
  for (const auto &[name, number] : scalars) {
    Message value;
    value.addText(Tag, name);
    value.addFloat(SimpleValue, static_cast<float>(number));
    summary.addText(Value, value.text());
  }
  Message event = beginEvent(step);
  event.addText(Summary, summary.text());
  return writeRecord(event.text());
}

llvm::Error EventFile::writeRecord(llvm::StringRef event) {
  std::array<char, sizeof(uint64_t)> length;
  llvm::support::endian::write64le(length.data(), event.size());
  auto checksum = [&](llvm::StringRef bytes) {
    std::array<char, sizeof(uint32_t)> raw;
    llvm::support::endian::write32le(raw.data(), maskedChecksum(bytes));
    os->write(raw.data(), raw.size());
  };
  llvm::StringRef size(length.data(), length.size());
  *os << size;
  checksum(size);
  *os << event;
  checksum(event);
  return flush(*os, path);
}

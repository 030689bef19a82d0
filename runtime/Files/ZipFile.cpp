//===- ZipFile.cpp - Members of a .zip archive ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ZipFile.h"

#include "ax/Support/Error.h"

#include "llvm/Support/Endian.h"

#include <zlib.h>

using llvm::support::endian::read16le;
using llvm::support::endian::read32le;
using llvm::support::endian::read64le;

namespace ax::rt {

namespace {

constexpr uint32_t localMagic = 0x04034b50;
constexpr uint32_t centralMagic = 0x02014b50;
constexpr uint32_t endMagic = 0x06054b50;
constexpr uint32_t end64Magic = 0x06064b50;
constexpr uint32_t locator64Magic = 0x07064b50;
constexpr size_t localSize = 30, centralSize = 46, endSize = 22;
constexpr size_t end64Size = 56, locator64Size = 20;
/// This value of a 32-bit field says that the true one is in the ZIP64 extra
/// field.
constexpr uint32_t inExtra = 0xffffffffu;
constexpr uint16_t zip64Tag = 1;
/// No deflate stream expands more than this.
constexpr uint64_t largestExpansion = 1100;

llvm::Error malformed(const llvm::Twine &what) {
  return makeError(ExitCode::BadInput, "not a readable zip archive: " + what);
}

struct Directory {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t count = 0;
};

struct Entry {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t packedSize = 0, size = 0, offset = 0;
  llvm::ArrayRef<uint8_t> packed;
};

bool contains(llvm::ArrayRef<uint8_t> bytes, uint64_t offset, uint64_t length) {
  return offset <= bytes.size() && length <= bytes.size() - offset;
}

llvm::Expected<Directory> findDirectory(llvm::ArrayRef<uint8_t> bytes) {
  // The end record is followed only by a comment of at most 65535 bytes.
  if (bytes.size() < endSize)
    return malformed("it is truncated");
  size_t lowest =
      bytes.size() - endSize > 65535 ? bytes.size() - endSize - 65535 : 0;
  size_t at = bytes.size() - endSize;
  while (read32le(&bytes[at]) != endMagic) {
    if (at == lowest)
      return malformed("it has no directory (truncated?)");
    --at;
  }
  const uint8_t *end = &bytes[at];
  Directory result{read32le(end + 16), read32le(end + 12), read16le(end + 10)};
  if (at >= locator64Size &&
      read32le(&bytes[at - locator64Size]) == locator64Magic) {
    uint64_t offset = read64le(&bytes[at - locator64Size + 8]);
    if (!contains(bytes, offset, end64Size) ||
        read32le(&bytes[offset]) != end64Magic)
      return malformed("its ZIP64 directory is not where it should be");
    const uint8_t *end64 = &bytes[offset];
    result = {read64le(end64 + 48), read64le(end64 + 40), read64le(end64 + 32)};
  }
  if (!contains(bytes, result.offset, result.size))
    return malformed("its directory lies outside the file");
  return result;
}

/// Replaces the fields that say so by those of the ZIP64 extra field.
llvm::Error readZip64Extra(llvm::ArrayRef<uint8_t> extra, Entry &entry) {
  while (extra.size() >= 4) {
    size_t length = read16le(&extra[2]);
    if (length > extra.size() - 4)
      break;
    if (read16le(&extra[0]) == zip64Tag) {
      llvm::ArrayRef<uint8_t> field = extra.slice(4, length);
      for (uint64_t *value : {&entry.size, &entry.packedSize, &entry.offset}) {
        if (*value != inExtra)
          continue;
        if (field.size() < 8)
          return malformed("a ZIP64 field is missing");
        *value = read64le(field.data());
        field = field.drop_front(8);
      }
      return llvm::Error::success();
    }
    extra = extra.drop_front(4 + length);
  }
  return llvm::Error::success();
}

/// Fills `result`.
llvm::Error inflate(llvm::ArrayRef<uint8_t> packed,
                    llvm::MutableArrayRef<uint8_t> result) {
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return makeError(ExitCode::RunFailed, "zlib does not start");
  const uint8_t *from = packed.data();
  const uint8_t *fromEnd = from + packed.size();
  size_t done = 0;
  // zlib counts in 32 bits. One spare byte shows when there is too much.
  constexpr ptrdiff_t chunk = 1 << 30;
  uint8_t spare;
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_in = const_cast<uint8_t *>(from);
    stream.avail_in = static_cast<uInt>(std::min(fromEnd - from, chunk));
    bool full = done == result.size();
    size_t room = std::min<size_t>(result.size() - done, chunk);
    stream.next_out = full ? &spare : result.data() + done;
    stream.avail_out = full ? 1 : static_cast<uInt>(room);
    status = ::inflate(&stream, Z_NO_FLUSH);
    from = stream.next_in;
    if (!full)
      done += room - stream.avail_out;
    else if (stream.avail_out == 0)
      break;
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || done != result.size())
    return malformed("a compressed member is corrupt");
  return llvm::Error::success();
}

/// Finds `entry.packed`.
llvm::Error locate(llvm::ArrayRef<uint8_t> archive, Entry &entry) {
  if (!contains(archive, entry.offset, localSize) ||
      read32le(&archive[entry.offset]) != localMagic)
    return malformed("member '" + entry.name + "' is not where it should be");
  const uint8_t *local = &archive[entry.offset];
  uint64_t start =
      entry.offset + localSize + read16le(local + 26) + read16le(local + 28);
  if (entry.flags & 1)
    return malformed("member '" + entry.name + "' is encrypted");
  if (!contains(archive, start, entry.packedSize))
    return malformed("member '" + entry.name + "' is truncated");
  entry.packed = archive.slice(start, entry.packedSize);
  return llvm::Error::success();
}

bool overlap(const std::vector<Entry> &entries) {
  std::vector<llvm::ArrayRef<uint8_t>> ranges;
  for (const Entry &entry : entries)
    ranges.push_back(entry.packed);
  llvm::sort(ranges, [](auto a, auto b) { return a.begin() < b.begin(); });
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin() < ranges[i - 1].end())
      return true;
  return false;
}

llvm::Expected<HostTensor> readContent(const Entry &entry) {
  bool isStored = entry.method == 0 && entry.size == entry.packedSize;
  if (!isStored && entry.method != 8)
    return malformed("member '" + entry.name +
                     "' is neither stored nor deflated");
  if (!isStored && entry.size / largestExpansion > entry.packed.size())
    return malformed("a member claims an impossible size");
  // What is not written to takes no memory, whatever the size claimed.
  auto content =
      HostTensor::allocate(DType::U8, {static_cast<int64_t>(entry.size)});
  if (!content)
    return addContext(content.takeError(), "member '" + entry.name + "'");
  llvm::MutableArrayRef<uint8_t> bytes = content->mutableValues<uint8_t>();
  if (isStored)
    llvm::copy(entry.packed, bytes.begin());
  else if (llvm::Error error = inflate(entry.packed, bytes))
    return addContext(std::move(error), "member '" + entry.name + "'");
  if (crc32_z(0, bytes.data(), bytes.size()) != entry.crc)
    return malformed("member '" + entry.name + "' has a wrong checksum");
  return content;
}

} // namespace

llvm::Expected<std::vector<ZipMember>> readZip(llvm::ArrayRef<uint8_t> archive,
                                               llvm::StringRef suffix) {
  llvm::Expected<Directory> directory = findDirectory(archive);
  if (!directory)
    return directory.takeError();
  llvm::ArrayRef<uint8_t> left =
      archive.slice(directory->offset, directory->size);
  std::vector<Entry> entries;
  for (uint64_t i = 0; i < directory->count; ++i) {
    if (left.size() < centralSize || read32le(left.data()) != centralMagic)
      return malformed("its directory is corrupt");
    const uint8_t *from = left.data();
    size_t nameLength = read16le(from + 28);
    size_t extraLength = read16le(from + 30);
    size_t total = centralSize + nameLength + extraLength + read16le(from + 32);
    if (total > left.size())
      return malformed("its directory is corrupt");
    Entry entry;
    entry.flags = read16le(from + 8);
    entry.method = read16le(from + 10);
    entry.crc = read32le(from + 16);
    entry.packedSize = read32le(from + 20);
    entry.size = read32le(from + 24);
    entry.offset = read32le(from + 42);
    entry.name.assign(reinterpret_cast<const char *>(from + centralSize),
                      nameLength);
    if (llvm::Error error = readZip64Extra(
            left.slice(centralSize + nameLength, extraLength), entry))
      return error;
    left = left.drop_front(total);
    if (!llvm::StringRef(entry.name).ends_with(suffix))
      continue;
    if (llvm::Error error = locate(archive, entry))
      return error;
    entries.push_back(std::move(entry));
  }
  if (overlap(entries))
    return malformed("its members overlap");
  std::vector<ZipMember> members;
  for (Entry &entry : entries) {
    llvm::Expected<HostTensor> content = readContent(entry);
    if (!content)
      return content.takeError();
    members.push_back({std::move(entry.name), std::move(*content)});
  }
  return members;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

namespace {

void put(std::string &to, uint64_t value, int numBytes) {
  for (int i = 0; i < numBytes; ++i)
    to.push_back(static_cast<char>(value >> (8 * i)));
}

/// Puts the fields from "version needed" to the lengths, as in both kinds of
/// header. Sizes are always in the extra field, whose length is given: one form
/// for any size.
void putCommon(std::string &to, uint32_t crc, size_t nameLength,
               int extraLength) {
  put(to, 45, 2);
  put(to, 0x800, 2); // UTF-8 names
  put(to, 0, 2);
  put(to, 0, 2);
  put(to, (1 << 5) | 1, 2); // 1980-01-01: files depend on their content only
  put(to, crc, 4);
  put(to, inExtra, 4);
  put(to, inExtra, 4);
  put(to, nameLength, 2);
  put(to, extraLength, 2);
}

} // namespace

llvm::Error ZipWriter::add(const std::string &name,
                           llvm::ArrayRef<llvm::ArrayRef<uint8_t>> parts) {
  if (name.size() > 0xffff)
    return makeError(ExitCode::InputOutput, "name too long for a zip archive");
  uint64_t size = 0;
  uLong crc = 0;
  for (llvm::ArrayRef<uint8_t> part : parts) {
    size += part.size();
    crc = crc32_z(crc, part.data(), part.size());
  }
  auto offset = static_cast<uint64_t>(file.getPosition());
  std::string header;
  put(header, localMagic, 4);
  putCommon(header, static_cast<uint32_t>(crc), name.size(), 20);
  header += name;
  put(header, zip64Tag, 2);
  put(header, 16, 2);
  put(header, size, 8);
  put(header, size, 8);
  if (llvm::Error error = file.write(header))
    return error;
  for (llvm::ArrayRef<uint8_t> part : parts)
    if (llvm::Error error = file.write(part))
      return error;

  put(directory, centralMagic, 4);
  put(directory, 45, 2);
  putCommon(directory, static_cast<uint32_t>(crc), name.size(), 28);
  put(directory, 0, 2); // comment length
  put(directory, 0, 2); // disk
  put(directory, 0, 2);
  put(directory, 0, 4);
  put(directory, inExtra, 4);
  directory += name;
  put(directory, zip64Tag, 2);
  put(directory, 24, 2);
  put(directory, size, 8);
  put(directory, size, 8);
  put(directory, offset, 8);
  ++numMembers;
  return llvm::Error::success();
}

llvm::Error ZipWriter::finish() {
  auto start = static_cast<uint64_t>(file.getPosition());
  uint64_t size = directory.size();
  put(directory, end64Magic, 4);
  put(directory, end64Size - 12, 8);
  put(directory, 45, 2);
  put(directory, 45, 2);
  put(directory, 0, 8); // disks
  put(directory, numMembers, 8);
  put(directory, numMembers, 8);
  put(directory, size, 8);
  put(directory, start, 8);
  put(directory, locator64Magic, 4);
  put(directory, 0, 4);
  put(directory, start + size, 8);
  put(directory, 1, 4);
  put(directory, endMagic, 4);
  put(directory, 0, 4);
  put(directory, 0xffff, 2);
  put(directory, 0xffff, 2);
  put(directory, inExtra, 4);
  put(directory, inExtra, 4);
  put(directory, 0, 2);
  if (llvm::Error error = file.write(directory))
    return error;
  return file.commit();
}

} // namespace ax::rt

//===- NpyTest.cpp - .npy and .npz files ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Npy.h"
#include "ax/Runtime/Safetensors.h"

#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"

#include "gtest/gtest.h"

#include <filesystem>
#include <fstream>

using namespace ax;
using namespace ax::rt;

namespace {

std::string npyText(const std::string &dict, const std::string &data,
                    char version = 1) {
  std::string text = "\x93NUMPY";
  text += version;
  text += '\0';
  text += static_cast<char>(dict.size());
  text += '\0';
  if (version > 1)
    text += std::string(2, '\0');
  return text + dict + data;
}

llvm::Expected<HostTensor> parse(const std::string &text) {
  return parseNpy(
      {reinterpret_cast<const uint8_t *>(text.data()), text.size()});
}

std::string messageOf(llvm::Error error) {
  ErrorDescription description = describeError(std::move(error));
  EXPECT_EQ(description.code, ExitCode::BadInput);
  return description.message;
}

const DType allTypes[] = {DType::F32, DType::F64, DType::F16, DType::BF16,
                          DType::I8,  DType::I16, DType::I32, DType::I64,
                          DType::U8,  DType::U16, DType::U32, DType::U64,
                          DType::Bool};

class NpyFiles : public ::testing::Test {
protected:
  void SetUp() override {
    char pattern[] = "/tmp/axnpyXXXXXX";
    folder = mkdtemp(pattern);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  NamedTensors makeTensors() const {
    NamedTensors tensors;
    for (DType type : allTypes)
      for (Shape shape : {Shape{}, Shape{3}, Shape{2, 0}, Shape{2, 3, 4}}) {
        HostTensor tensor(type, shape);
        for (int64_t i = 0; i < tensor.numElements(); ++i)
          tensor.setInt(i, i % 7);
        tensors.emplace_back(std::string(toString(type)) + "_" +
                                 std::to_string(shape.size()),
                             tensor);
      }
    return tensors;
  }
  std::string folder;
};

TEST_F(NpyFiles, EveryTypeAndShapeRoundTrips) {
  for (const auto &[name, tensor] : makeTensors()) {
    std::string path = folder + "/" + name + ".npy";
    ASSERT_FALSE(bool(writeNpy(path, tensor)));
    llvm::Expected<HostTensor> back = readNpy(path);
    ASSERT_TRUE(bool(back)) << name;
    EXPECT_TRUE(tensor.isIdentical(*back)) << name;
  }
}

TEST_F(NpyFiles, ArchiveRoundTrips) {
  NamedTensors tensors = makeTensors();
  ASSERT_FALSE(bool(writeNpz(folder + "/a.npz", tensors)));
  llvm::Expected<NamedTensors> back = readNpz(folder + "/a.npz");
  ASSERT_TRUE(bool(back)) << llvm::toString(back.takeError());
  ASSERT_EQ(back->size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ((*back)[i].first, tensors[i].first);
    EXPECT_TRUE((*back)[i].second.isIdentical(tensors[i].second));
  }
}

// Every truncation and every flipped byte gives an error or the same tensors
// (or, in the headers, other well-formed ones): never a crash.
TEST_F(NpyFiles, DamagedArchivesAreErrors) {
  NamedTensors tensors{{"x", HostTensor::fromValues<float>({2}, {1, 2})}};
  std::string path = folder + "/a.npz";
  ASSERT_FALSE(bool(writeNpz(path, tensors)));
  std::vector<uint8_t> good;
  {
    llvm::Expected<std::shared_ptr<MappedFile>> file = MappedFile::open(path);
    ASSERT_TRUE(bool(file));
    good = (*file)->bytes().vec();
  }
  auto check = [&](const std::vector<uint8_t> &bytes, bool mustFail) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char *>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    llvm::Expected<NamedTensors> back = readNpz(path);
    if (!back)
      EXPECT_NE(messageOf(back.takeError()).find(path), std::string::npos);
    else
      EXPECT_FALSE(mustFail);
  };
  for (size_t length = 0; length < good.size(); ++length)
    check({good.begin(), good.begin() + static_cast<ptrdiff_t>(length)}, true);
  for (size_t i = 0; i < good.size(); ++i) {
    std::vector<uint8_t> bad = good;
    bad[i] ^= 0xff;
    check(bad, false);
  }
}

TEST(NpyTest, FortranOrderIsTransposed) {
  std::string data;
  for (uint8_t i = 0; i < 6; ++i)
    data += static_cast<char>(i);
  auto tensor = parse(npyText(
      "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", data));
  ASSERT_TRUE(bool(tensor));
  EXPECT_EQ(tensor->toInts(), (std::vector<int64_t>{0, 2, 4, 1, 3, 5}));
}

TEST(NpyTest, BigEndianAndVersions) {
  for (char version : {1, 2, 3}) {
    auto tensor =
        parse(npyText("{'descr': '>i2', 'fortran_order': False, 'shape': (1,)}",
                      std::string("\x01\x02", 2), version));
    ASSERT_TRUE(bool(tensor));
    EXPECT_EQ(tensor->getInt(0), 0x102);
  }
}

TEST(NpyTest, Bfloat16IsTwoByteVoid) {
  auto tensor =
      parse(npyText("{'descr': '|V2', 'fortran_order': False, 'shape': ()}",
                    std::string("\x80\x3f", 2)));
  ASSERT_TRUE(bool(tensor));
  EXPECT_EQ(tensor->getType(), DType::BF16);
  EXPECT_EQ(tensor->getDouble(0), 1.0);
}

/// Of the two, no header says which.
TEST(NpyTest, FloatsOfEightBitsAreOnlyWritten) {
  for (DType type : {DType::F8E4M3FN, DType::F8E5M2}) {
    std::string text = npyHeader(HostTensor(type, {1})) + '\x38';
    EXPECT_NE(text.find("'|V1'"), std::string::npos);
    auto tensor = parse(text);
    ASSERT_FALSE(bool(tensor));
    EXPECT_NE(messageOf(tensor.takeError()).find("'|V1' is not supported"),
              std::string::npos);
  }
}

TEST(NpyTest, SafetensorsNamesRoundTrip) {
  for (DType type : allTypes)
    EXPECT_EQ(safetensorsType(safetensorsName(type)), type);
  EXPECT_EQ(safetensorsName(DType::F8E4M3FN), "F8_E4M3");
  EXPECT_EQ(safetensorsType("F8_E5M2"), DType::F8E5M2);
  EXPECT_FALSE(safetensorsType("F8E5M2"));
}

TEST(NpyTest, MalformedHeadersAreErrors) {
  const std::string data(64, '\0');
  const char *dicts[] = {
      "",
      "{",
      "{}",
      "{'descr': '<f4'}",
      "{'descr': '<f4', 'fortran_order': False}",
      "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
      "{'descr': '<O8', 'fortran_order': False, 'shape': (1,)}",
      "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (17,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': "
      "(9223372036854775807, 4)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': "
      "(99999999999999999999,)}",
      "{'descr': '<f4 , 'fortran_order': False, 'shape': (1,)}"};
  for (const char *dict : dicts) {
    auto tensor = parse(npyText(dict, data));
    ASSERT_FALSE(bool(tensor)) << dict;
    messageOf(tensor.takeError());
  }
}

TEST(NpyTest, ErrorsSayWhatIsMissing) {
  auto tensor = parse(npyText(
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)}", "abc"));
  ASSERT_FALSE(bool(tensor));
  EXPECT_NE(messageOf(tensor.takeError()).find("needs 24 bytes, there are 3"),
            std::string::npos);
}

} // namespace

//===- CheckpointTest.cpp - Checkpoints that contradict themselves --------===//
//
// Their checksums are right.
//
//===----------------------------------------------------------------------===//
#include "ax/Runtime/Checkpoint.h"

#include "ax/Runtime/Safetensors.h"
#include "ax/Support/Error.h"

#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

#include <limits>

using namespace ax;
using namespace ax::rt;
namespace json = llvm::json;

namespace {

class CheckpointTest : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("checkpoint", folder));
    auto file = SafetensorsWriter::create(
        (folder + "/rank-0.safetensors").str(),
        {{"w", DType::F32, {2, 2}}, {"s", DType::I64, {}}});
    ASSERT_TRUE(static_cast<bool>(file));
    for (const HostTensor &tensor : {w, s})
      ASSERT_FALSE(static_cast<bool>(file->write(tensor)));
    ASSERT_FALSE(static_cast<bool>(file->commit()));
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  static json::Object part(const HostTensor &tensor, int64_t offset,
                           std::vector<int64_t> sizes,
                           std::vector<int64_t> strides) {
    return json::Object{
        {"file", "rank-0.safetensors"},
        {"offset", offset},
        {"sizes", json::Array(sizes)},
        {"strides", json::Array(strides)},
        {"checksum", checkpoint::checksumOf(tensor.rawBytes())}};
  }
  static json::Object state(const char *type, std::vector<int64_t> shape,
                            json::Object part) {
    return json::Object{{"dtype", type},
                        {"shape", json::Array(shape)},
                        {"role", "weight"},
                        {"parts", json::Array{std::move(part)}}};
  }
  /// The message, or the shape and second element of `w`.
  std::string read(json::Object states) {
    json::Value content = json::Object{{"format", checkpoint::format},
                                       {"version", checkpoint::version},
                                       {"step", step},
                                       {"progress", json::Object(progress)},
                                       {"frozen", json::Array()},
                                       {"states", std::move(states)}};
    std::string checksum = checkpoint::checksumOf(content);
    json::Value manifest =
        json::Object{{"checksum", checksum}, {"content", std::move(content)}};
    std::string text = llvm::formatv("{0}", manifest);
    EXPECT_FALSE(static_cast<bool>(writeFileAtomically(
        (folder + "/manifest.json").str(), llvm::StringRef(text))));
    auto found = readCheckpoint(folder.str().str(), nullptr);
    if (!found)
      return describeError(found.takeError()).message;
    const HostTensor &tensor = found->tensors.front().second;
    return tensor.typeToString() + " " +
           std::to_string(tensor.getDouble(tensor.numElements() - 1));
  }
  void expect(const char *name, json::Object state,
              const std::string &message) {
    std::string text = read(json::Object{{name, std::move(state)}});
    EXPECT_NE(text.find(message), std::string::npos) << text;
  }

  llvm::SmallString<128> folder;
  int64_t step = 3;
  json::Object progress;
  HostTensor w = HostTensor::fromValues<float>({2, 2}, {1, 2, 3, 4});
  HostTensor s = HostTensor::scalar<int64_t>(7);
};

TEST_F(CheckpointTest, Reads) {
  expect("w", state("F32", {2, 2}, part(w, 0, {4}, {1})), "2x2xf32 4.0");
  expect("w", state("F32", {2, 2}, part(w, 0, {2, 2}, {1, 2})), "2x2xf32 4.0");
  expect("s", state("I64", {}, part(s, 0, {1}, {1})), "i64 7.0");
}

TEST_F(CheckpointTest, Contradictions) {
  expect("w", state("F64", {2, 2}, part(w, 0, {4}, {1})),
         "rank-0.safetensors: 'w' is 2x2xf32, but not in manifest.json");
  expect("w", state("F32", {2, 3}, part(w, 0, {4}, {1})),
         "parts of 'w' are missing");
  expect("w", state("F32", {0}, part(w, 0, {4}, {1})),
         "manifest.json is malformed");
  expect("v", state("F32", {2, 2}, part(w, 0, {4}, {1})),
         "rank-0.safetensors does not have 'v'");
  for (json::Object &bad : std::vector<json::Object>{
           part(w, 1, {4}, {1}), part(w, -1, {4}, {1}),
           part(w, 0, {2, 2}, {3, 1}), part(w, 0, {2, 2}, {1}),
           part(w, 0, {1ll << 62, 4}, {0, 1}), part(w, 0, {4}, {0}),
           part(w, 0, {2, 2}, {0, 1}), part(w, 0, {2, 2}, {2, 0})})
    expect("w", state("F32", {2, 2}, std::move(bad)),
           "manifest.json is malformed");
  // As many dimensions as would need more stack than there is.
  expect("w",
         state("F32", {2, 2},
               part(w, 0, std::vector<int64_t>(2000000, 1),
                    std::vector<int64_t>(2000000, 0))),
         "manifest.json is malformed");
  step = std::numeric_limits<int64_t>::max();
  expect("w", state("F32", {2, 2}, part(w, 0, {4}, {1})),
         "manifest.json is malformed");
  step = 3;
  for (int64_t skipped : {-1, 4}) {
    progress = json::Object{{"skipped", skipped}};
    expect("w", state("F32", {2, 2}, part(w, 0, {4}, {1})),
           "manifest.json is malformed");
  }
  progress = json::Object{{"skipped", 3}};
  json::Object outside = part(w, 0, {4}, {1});
  outside["file"] = "../rank-0.safetensors";
  expect("w", state("F32", {2, 2}, std::move(outside)), "'../rank-0");
}

TEST_F(CheckpointTest, PartsTileTheTensorOnce) {
  HostTensor two = HostTensor::fromValues<float>({2}, {1, 2});
  auto file = SafetensorsWriter::create((folder + "/rank-0.safetensors").str(),
                                        {{"w", DType::F32, {2}}});
  ASSERT_TRUE(static_cast<bool>(file));
  ASSERT_FALSE(static_cast<bool>(file->write(two)));
  ASSERT_FALSE(static_cast<bool>(file->commit()));
  auto parts = [&](std::vector<std::tuple<int64_t, int64_t>> places) {
    json::Object made = state("F32", {2, 2}, part(two, 0, {2}, {1}));
    json::Array &list = *made.getArray("parts");
    list.clear();
    for (auto [offset, stride] : places)
      list.push_back(part(two, offset, {2}, {stride}));
    return made;
  };
  expect("w", parts({{0, 1}, {2, 1}}), "2x2xf32 2.0");
  expect("w", parts({{0, 2}, {1, 2}}), "2x2xf32 2.0");
  expect("w", parts({{0, 1}, {0, 1}}), "parts of 'w' overlap");
  expect("w", parts({{0, 2}, {0, 1}}), "parts of 'w' overlap");
  expect("w", parts({{0, 1}, {1, 1}}), "parts of 'w' overlap");
  expect("w", parts({{0, 1}}), "parts of 'w' are missing");
  expect("w", parts({{0, 1}, {2, 1}, {1, 1}}), "parts of 'w' overlap");
}

TEST_F(CheckpointTest, BooleansOfSafetensorsAreOneOrZero) {
  std::string path = (folder + "/b.safetensors").str();
  const uint8_t bytes[] = {0, 2, 255, 1};
  auto file = SafetensorsWriter::create(path, {{"b", DType::Bool, {4}}});
  ASSERT_TRUE(static_cast<bool>(file));
  ASSERT_FALSE(static_cast<bool>(
      file->write(HostTensor::borrow(DType::Bool, {4}, bytes, nullptr))));
  ASSERT_FALSE(static_cast<bool>(file->commit()));
  auto read = readSafetensors(path);
  ASSERT_TRUE(static_cast<bool>(read));
  EXPECT_EQ(read->front().second.rawBytes(),
            llvm::ArrayRef<uint8_t>({0, 1, 1, 1}));
}

} // namespace

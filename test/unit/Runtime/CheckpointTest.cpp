//===- CheckpointTest.cpp - Checkpoints that contradict themselves --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Their checksums are right.
//
//===----------------------------------------------------------------------===//
#include "ax/Runtime/Checkpoint.h"
#include "ax/Runtime/CheckpointFolder.h"

#include "ProgramBuilder.h"

#include "ax/Runtime/Safetensors.h"
#include "ax/Support/Checksum.h"
#include "ax/Support/Error.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

#include <cerrno>
#include <limits>
#include <set>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace ax;
using namespace ax::rt;
namespace json = llvm::json;

/// What the next calls of flock fail with; then it works.
static std::vector<int> lockFaults;

extern "C" int flock(int file, int operation) noexcept {
  if (lockFaults.empty())
    return static_cast<int>(::syscall(SYS_flock, file, operation));
  errno = lockFaults.back();
  lockFaults.pop_back();
  return -1;
}

/// How many files and folders can still be removed; then it fails, as if the
/// process were no more.
static int64_t removesLeft = std::numeric_limits<int64_t>::max();

extern "C" int remove(const char *path) noexcept {
  if (removesLeft-- > 0)
    return ::unlink(path) == 0 ? 0 : ::rmdir(path);
  errno = EIO;
  return -1;
}

namespace {

CheckpointOptions at(int64_t step) {
  CheckpointOptions options;
  options.step = step;
  return options;
}

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
    return json::Object{{"file", "rank-0.safetensors"},
                        {"offset", offset},
                        {"sizes", json::Array(sizes)},
                        {"strides", json::Array(strides)},
                        {"checksum", checksumOf(tensor.rawBytes())}};
  }
  static json::Object state(const char *type, std::vector<int64_t> shape,
                            json::Object part) {
    return json::Object{{"dtype", type},
                        {"shape", json::Array(shape)},
                        {"role", "weight"},
                        {"parts", json::Array{std::move(part)}}};
  }
  /// The message, or the type and last element of the first state.
  std::string read(json::Object states) {
    json::Value content = json::Object{{"format", checkpoint::format},
                                       {"version", checkpoint::version},
                                       {"step", step},
                                       {"progress", json::Object(progress)},
                                       {"frozen", json::Object(frozen)},
                                       {"states", std::move(states)}};
    std::string checksum = checkpoint::checksumOf(content);
    json::Value manifest =
        json::Object{{"checksum", checksum}, {"content", std::move(content)}};
    std::string text = llvm::formatv("{0}", manifest);
    EXPECT_FALSE(static_cast<bool>(writeFileAtomically(
        (folder + "/manifest.json").str(), llvm::StringRef(text))));
    auto found = readCheckpoint(folder.str().str(), {});
    if (!found)
      return describeError(found.takeError()).message;
    HostTensor tensor =
        llvm::cantFail(found->tensors.front().second.assemble());
    if (tensor.numElements() == 0)
      return tensor.typeToString();
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
  json::Object progress, frozen;
  HostTensor w = HostTensor::fromValues<float>({2, 2}, {1, 2, 3, 4});
  HostTensor s = HostTensor::scalar<int64_t>(7);
};

TEST_F(CheckpointTest, Reads) {
  expect("w", state("F32", {2, 2}, part(w, 0, {4}, {1})), "2x2xf32 4.0");
  expect("w", state("F32", {2, 2}, part(w, 0, {2, 2}, {1, 2})), "2x2xf32 4.0");
  expect("s", state("I64", {}, part(s, 0, {1}, {1})), "i64 7.0");
}

TEST_F(CheckpointTest, OnesThatAllTryAreTaken) {
  std::string to = (folder + "/run").str();
  ProgramBuilder builder({});
  builder.stages(1);
  auto executor = llvm::cantFail(createExecutor(builder.program, {}));
  auto opened = llvm::cantFail(CheckpointFolder::open(to));
  for (int64_t step : {1, 2})
    llvm::cantFail(opened.write(*executor, at(step)));
  using Paths = std::vector<std::string>;
  CheckpointReading reading;
  reading.choose = [&](Paths own) {
    EXPECT_EQ(own, (Paths{to + "/step-2", to + "/step-1"}));
    return Paths{to + "/step-1"};
  };
  EXPECT_EQ(llvm::cantFail(readCheckpoint(to, reading)).step, 1);
  reading.choose = [](const Paths &) { return Paths(); };
  EXPECT_EQ(describeError(readCheckpoint(to, reading).takeError()).message,
            "there is no checkpoint in '" + to + "'");
  EXPECT_EQ(filesToCompare(to),
            (Paths{to + "/latest", to + "/step-1/manifest.json",
                   to + "/step-2/manifest.json"}));
}

TEST_F(CheckpointTest, OnesThatCouldNotBeReadAreNotWritten) {
  std::string to = (folder + "/run").str();
  ProgramBuilder builder({});
  builder.stages(1);
  auto executor = llvm::cantFail(createExecutor(builder.program, {}));
  auto opened = llvm::cantFail(CheckpointFolder::open(to));
  CheckpointOptions options;
  options.mostManifestBytes = 100;
  std::string text =
      describeError(opened.write(*executor, options).takeError()).message;
  EXPECT_NE(text.find(" bytes, of which 100 can be read: states are in too "
                      "many parts (a lower --zero, or fewer ranks)"),
            std::string::npos)
      << text;
  EXPECT_TRUE(checkpoint::list(to).empty());
}

TEST_F(CheckpointTest, OnesThatWereBeingReplacedAreBack) {
  std::string to = (folder + "/run").str();
  ProgramBuilder builder({});
  builder.stages(1);
  auto executor = llvm::cantFail(createExecutor(builder.program, {}));
  llvm::cantFail(
      llvm::cantFail(CheckpointFolder::open(to)).write(*executor, at(7)));
  ASSERT_FALSE(llvm::sys::fs::rename(to + "/step-7",
                                     to + "/.unfinished-replaced-step-7"));
  EXPECT_TRUE(checkpoint::list(to).empty());
  llvm::cantFail(CheckpointFolder::open(to).takeError());
  EXPECT_EQ(llvm::cantFail(readCheckpoint(to, {})).step, 7);
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
  for (json::Object bad :
       {json::Object{{"skipped", -1}}, json::Object{{"skipped", 4}},
        json::Object{{"skipped", "one"}},
        json::Object{{"data", json::Object{{"seed", "one"}}}},
        json::Object{{"data", json::Object{{"seed", -1}}}}}) {
    progress = std::move(bad);
    expect("w", state("F32", {2, 2}, part(w, 0, {4}, {1})),
           "manifest.json is malformed");
  }
  progress = json::Object{{"skipped", 3}, {"data", json::Object{{"seed", 1}}}};
  json::Object unknown = state("F32", {2, 2}, part(w, 0, {4}, {1}));
  unknown["role"] = "scale";
  expect("w", std::move(unknown), "manifest.json is malformed");
  for (const char *fingerprint : {"f32", "f32:12", "f99:8c1d3f0a52b7e964"}) {
    frozen = json::Object{{"c", fingerprint}};
    expect("w", state("F32", {2, 2}, part(w, 0, {4}, {1})),
           "manifest.json is malformed");
  }
  frozen = json::Object{{"c", "f32:8c1d3f0a52b7e964"}};
  expect("w", state("F32", {2, 2}, part(w, 0, {4}, {1})), "2x2xf32 4.0");
  json::Object outside = part(w, 0, {4}, {1});
  outside["file"] = "../rank-0.safetensors";
  expect("w", state("F32", {2, 2}, std::move(outside)), "'../rank-0");
}

TEST_F(CheckpointTest, PartsTileTheTensorOnce) {
  HostTensor two = HostTensor::fromValues<float>({2}, {1, 2});
  for (int rank = 0; rank < 3; ++rank) {
    auto file = SafetensorsWriter::create(
        (folder + "/rank-" + llvm::Twine(rank) + ".safetensors").str(),
        {{"w", DType::F32, {2}}});
    ASSERT_TRUE(static_cast<bool>(file));
    ASSERT_FALSE(static_cast<bool>(file->write(two)));
    ASSERT_FALSE(static_cast<bool>(file->commit()));
  }
  auto parts = [&](std::vector<std::tuple<int64_t, int64_t>> places) {
    json::Object made = state("F32", {2, 2}, part(two, 0, {2}, {1}));
    json::Array &list = *made.getArray("parts");
    list.clear();
    for (auto [rank, place] : llvm::enumerate(places)) {
      json::Object one =
          part(two, std::get<0>(place), {2}, {std::get<1>(place)});
      one["file"] = "rank-" + std::to_string(rank) + ".safetensors";
      list.push_back(std::move(one));
    }
    return made;
  };
  expect("w", parts({{0, 1}, {2, 1}}), "2x2xf32 2.0");
  expect("w", parts({{0, 2}, {1, 2}}), "2x2xf32 2.0");
  expect("w", parts({{0, 1}, {0, 1}}), "parts of 'w' overlap");
  expect("w", parts({{0, 2}, {0, 1}}), "parts of 'w' overlap");
  expect("w", parts({{0, 1}, {1, 1}}), "parts of 'w' overlap");
  expect("w", parts({{0, 1}}), "parts of 'w' are missing");
  expect("w", parts({{0, 1}, {2, 1}, {1, 1}}), "parts of 'w' overlap");
  json::Object again = parts({{0, 1}, {2, 1}});
  (*(*again.getArray("parts"))[1].getAsObject())["file"] = "rank-0.safetensors";
  expect("w", std::move(again), "rank-0.safetensors has two parts of 'w'");
}

TEST_F(CheckpointTest, StatesAreInTheOrderThatItSays) {
  auto dealt = [&](int64_t dim, std::vector<int64_t> parts, int64_t hands) {
    json::Object made = state("F32", {4}, part(w, 0, {2, 2}, {2, 1}));
    made["dealt"] = json::Object{
        {"dim", dim}, {"parts", json::Array(parts)}, {"hands", hands}};
    return made;
  };
  expect("w", dealt(0, {2, 2}, 2), "4xf32 4.0");
  Checkpoint read = llvm::cantFail(readCheckpoint(folder.str().str(), {}));
  HostTensor inModel = llvm::cantFail(read.tensors.front().second.assemble());
  EXPECT_TRUE(
      inModel.isIdentical(HostTensor::fromValues<float>({4}, {1, 3, 2, 4})));
  json::Object none = dealt(0, {2, 2}, 2), text = dealt(0, {2, 2}, 2);
  none.getObject("dealt")->erase("parts");
  text["dealt"] = "[2, 2] to 2";
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  for (json::Object &bad : std::vector<json::Object>{
           dealt(1, {2, 2}, 2), dealt(-1, {2, 2}, 2), dealt(0, {2, 2}, 0),
           dealt(0, {1, 3}, 2), dealt(0, {2}, 2), dealt(0, {4, most - 1}, 2),
           std::move(none), std::move(text)})
    expect("w", std::move(bad), "manifest.json is malformed");
}

/// Memory is taken for what is in files, not for what a manifest says.
TEST_F(CheckpointTest, SizesThatNoFileHas) {
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  int64_t size = int64_t(1) << 36;
  expect("w", state("F32", {size}, part(w, 0, {4}, {1})),
         "parts of 'w' are missing");
  json::Object two = state("F32", {size}, part(w, 0, {4}, {1}));
  two.getArray("parts")->push_back(part(w, 4, {size - 4}, {1}));
  expect("w", std::move(two), "'w' is 2x2xf32, but not in manifest.json");
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 1 << 20) << "KiB";
}

TEST_F(CheckpointTest, StatesWithoutElements) {
  json::Object none = state("F32", {0, 3}, part(w, 0, {4}, {1}));
  none.getArray("parts")->clear();
  EXPECT_EQ(read(json::Object{{"e", json::Object(none)}}), "0x3xf32");
  none["dtype"] = "F31";
  expect("e", std::move(none), "manifest.json is malformed");
  auto file = SafetensorsWriter::create((folder + "/rank-0.safetensors").str(),
                                        {{"e", DType::F32, {3, 0}}});
  ASSERT_TRUE(static_cast<bool>(file));
  HostTensor e(DType::F32, {3, 0});
  ASSERT_FALSE(static_cast<bool>(file->write(e)));
  ASSERT_FALSE(static_cast<bool>(file->commit()));
  EXPECT_EQ(read(json::Object{
                {"e", state("F32", {3, 0}, part(e, 0, {3, 0}, {1, 1}))}}),
            "3x0xf32");
}

/// What file systems do that have no locks, or are in trouble.
TEST_F(CheckpointTest, FoldersThatCannotBeLocked) {
  std::vector<std::string> warnings;
  auto open = [&] {
    return CheckpointFolder::open(
        folder.str().str(),
        [&](const std::string &text) { warnings.push_back(text); });
  };
  for (int fault : {ENOTSUP, ENOSYS, ENOLCK}) {
    lockFaults = {fault};
    warnings.clear();
    EXPECT_TRUE(static_cast<bool>(open()));
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find("has no locks: let no other run save there"),
              std::string::npos);
  }
  // What another run may be writing stays; what this one writes is whole.
  std::string unfinished = (folder + "/.unfinished-01234567").str();
  ASSERT_FALSE(llvm::sys::fs::create_directory(unfinished));
  ProgramBuilder builder({});
  builder.stages(1);
  auto executor = llvm::cantFail(createExecutor(builder.program, {}));
  lockFaults = {ENOLCK};
  auto unlocked = open();
  ASSERT_TRUE(static_cast<bool>(unlocked));
  EXPECT_EQ(llvm::cantFail(unlocked->write(*executor, {})),
            (folder + "/step-0").str());
  EXPECT_TRUE(llvm::sys::fs::is_directory(unfinished));
  EXPECT_EQ(warnings.size(), 2u);
  {
    auto locked = open();
    ASSERT_TRUE(static_cast<bool>(locked));
    llvm::cantFail(locked->write(*executor, {}).takeError());
    EXPECT_FALSE(llvm::sys::fs::exists(unfinished));
  }

  warnings.clear();
  lockFaults = {EIO};
  auto failed = open();
  ASSERT_FALSE(static_cast<bool>(failed));
  std::string text = describeError(failed.takeError()).message;
  EXPECT_NE(text.find("cannot lock '"), std::string::npos) << text;
  lockFaults = {EINTR, EINTR};
  EXPECT_TRUE(static_cast<bool>(open()));
  EXPECT_TRUE(warnings.empty());
}

/// A run that dies while it removes an old one leaves no part of it where a
/// checkpoint would be.
TEST_F(CheckpointTest, RemovesAtOneMoment) {
  std::string to = (folder + "/run").str(), left = to + "/latest.0123abcd";
  ProgramBuilder builder({});
  builder.stages(1);
  auto executor = llvm::cantFail(createExecutor(builder.program, {}));
  auto save = [&](int64_t step) {
    CheckpointOptions options;
    options.step = step;
    options.keep = 1;
    auto opened = llvm::cantFail(CheckpointFolder::open(to));
    return llvm::cantFail(opened.write(*executor, options));
  };
  save(1);
  removesLeft = 0;
  // Of its manifest, and of the folder that is empty then.
  for (int64_t step = 2; step < 5; ++step, removesLeft = step - 2) {
    save(step);
    for (const auto &[number, path] : checkpoint::list(to))
      EXPECT_TRUE(static_cast<bool>(readCheckpoint(path, {}))) << path;
  }
  removesLeft = std::numeric_limits<int64_t>::max();
  ASSERT_FALSE(
      static_cast<bool>(writeFileAtomically(left, llvm::StringRef("step-"))));
  ASSERT_FALSE(static_cast<bool>(
      writeFileAtomically(to + "/latest.mine", llvm::StringRef("mine"))));
  save(9);
  EXPECT_EQ(checkpoint::list(to).size(), 1u);
  std::set<std::string> names;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(to, code), end; !code && it != end;
       it.increment(code))
    names.insert(llvm::sys::path::filename(it->path()).str());
  EXPECT_EQ(names, (std::set<std::string>{".lock", "latest", "latest.mine",
                                          "step-9"}));
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
  EXPECT_EQ(read->front().second.pieces.front().tensor.rawBytes(),
            llvm::ArrayRef<uint8_t>({0, 1, 1, 1}));
}

} // namespace

//===- ResumeTest.cpp - Checkpoints of other types ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../../../lib/Session/Weights.h"

#include "ax/Runtime/Checkpoint.h"
#include "ax/Runtime/Safetensors.h"
#include "ax/Support/Checksum.h"
#include "ax/Support/Error.h"

#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

using namespace ax;
namespace json = llvm::json;

namespace {

/// A checkpoint of one state, `w`.
void write(const std::string &folder, const HostTensor &w) {
  auto file = llvm::cantFail(rt::SafetensorsWriter::create(
      folder + "/rank-0.safetensors", {{"w", w.getType(), w.getShape()}}));
  llvm::cantFail(file.write(w));
  llvm::cantFail(file.commit());
  json::Object part{{"file", "rank-0.safetensors"},
                    {"offset", 0},
                    {"sizes", json::Array{w.numElements()}},
                    {"strides", json::Array{1}},
                    {"checksum", checksumOf(w.rawBytes())}};
  json::Object state{{"dtype", rt::safetensorsName(w.getType())},
                     {"shape", json::Array(w.getShape())},
                     {"role", "weight"},
                     {"parts", json::Array{std::move(part)}}};
  json::Value content =
      json::Object{{"format", rt::checkpoint::format},
                   {"version", rt::checkpoint::version},
                   {"step", 1},
                   {"progress", json::Object()},
                   {"frozen", json::Object()},
                   {"states", json::Object{{"w", std::move(state)}}}};
  std::string checksum = rt::checkpoint::checksumOf(content);
  json::Value manifest =
      json::Object{{"checksum", checksum}, {"content", std::move(content)}};
  llvm::cantFail(writeFileAtomically(
      folder + "/manifest.json",
      llvm::StringRef(llvm::formatv("{0}", manifest).str())));
}

/// Weights from elsewhere may be narrower; what a run goes on with is what it
/// was.
TEST(ResumeTest, TakesNoNarrowerTypes) {
  llvm::SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("resume", folder));
  std::string path = folder.str().str();
  for (DType type : {DType::F32, DType::F16, DType::BF16}) {
    HostTensor w(type, {3});
    w.setDouble(1, 2);
    write(path, w);
    rt::Program program;
    rt::State &state = program.states.emplace_back();
    state.name = "w";
    state.shape = {3};
    state.isWeight = state.isMutable = true;
    auto resumed = resumeFrom({&program}, path, "", {});
    std::string text =
        resumed ? "" : describeError(resumed.takeError()).message;
    if (type == DType::F32)
      EXPECT_EQ(
          llvm::cantFail(program.states[0].pieces->assemble()).getDouble(1), 2)
          << text;
    else
      EXPECT_NE(text.find("w is 3x" + std::string(toString(type)) +
                          ", the plan has 3xf32"),
                std::string::npos)
          << text;
    WeightsRequest request;
    request.path = path;
    EXPECT_FALSE(useWeights({&program}, request, *rt::makeLoneWorld()));
  }
  llvm::sys::fs::remove_directories(folder);
}

} // namespace

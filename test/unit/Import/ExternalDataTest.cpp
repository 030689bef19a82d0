//===- ExternalDataTest.cpp - Weights in other files ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestModel.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace ax;
using namespace ax::test;
using onnx::TensorProto;

namespace {

/// y = x + w, both [2], w in another file.
struct ExternalModel : TestModel {
  ExternalModel(const std::string &file, const std::string &offset,
                const std::string &length) {
    input("x", TensorProto::FLOAT, {"2"});
    external("w", {2}, file, offset, length);
    node("Add", {"x", "w"}, {"y"});
    output("y", TensorProto::FLOAT);
  }

  void expectRefused(const char *text, ExitCode code = ExitCode::BadModel) {
    ErrorDescription error = importError();
    EXPECT_EQ(error.code, code) << error.message;
    EXPECT_NE(error.message.find(text), std::string::npos) << error.message;
  }
};

std::string twoFloats(float a, float b) {
  float values[] = {a, b};
  return std::string(reinterpret_cast<const char *>(values), sizeof(values));
}

} // namespace

TEST(ExternalData, IsReferredTo) {
  ExternalModel model("weights.bin", "4", "8");
  model.writeFile("weights.bin", "abcd" + twoFloats(3, 5));
  auto module = model.import();
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  auto states = findOps(**module, "ax.state");
  ASSERT_EQ(states.size(), 1u);
  auto state = mlir::cast<StateOp>(states[0]);
  EXPECT_EQ(state.getFile(), "weights.bin");
  EXPECT_EQ(state.getOffset(), 4u);
  EXPECT_EQ(state.getLength(), 8u);
  auto y = interpretModule(
      **module, {HostTensor::fromValues<float>({2}, {10.0f, 20.0f})});
  ASSERT_TRUE(bool(y)) << llvm::toString(y.takeError());
  EXPECT_EQ((*y)[0].getDouble(0), 13);
  EXPECT_EQ((*y)[0].getDouble(1), 25);
}

TEST(ExternalData, OutsideItsFile) {
  for (auto [offset, length, text] :
       {std::tuple("4", "8",
                   "needs 8 bytes at offset 4 of 'weights.bin', "
                   "which has 8"),
        std::tuple("9223372036854775807", "8", "weights.bin"),
        std::tuple("-4", "8", "weights.bin"),
        std::tuple("99999999999999999999", "8", "not a number"),
        std::tuple("0", "4", "its length says 4"),
        std::tuple("0", "-8", "its length says -8")}) {
    ExternalModel model("weights.bin", offset, length);
    model.writeFile("weights.bin", twoFloats(3, 5));
    model.expectRefused(text);
  }
}

TEST(ExternalData, LeavesTheFolder) {
  ExternalModel("../weights.bin", "0", "8").expectRefused("'..'");
  ExternalModel("/etc/hostname", "0", "8").expectRefused("absolute");
  ExternalModel("", "0", "8").expectRefused("not a file name");
  ExternalModel(".", "0", "8").expectRefused("not a regular file");
  ExternalModel hidden("a/../../weights.bin", "0", "8");
  mkdir((hidden.folder() + "/a").c_str(), 0777);
  hidden.expectRefused("'..'");
}

TEST(ExternalData, Links) {
  ExternalModel soft("link.bin", "0", "8");
  soft.writeFile("real.bin", twoFloats(3, 5));
  ASSERT_EQ(symlink("real.bin", (soft.folder() + "/link.bin").c_str()), 0);
  soft.expectRefused("symbolic link");
  ExternalModel hard("link.bin", "0", "8");
  hard.writeFile("real.bin", twoFloats(3, 5));
  ASSERT_EQ(link((hard.folder() + "/real.bin").c_str(),
                 (hard.folder() + "/link.bin").c_str()),
            0);
  hard.expectRefused("hard link");
  ExternalModel inside("folder/weights.bin", "0", "8");
  ASSERT_EQ(symlink("/tmp", (inside.folder() + "/folder").c_str()), 0);
  inside.expectRefused("symbolic link");
}

TEST(ExternalData, Missing) {
  ExternalModel("weights.bin", "0", "8")
      .expectRefused("tensor 'w'", ExitCode::InputOutput);
}

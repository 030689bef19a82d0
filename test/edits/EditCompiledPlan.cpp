//===- EditCompiledPlan.cpp - Compiled plans with another number ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   EditCompiledPlan PLAN.axc FOLDER COUNT
//
// Writes COUNT plans to FOLDER, in each of which one number of the programs is
// another one, and prints what was changed. Their checksums are right. What
// kernels say of themselves stays: it is as trusted as their code.
//
//===----------------------------------------------------------------------===//

#include "Fields.h"
#include "ax/Support/Error.h"

#include "llvm/Support/raw_ostream.h"

#include <random>

using namespace ax;
using namespace ax::rt;

namespace {

/// An archive (Fields.h) that numbers the integers of what it visits, and gives
/// one of them another value.
class Editor {
public:
  Editor(int64_t place, int64_t choice) : place(place), choice(choice) {}

  int64_t getCount() const { return count; }
  const std::string &getChange() const { return change; }

  template <typename T>
  void operator()(uint32_t number, T &value) {
    path.push_back(number);
    edit(value);
    path.pop_back();
  }

private:
  template <typename T>
  void edit(T &value) {
    if constexpr (std::is_same_v<T, bool>) {
      if (isHere(value))
        value = !value;
    } else if constexpr (std::is_enum_v<T>) {
      if (isHere(static_cast<int64_t>(value)))
        value = static_cast<T>((static_cast<int64_t>(value) + 1 +
                                choice % (fields::count<T> - 1)) %
                               fields::count<T>);
    } else if constexpr (std::is_integral_v<T>) {
      if (isHere(static_cast<int64_t>(value)))
        value = static_cast<T>(other(static_cast<int64_t>(value)));
    } else if constexpr (std::is_class_v<T>) {
      fields::visit(*this, value);
    }
  }
  void edit(double &) {}
  void edit(std::string &) {}
  void edit(std::vector<uint8_t> &) {}
  void edit(HostTensor &) {}
  void edit(std::map<std::string, std::string> &) {}
  void edit(Kernel &) {}
  void edit(sharding::Mesh &mesh) {
    std::vector<sharding::Axis> axes = mesh.getAxes();
    edit(axes);
    mesh = sharding::Mesh(std::move(axes));
  }
  template <typename T>
  void edit(std::vector<T> &values) {
    for (T &value : values)
      edit(value);
  }
  template <typename T>
  void edit(std::optional<T> &value) {
    if (value)
      edit(*value);
  }
  template <typename T>
  void edit(std::shared_ptr<T> &value) {
    edit(*value);
  }
  template <typename... Ts>
  void edit(std::variant<Ts...> &value) {
    path.push_back(static_cast<uint32_t>(value.index()));
    std::visit([&](auto &of) { edit(of); }, value);
    path.pop_back();
  }

  bool isHere(int64_t value) {
    if (count++ != place)
      return false;
    for (uint32_t number : path)
      change += (change.empty() ? "" : ".") + std::to_string(number);
    change += " was " + std::to_string(value);
    return true;
  }
  int64_t other(int64_t value) const {
    const int64_t choices[] = {value + 1,
                               value - 1,
                               2 * value,
                               -value - 1,
                               0,
                               value + 64,
                               value + 4096,
                               int64_t(1) << 20,
                               int64_t(1) << 31,
                               int64_t(1) << 62,
                               INT64_MIN,
                               value + (1 << 16)};
    return choices[static_cast<size_t>(choice) % std::size(choices)];
  }

  int64_t place, choice, count = 0;
  std::vector<uint32_t> path;
  std::string change;
};

llvm::Error run(const std::string &input, const std::string &folder,
                int64_t wanted) {
  std::mt19937_64 random(0);
  int64_t total = 0;
  for (int64_t i = 0; i < wanted; ++i) {
    auto plan = readCompiledPlan(input);
    if (!plan)
      return plan.takeError();
    if (i == 0) {
      Editor counter(-1, 0);
      counter(10, plan->targets);
      total = counter.getCount();
    }
    // Each place once, if there are as many edits.
    Editor editor(i * total / wanted, static_cast<int64_t>(random() >> 1));
    editor(10, plan->targets);
    std::string file = folder + "/" + std::to_string(i) + ".axc";
    if (llvm::Error error = writeCompiledPlan(file, std::move(*plan)))
      return error;
    llvm::outs() << editor.getChange() << '\n';
  }
  return llvm::Error::success();
}

} // namespace

int main(int argc, char **argv) {
  int64_t count = 0;
  if (argc != 4 || llvm::StringRef(argv[3]).getAsInteger(10, count) ||
      count < 1)
    return reportError("EditCompiledPlan",
                       makeError(ExitCode::Usage, "PLAN.axc FOLDER COUNT"));
  if (llvm::Error error = run(argv[1], argv[2], count))
    return reportError("EditCompiledPlan", std::move(error));
  return 0;
}

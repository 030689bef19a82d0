//===- Settings.cpp - What the simulated driver claims to be --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Settings.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>

namespace simgpu {

namespace {

class Reader {
public:
  explicit Reader(Settings &settings) : settings(settings) {}

  void number(const char *name, uint64_t &value) {
    if (const char *text = std::getenv(name))
      parse(name, text, value);
  }
  void numbers(const char *name, std::vector<uint64_t> &values) {
    const char *text = std::getenv(name);
    if (!text)
      return;
    values.clear();
    std::stringstream all(text);
    for (std::string one; std::getline(all, one, ',');)
      parse(name, one.c_str(), values.emplace_back());
    if (values.empty())
      parse(name, text, values.emplace_back());
  }
  void order() {
    const char *text = std::getenv("SIMGPU_ORDER");
    std::string_view order = text ? text : "eager", random = "random:";
    if (order == "lazy") {
      settings.order = Order::Lazy;
    } else if (order == "unfair") {
      settings.order = Order::Unfair;
    } else if (order.substr(0, random.size()) == random) {
      settings.order = Order::Random;
      parse("SIMGPU_ORDER", text + random.size(), settings.seed);
    } else if (order != "eager") {
      settings.fault = "SIMGPU_ORDER";
    }
  }
  /// `N`, or `WAITING<RECORDED`, or that with `:REMAINDER/DIVISOR`.
  void droppedWaits() {
    const char *text = std::getenv("SIMGPU_DROP_WAIT");
    if (!text)
      return;
    if (!std::strchr(text, '<')) {
      parse("SIMGPU_DROP_WAIT", text, settings.droppedWait);
      return;
    }
    DroppedWaits &waits = settings.droppedWaits;
    int end = 0;
    int read = std::sscanf(text, "%lu<%lu%n:%lu/%lu%n", &waits.waiting,
                           &waits.recorded, &end, &waits.remainder,
                           &waits.divisor, &end);
    if ((read != 2 && read != 4) || text[end] || waits.divisor == 0)
      settings.fault = "SIMGPU_DROP_WAIT";
  }
  void failure() {
    const char *text = std::getenv("SIMGPU_FAIL");
    if (!text)
      return;
    std::string all = text;
    size_t first = all.find(':'), second = all.rfind(':');
    if (first == second) {
      settings.fault = "SIMGPU_FAIL";
      return;
    }
    settings.failingCall = all.substr(0, first);
    parse("SIMGPU_FAIL", all.substr(first + 1, second - first - 1).c_str(),
          settings.failingNumber);
    parse("SIMGPU_FAIL", text + second + 1, settings.failingCode);
  }

private:
  void parse(const char *name, const char *text, uint64_t &value) {
    char *end = nullptr;
    value = std::strtoull(text, &end, 10);
    if (end == text || *end)
      settings.fault = name;
  }

  Settings &settings;
};

} // namespace

Settings readSettings() {
  Settings settings;
  Reader reader(settings);
  reader.order();
  reader.failure();
  reader.droppedWaits();
  if (const char *file = std::getenv("SIMGPU_COUNTS"))
    settings.countsFile = file;
  reader.number("SIMGPU_MEMORY", settings.memory);
  reader.number("SIMGPU_CARDS", settings.cards);
  reader.numbers("SIMGPU_CAPABILITY", settings.capabilities);
  reader.number("SIMGPU_DRIVER", settings.driver);
  reader.number("SIMGPU_PATIENCE", settings.patienceMilliseconds);
  reader.number("SIMGPU_JIT", settings.jitMilliseconds);
  reader.number("SIMGPU_LATE", settings.lateMicroseconds);
  return settings;
}

} // namespace simgpu

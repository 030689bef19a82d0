//===- ProfilerRange.h - What profilers are told of a thread ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_PROFILERRANGE_H
#define AX_RUNTIME_PROFILERRANGE_H

#include <string>

namespace ax::rt {

/// Who is told where a range of the calling thread's time begins, and where its
/// newest one ends.
struct RangeListener {
  void (*begin)(const char *name);
  void (*end)();
};

/// Returns the process's; null where nobody listens.
const RangeListener *getRangeListener();
/// Before ranks have threads; it stays.
void setRangeListener(const RangeListener *listener);

/// A range of a thread's time, with a name, as long as this lives.
class ProfilerRange {
public:
  /// `name` returns a text, and is asked only where somebody listens.
  template <typename Name>
  explicit ProfilerRange(Name &&name) : listener(getRangeListener()) {
    if (listener)
      listener->begin(std::string(name()).c_str());
  }
  ~ProfilerRange() {
    if (listener)
      listener->end();
  }
  ProfilerRange(const ProfilerRange &) = delete;
  ProfilerRange &operator=(const ProfilerRange &) = delete;

private:
  const RangeListener *listener;
};

} // namespace ax::rt

#endif // AX_RUNTIME_PROFILERRANGE_H

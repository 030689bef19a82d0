//===- NoThreads.h - A process that gets no more threads --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_UNIT_NOTHREADS_H
#define AX_TEST_UNIT_NOTHREADS_H

#include <pthread.h>

namespace ax {

/// As long as it is there, no thread starts: its stack would be larger than
/// memory is.
class NoThreads {
public:
  NoThreads() {
    pthread_getattr_default_np(&before);
    pthread_attr_t large;
    pthread_getattr_default_np(&large);
    pthread_attr_setstacksize(&large, size_t(1) << 60);
    pthread_setattr_default_np(&large);
    pthread_attr_destroy(&large);
  }
  NoThreads(const NoThreads &) = delete;
  ~NoThreads() {
    pthread_setattr_default_np(&before);
    pthread_attr_destroy(&before);
  }

private:
  pthread_attr_t before;
};

} // namespace ax

#endif // AX_TEST_UNIT_NOTHREADS_H

//===- LookUp.cpp - Bytes that a table has for bytes ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CpuLibrary.h"
#include "Threads.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace ax::rt {

namespace {

using LookUpFn = void (*)(const uint8_t *table, const uint8_t *x, uint8_t *y,
                          int64_t count);

void lookUp(const uint8_t *table, const uint8_t *x, uint8_t *y, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    y[i] = table[x[i]];
}

#ifdef __x86_64__
/// Where the table fits into four registers, of which an instruction looks up
/// 64 bytes in two.
__attribute__((target("avx512bw,avx512vbmi"))) void
lookUpInRegisters(const uint8_t *table, const uint8_t *x, uint8_t *y,
                  int64_t count) {
  constexpr int64_t width = 64;
  __m512i quarters[4];
  for (int64_t i = 0; i < 4; ++i)
    quarters[i] = _mm512_loadu_si512(table + i * width);
  auto ofVector = [&](__m512i bytes) __attribute__((
                      target("avx512bw,avx512vbmi"), always_inline)) {
    __m512i low = _mm512_permutex2var_epi8(quarters[0], bytes, quarters[1]);
    __m512i high = _mm512_permutex2var_epi8(quarters[2], bytes, quarters[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(bytes), low, high);
  };
  int64_t i = 0;
  for (; i + width <= count; i += width)
    _mm512_storeu_si512(y + i, ofVector(_mm512_loadu_si512(x + i)));
  __mmask64 rest = (uint64_t{1} << (count - i)) - 1;
  _mm512_mask_storeu_epi8(y + i, rest,
                          ofVector(_mm512_maskz_loadu_epi8(rest, x + i)));
}
#endif

LookUpFn fastestLookUp() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512vbmi") &&
      __builtin_cpu_supports("avx512bw"))
    return lookUpInRegisters;
#endif
  return lookUp;
}

class LookUp : public CpuOp {
public:
  explicit LookUp(int64_t count) : count(count) {}

  llvm::Error execute(void *const *arguments, void *) override {
    constexpr int64_t grain = 1 << 14;
    const auto *table = static_cast<const uint8_t *>(arguments[0]);
    const auto *x = static_cast<const uint8_t *>(arguments[1]);
    auto *y = static_cast<uint8_t *>(arguments[2]);
    parallelFor(count, grain, [&](int64_t begin, int64_t end) {
      run(table, x + begin, y + begin, end - begin);
    });
    return llvm::Error::success();
  }

private:
  int64_t count;
  LookUpFn run = fastestLookUp();
};

} // namespace

ExpectedCpuOp prepareLookUp(const LookUpDesc &desc) {
  return std::make_unique<LookUp>(desc.x.numElements());
}

} // namespace ax::rt

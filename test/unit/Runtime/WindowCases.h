//===- WindowCases.h - What convolutions and pools are tried on -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_UNIT_RUNTIME_WINDOWCASES_H
#define AX_TEST_UNIT_RUNTIME_WINDOWCASES_H

#include "LibraryRunner.h"

namespace ax::rt {

struct Case {
  std::vector<int64_t> x, w, strides, dilations, padsLow, padsHigh;
  int64_t groups = 1;
  std::vector<int64_t> outputPads;
};

/// NCHW, or NHWC in memory.
inline TensorDesc image(DType dtype, const std::vector<int64_t> &sizes,
                        bool last) {
  return last ? channelsLast(dtype, sizes) : TensorDesc::dense(dtype, sizes);
}

inline const Case cases[] = {
    {{2, 3, 9}, {4, 3, 3}, {2}, {1}, {1}, {1}, 1, {}},
    {{1, 4, 8, 7}, {6, 4, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, {}},
    {{2, 16, 5, 4}, {32, 16, 1, 1}, {2, 1}, {1, 1}, {0, 0}, {0, 0}, 1, {}},
    {{1, 8, 9, 9}, {8, 1, 3, 3}, {1, 2}, {1, 1}, {1, 0}, {1, 2}, 8, {}},
    {{1, 8, 9, 9}, {4, 2, 3, 2}, {1, 1}, {2, 3}, {2, 1}, {2, 0}, 4, {}},
    {{1, 2, 5, 6, 7},
     {3, 2, 2, 3, 3},
     {1, 2, 1},
     {1, 1, 2},
     {0, 1, 2},
     {1, 1, 2},
     1,
     {}},
    {{1, 3, 9, 9}, {16, 3, 7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}, 1, {}},
    {{1, 0, 9, 9}, {4, 0, 3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1, {}},
    {{1, 4, 9, 8}, {6, 4, 3, 2}, {1, 2}, {1, 1}, {-2, 1}, {1, -1}, 1, {}},
    // Depthwise, over signals: the window is wider than the padding, and as
    // wide.
    {{1, 32, 70}, {32, 1, 3}, {1}, {16}, {16}, {16}, 32, {}},
    {{2, 17, 40}, {17, 1, 3}, {2}, {1}, {1}, {0}, 17, {}},
    // To few channels, as vocoders and image decoders do.
    {{1, 32, 100}, {1, 32, 16}, {8}, {1}, {4}, {4}, 1, {}},
    {{2, 5, 20, 6}, {1, 5, 4, 4}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1, {}},
    {{1, 16, 9, 40}, {3, 16, 3, 4}, {2, 3}, {2, 2}, {1, 0}, {0, 1}, 1, {}},
    // With dimensions of a single place, whose window sees it, or padding.
    {{2, 6, 9, 1}, {4, 3, 3, 1}, {2, 3}, {1, 2}, {1, 0}, {1, 0}, 2, {}},
    {{2, 18, 1, 9}, {18, 1, 1, 3}, {3, 1}, {1, 2}, {0, 2}, {0, 2}, 18, {}},
    {{1, 4, 1, 7, 1},
     {6, 4, 1, 3, 1},
     {2, 1, 2},
     {1, 1, 1},
     {1, 1, 0},
     {0, 1, 0},
     1,
     {}},
    {{2, 5, 1, 1}, {7, 5, 1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1, {}},
};

} // namespace ax::rt

#endif // AX_TEST_UNIT_RUNTIME_WINDOWCASES_H

// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2x4x1 dp=3 pp=2 micro-batches=4}))' | FileCheck %s
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=4 order=data,pipe,depth,row,col}))' | FileCheck %s --check-prefix=ORDER
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{cp=2 order=context,data,pipe,depth,row,col}))' | FileCheck %s --check-prefix=CONTEXT
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{cp=2 order=context,context,data,pipe,depth,row,col}))' 2>&1 | FileCheck %s --check-prefix=BADORDER
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{cp=0}))' 2>&1 | FileCheck %s --check-prefix=NOCONTEXT
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2x2}))' 2>&1 | FileCheck %s --check-prefix=TP
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{order=data,pipe}))' 2>&1 | FileCheck %s --check-prefix=BADORDER
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{dp=0}))' 2>&1 | FileCheck %s --check-prefix=ZERO

// CHECK: ax.mesh [pipe = 2, data = 3, depth = 1, row = 2, col = 4] in time [micro = 4]
// ORDER: ax.mesh [data = 1, pipe = 1, depth = 1, row = 1, col = 4] in time [micro = 1]
// CONTEXT: ax.mesh [context = 2, data = 1, pipe = 1, depth = 1, row = 1, col = 1] in time [micro = 1]
// NOCONTEXT: error: axis context = 0: sizes are at least 1
// TP: --tp option: expected T, or ROWSxCOLUMNSxDEPTH, sizes at least 1
// BADORDER: error: the order of axes must name pipe, data, depth, row and col, each once, and may name context
// ZERO: error: axis data = 0: sizes are at least 1, and there are at most 1048576 ranks
ax.plan @p version 1 {
}

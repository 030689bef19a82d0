// RUN: axopt-opt %s --dump-pass-pipeline --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{frozen-rows={{w=1,9}} param-group={{rank<2:lr=1,weight_decay=0}}}))' 2> %t.text || true
// RUN: grep -F 'frozen-rows={{w=1,9}}' %t.text
// RUN: grep -F 'param-group={{rank<2:lr=1,weight_decay=0}}' %t.text

// A pipeline that is printed can be read again: elements with commas have braces
// of their own.
ax.plan @p version 1 {
}

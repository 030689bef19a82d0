/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Runs a plan once on made-up inputs and prints the first numbers of every
   output; or makes one of a model first, with flags as axopt has them:
     run_plan PLAN.mlir|PLAN.axc
     run_plan MODEL.onnx [FLAG]... */
#include "ax-c/axrun.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void printPort(const char *kind, const AxPort *port) {
  printf("%s %s: [", kind, port->name);
  for (int32_t i = 0; i < port->rank; ++i)
    printf(i ? ", %lld" : "%lld", (long long)port->shape[i]);
  printf("], %zu bytes\n", port->bytes);
}

/* Zeros for integers (indices into anything), a ramp for floats. */
static void *makeInput(const AxPort *port) {
  void *data = calloc(port->bytes ? port->bytes : 1, 1);
  if (data && port->type == AX_F32)
    for (size_t i = 0; i < port->bytes / sizeof(float); ++i)
      ((float *)data)[i] = (float)(i % 17) / 17 - 0.5f;
  return data;
}

/* `flags` ends with a null, as main's arguments do. */
static int compileAndLoad(const char *model, const char *const *flags,
                          AxSession **session) {
  AxCompileOptions options = AX_COMPILE_OPTIONS_INIT;
  options.flags = flags;
  AxPlan *plan;
  int code = axCompile(model, &options, &plan);
  if (code)
    return code;
  /* axSavePlan(plan, "model.axc") would keep it for other runs. */
  code = axLoadPlan(plan, NULL, session);
  axFreePlan(plan);
  return code;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s PLAN.mlir | MODEL.onnx [FLAG]...\n", argv[0]);
    return 2;
  }
  const char *ending = strrchr(argv[1], '.');
  int isModel = ending && !strcmp(ending, ".onnx");
  if (!isModel && argc > 2) {
    fprintf(stderr, "%s is a plan: it takes no flags\n", argv[1]);
    return 2;
  }
  AxSession *session;
  int code =
      isModel ? compileAndLoad(argv[1], (const char *const *)argv + 2, &session)
              : axLoad(argv[1], NULL, &session);
  if (code) {
    fprintf(stderr, "%s\n", axLastError());
    return code;
  }

  int32_t numInputs = axNumInputs(session), numOutputs = axNumOutputs(session);
  void **inputs = calloc(numInputs + 1, sizeof(void *));
  void **outputs = calloc(numOutputs + 1, sizeof(void *));
  for (int32_t i = 0; i < numInputs; ++i) {
    printPort("input", axInput(session, i));
    inputs[i] = makeInput(axInput(session, i));
  }
  for (int32_t i = 0; i < numOutputs; ++i)
    outputs[i] = malloc(axOutput(session, i)->bytes + 1);

  code = axRun(session, (const void *const *)inputs, outputs);
  if (code)
    fprintf(stderr, "%s\n", axLastError());
  for (int32_t i = 0; !code && i < numOutputs; ++i) {
    const AxPort *port = axOutput(session, i);
    printPort("output", port);
    if (port->type == AX_F32)
      for (size_t k = 0; k < port->bytes / sizeof(float) && k < 4; ++k)
        printf("  %g\n", ((const float *)outputs[i])[k]);
  }

  for (int32_t i = 0; i < numInputs; ++i)
    free(inputs[i]);
  for (int32_t i = 0; i < numOutputs; ++i)
    free(outputs[i]);
  free(inputs);
  free(outputs);
  axFree(session);
  return code;
}

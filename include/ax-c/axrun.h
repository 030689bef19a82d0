/*===- axrun.h - Compiling models and running plans from C -------*- C -*-===*\
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|* Load a plan, run it, free it; or make one of an ONNX model, save it, and   *|
|* run it at once. All ranks are threads of this process.                     *|
|* A session is used by one thread at a time; several sessions are            *|
|* independent. Functions return 0, or one of axrun's exit codes; then        *|
|* axLastError() tells what was wrong. Pointers must not be null where        *|
|* nothing else is said. Weight files are mapped, and must not become shorter *|
|* while a session lives: that is a bus error. After the first, runs allocate *|
|* no memory but what oneDNN takes for each of its calls.                     *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef AX_C_AXRUN_H
#define AX_C_AXRUN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct AxSession AxSession;

typedef enum AxDType {
  AX_F32,
  AX_F64,
  AX_F16,
  AX_BF16,
  AX_I8,
  AX_I16,
  AX_I32,
  AX_I64,
  AX_U8,
  AX_U16,
  AX_U32,
  AX_U64,
  AX_BOOL, /* one byte, 0 or 1 */
  AX_F8E4M3FN,
  AX_F8E5M2
} AxDType;

/* Name, type and global shape of an input or output. Owned by the session. */
typedef struct AxPort {
  const char *name;
  AxDType type;
  int32_t rank;
  const int64_t *shape;
  size_t bytes;
} AxPort;

/* Start with AX_OPTIONS_INIT: `AxOptions options = AX_OPTIONS_INIT;`. */
typedef struct AxOptions {
  /* sizeof(AxOptions): fields will be added at the end. */
  size_t size;
  /* Null: as the plan says; see axrun's flags of the same names. */
  const char *weights;
  const char *modelDir;
  const char *cacheDir;
  /* Null: the first. */
  const char *program;
  /* 0: OMP_NUM_THREADS, or a rank's share of the processors; 1 where there are
     several processes. */
  int32_t threadsPerRank;
  /* 0: for ever. */
  double timeoutSeconds;
  /* Of `weights`: lists that end with a null, or null; see axrun's flags
     --tied (each "A=B") and --leave-out. */
  const char *const *tied;
  const char *const *leaveOut;
  /* Told while loading what it can do without; null: standard error is. */
  void (*warn)(const char *message, void *context);
  void *warnContext;
  /* What ranks compute and communicate with; null: "cpu" and "local". */
  const char *device;
  const char *communicator;
  /* The card of each rank, as axrun's flag --devices: "0,0,1,1"; null: ranks
     are spread over those that there are. */
  const char *devices;
} AxOptions;

#define AX_OPTIONS_INIT                                                        \
  {sizeof(AxOptions),                                                          \
   NULL,                                                                       \
   NULL,                                                                       \
   NULL,                                                                       \
   NULL,                                                                       \
   0,                                                                          \
   60,                                                                         \
   NULL,                                                                       \
   NULL,                                                                       \
   NULL,                                                                       \
   NULL,                                                                       \
   NULL,                                                                       \
   NULL,                                                                       \
   NULL}

/* A plan in memory. Used by one thread at a time. */
typedef struct AxPlan AxPlan;

/* Start with AX_COMPILE_OPTIONS_INIT. */
typedef struct AxCompileOptions {
  /* sizeof(AxCompileOptions): fields will be added at the end. */
  size_t size;
  /* axopt's flags of input, layout and training (`axopt --help-all`), and
     --dump-tensors; also --target and --embed-weights, which say how an .axc is
     saved. A list that ends with a null, or null. "--tp=2" is one string, or
     "--tp", "2" are two. */
  const char *const *flags;
  /* Told what can be done without; null: standard error is. */
  void (*warn)(const char *message, void *context);
  void *warnContext;
} AxCompileOptions;

#define AX_COMPILE_OPTIONS_INIT {sizeof(AxCompileOptions), NULL, NULL, NULL}

/* Makes a plan of an ONNX model, as `axopt MODEL FLAG...` does, and verifies
   it. `options` may be null: AX_COMPILE_OPTIONS_INIT. On failure *plan is null.
 */
int axCompile(const char *modelPath, const AxCompileOptions *options,
              AxPlan **plan);

/* Writes the plan: with its kernels, compiled for --target or this processor,
   where the path ends in .axc, else as text. It must be none of the files that
   the plan was made from. axopt and axrun read either, axLoad, too. */
int axSavePlan(AxPlan *plan, const char *path);

/* As axLoad of the saved plan. The session lives without the plan. */
int axLoadPlan(AxPlan *plan, const AxOptions *options, AxSession **session);

/* `plan` may be null. */
void axFreePlan(AxPlan *plan);

/* `options` may be null: AX_OPTIONS_INIT. On failure *session is null.
   Of a plan that trains, the first program is a step, of which a run does one:
   the session's weights change, and nothing writes them (`axrun --save` does).
   `program` "eval" and "predict" are the others. */
int axLoad(const char *planPath, const AxOptions *options, AxSession **session);

int32_t axNumInputs(const AxSession *session);
int32_t axNumOutputs(const AxSession *session);
/* Null when there is no such input or output. */
const AxPort *axInput(const AxSession *session, int32_t index);
const AxPort *axOutput(const AxSession *session, int32_t index);

/* One step. inputs[i] holds axInput(session, i)->bytes bytes, row-major;
   outputs[i] receives axOutput(session, i)->bytes bytes. After a failure with
   code 8 (a rank failed or hung) every further run fails: free the session. */
int axRun(AxSession *session, const void *const *inputs, void *const *outputs);

/* What steps carry to each other (`axopt --carry`) is zero again, as in the
   beginning: for another sequence. A usage error (2) of a program that trains.
 */
int axReset(AxSession *session);

/* `session` may be null. */
void axFree(AxSession *session);

/* Of the last call that failed on this thread. */
const char *axLastError(void);

#ifdef __cplusplus
}
#endif

#endif /* AX_C_AXRUN_H */

//===- CApi.cpp - Running plans from C ------------------------------------===//
#include "ax-c/axrun.h"
#include "ax/Session/Session.h"
#include "ax/Support/Error.h"

#include <cstring>

using namespace ax;

struct AxSession {
  std::unique_ptr<Session> session;
  std::vector<AxPort> inputs, outputs;
};

static thread_local std::string lastError;

static int fail(llvm::Error error) {
  ErrorDescription description = describeError(std::move(error));
  lastError = description.message;
  return static_cast<int>(description.code);
}

static_assert(AX_BOOL == static_cast<int>(DType::Bool) &&
                  AX_I64 == static_cast<int>(DType::I64) &&
                  AX_U64 == static_cast<int>(DType::U64),
              "the C names follow DType");

static std::vector<AxPort> portsOf(const std::vector<rt::Port> &ports) {
  std::vector<AxPort> result;
  for (const rt::Port &port : ports) {
    int64_t bytes = byteSize(port.dtype);
    for (int64_t extent : port.shape)
      bytes *= extent;
    result.push_back({port.name.c_str(), static_cast<AxDType>(port.dtype),
                      static_cast<int32_t>(port.shape.size()),
                      port.shape.data(), static_cast<size_t>(bytes)});
  }
  return result;
}

int axLoad(const char *planPath, const AxOptions *options,
           AxSession **session) {
  *session = nullptr;
  SessionOptions made;
  if (options) {
    if (options->weights)
      made.weights = options->weights;
    if (options->modelDir)
      made.modelDir = options->modelDir;
    if (options->cacheDir)
      made.cacheDir = options->cacheDir;
    if (options->threadsPerRank > 0)
      made.threadsPerRank = options->threadsPerRank;
    if (options->timeoutSeconds > 0)
      made.timeoutSeconds = options->timeoutSeconds;
  }
  auto loaded = Session::load(planPath, made);
  if (!loaded)
    return fail(loaded.takeError());
  auto *result = new AxSession;
  result->session = std::move(*loaded);
  result->inputs = portsOf(result->session->getInputs());
  result->outputs = portsOf(result->session->getOutputs());
  *session = result;
  return 0;
}

int32_t axNumInputs(const AxSession *session) {
  return static_cast<int32_t>(session->inputs.size());
}

int32_t axNumOutputs(const AxSession *session) {
  return static_cast<int32_t>(session->outputs.size());
}

static const AxPort *at(const std::vector<AxPort> &ports, int32_t index) {
  bool isThere = index >= 0 && static_cast<size_t>(index) < ports.size();
  return isThere ? &ports[index] : nullptr;
}

const AxPort *axInput(const AxSession *session, int32_t index) {
  return at(session->inputs, index);
}

const AxPort *axOutput(const AxSession *session, int32_t index) {
  return at(session->outputs, index);
}

int axRun(AxSession *session, const void *const *inputs, void *const *outputs) {
  std::vector<HostTensor> tensors;
  const std::vector<rt::Port> &ports = session->session->getInputs();
  for (size_t i = 0; i < ports.size(); ++i) {
    auto tensor = HostTensor::fromBytes(
        ports[i].dtype, ports[i].shape,
        {static_cast<const uint8_t *>(inputs[i]), session->inputs[i].bytes});
    if (!tensor)
      return fail(tensor.takeError());
    tensors.push_back(std::move(*tensor));
  }
  auto results = session->session->run(tensors);
  if (!results)
    return fail(results.takeError());
  for (size_t i = 0; i < results->size(); ++i)
    std::memcpy(outputs[i], (*results)[i].data(), (*results)[i].numBytes());
  return 0;
}

void axFree(AxSession *session) { delete session; }

const char *axLastError(void) { return lastError.c_str(); }

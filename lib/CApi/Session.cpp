//===- Session.cpp - Running plans from C ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Common.h"
#include "ax/Session/Train.h"
#include "ax/Support/Error.h"
#include "ax/Support/GivenWeights.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cstring>

using namespace ax;

struct AxSession {
  std::unique_ptr<Session> session;
  /// This one is used for every run, so that none allocates.
  std::unique_ptr<rt::Request> request;
  std::vector<AxPort> inputs, outputs;
};

static thread_local std::string lastError;

int capi::fail(llvm::Error error) {
  ErrorDescription description = describeError(std::move(error));
  lastError = description.message;
  return static_cast<int>(description.code);
}

static_assert(AX_BOOL == static_cast<int>(DType::Bool) &&
                  AX_I64 == static_cast<int>(DType::I64) &&
                  AX_U64 == static_cast<int>(DType::U64) &&
                  AX_F8E5M2 == static_cast<int>(DType::F8E5M2),
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

std::vector<std::string> capi::listFrom(const char *const *texts) {
  std::vector<std::string> result;
  for (; texts && *texts; ++texts)
    result.push_back(*texts);
  return result;
}

capi::Tell capi::teller(void (*warn)(const char *, void *), void *context) {
  if (warn)
    return [=](const std::string &text) { warn(text.c_str(), context); };
  return [](const std::string &text) { tell("axrun", "warning: " + text); };
}

static llvm::Expected<SessionOptions> optionsFrom(const AxOptions *options) {
  SessionOptions made;
  AxOptions given = AX_OPTIONS_INIT;
  if (llvm::Error error =
          capi::copyOptions(options, given, "AxOptions", "AX_OPTIONS_INIT"))
    return error;
  if (given.weights)
    made.weights = given.weights;
  if (given.modelDir)
    made.modelDir = given.modelDir;
  if (given.cacheDir)
    made.cacheDir = given.cacheDir;
  if (given.program)
    made.program = given.program;
  if (given.device)
    made.device = given.device;
  if (given.communicator)
    made.communicator = given.communicator;
  if (given.devices) {
    auto cards = rt::parseCards(given.devices);
    if (!cards)
      return cards.takeError();
    made.cards = std::move(*cards);
  }
  made.threadsPerRank = given.threadsPerRank;
  made.timeoutSeconds = given.timeoutSeconds;
  auto ties = parseTies(capi::listFrom(given.tied));
  if (!ties)
    return ties.takeError();
  made.tied = std::move(*ties);
  made.leaveOut = capi::listFrom(given.leaveOut);
  made.warn = capi::teller(given.warn, given.warnContext);
  return made;
}

static llvm::Error load(const std::string &planPath, const AxOptions *options,
                        const PlanCompiler &compiler, AxSession &result) {
  auto made = optionsFrom(options);
  if (!made)
    return made.takeError();
  made->compiler = compiler;
  auto loaded = Session::load(planPath, *made);
  if (!loaded)
    return loaded.takeError();
  result.session = std::move(*loaded);
  auto request = result.session->getExecutor().createRequest();
  if (!request)
    return request.takeError();
  result.request = std::move(*request);
  for (auto [i, port] : llvm::enumerate(result.session->getInputs())) {
    auto tensor = HostTensor::allocate(port.dtype, port.shape);
    if (!tensor)
      return addContext(tensor.takeError(), "input '" + port.name + "'");
    result.request->inputs[i] = std::move(*tensor);
  }
  result.inputs = portsOf(result.session->getInputs());
  result.outputs = portsOf(result.session->getOutputs());
  return llvm::Error::success();
}

int capi::loadSession(const std::string &planPath, const AxOptions *options,
                      const PlanCompiler &compiler, AxSession **session) {
  *session = nullptr;
  auto result = std::make_unique<AxSession>();
  if (llvm::Error error = load(planPath, options, compiler, *result))
    return fail(std::move(error));
  *session = result.release();
  return 0;
}

int axLoad(const char *planPath, const AxOptions *options,
           AxSession **session) {
  *session = nullptr;
  if (!planPath)
    return capi::fail(makeError(ExitCode::Usage, "the plan's path is null"));
  return capi::loadSession(planPath, options, compileText, session);
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

static llvm::Error run(AxSession &session, const void *const *inputs,
                       void *const *outputs) {
  rt::Request &request = *session.request;
  for (auto [i, port] : llvm::enumerate(session.inputs)) {
    if (!inputs[i])
      return makeErrorf(ExitCode::BadInput, "the data of input '{0}' is null",
                        port.name);
    uint8_t *to = request.inputs[i].mutableData();
    const auto *from = static_cast<const uint8_t *>(inputs[i]);
    if (port.type == AX_BOOL)
      std::transform(from, from + port.bytes, to,
                     [](uint8_t value) { return value != 0; });
    else if (port.bytes)
      std::memcpy(to, from, port.bytes);
  }
  for (auto [i, port] : llvm::enumerate(session.outputs))
    if (!outputs[i])
      return makeErrorf(ExitCode::BadInput,
                        "the memory for output '{0}' is "
                        "null",
                        port.name);
  rt::Executor &executor = session.session->getExecutor();
  if (llvm::Error error = executor.submit(request))
    return error;
  if (llvm::Error error = executor.wait(request))
    return error;
  for (auto [i, port] : llvm::enumerate(session.outputs))
    if (port.bytes)
      std::memcpy(outputs[i], request.outputs[i].data(), port.bytes);
  return llvm::Error::success();
}

int axRun(AxSession *session, const void *const *inputs, void *const *outputs) {
  llvm::Error error = run(*session, inputs, outputs);
  return error ? capi::fail(std::move(error)) : 0;
}

static llvm::Error reset(AxSession &session) {
  if (isTraining(session.session->getProgram()))
    return makeError(ExitCode::Usage,
                     "axReset is not for a program that trains: load the plan "
                     "again");
  return session.session->getExecutor().resetCarried();
}

int axReset(AxSession *session) {
  llvm::Error error = reset(*session);
  return error ? capi::fail(std::move(error)) : 0;
}

void axFree(AxSession *session) { delete session; }

const char *axLastError(void) { return lastError.c_str(); }

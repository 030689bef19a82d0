//===- ModuleEntries.cpp - The simulated driver's kernels -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Simulator.h"

#include "llvm/ADT/ScopeExit.h"

#include <climits>
#include <cstring>
#include <thread>

using namespace simgpu;

static Simulator &sim() { return Simulator::get(); }

namespace {

/// Where a caller wants to read what is wrong with an image.
class ErrorLog {
public:
  CUresult read(unsigned count, const CUjit_option *options, void **values) {
    for (unsigned i = 0; i < count; ++i) {
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
        text = static_cast<char *>(values[i]);
      else if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
        size = &values[i];
      else
        return sim().refuse(CUDA_ERROR_INVALID_VALUE, "no such option here");
    }
    if (!text != !size)
      return sim().refuse(CUDA_ERROR_INVALID_VALUE,
                          "a log is a buffer and its size");
    return CUDA_SUCCESS;
  }
  void write(const std::string &message) {
    if (!text)
      return;
    // A number of 32 bits is in place of an address.
    auto room = static_cast<unsigned>(Simulator::number(*size));
    size_t length = room ? message.copy(text, room - 1) : 0;
    if (room)
      text[length] = 0;
    *size = Simulator::handle<void *>(length);
  }

private:
  char *text = nullptr;
  void **size = nullptr;
};

using Allocation = std::pair<const uintptr_t, GuardedBytes>;

/// Memory of the card that a kernel was given.
struct Argument {
  size_t number;
  const Allocation *memory;
};

/// What a stream launches when it gets there.
struct Launch {
  std::shared_ptr<const Function> function;
  ax::rt::LaunchShape shape;
  /// As the kernel takes them: addresses are those of the bytes. 64 bits each,
  /// or more.
  std::vector<std::vector<uint64_t>> values;
  std::vector<Argument> arguments;
};

} // namespace

SIMGPU_ENTRY CUresult cuModuleLoadDataEx(CUmodule *handle, const void *image,
                                         unsigned numOptions,
                                         CUjit_option *options, void **values) {
  // As a driver, it makes code beside other threads that do.
  std::this_thread::sleep_for(sim().beginLoad());
  llvm::scope_exit end([] { sim().endLoad(); });
  return sim().enterUnsafe("cuModuleLoadDataEx", [&](Context &context) {
    ErrorLog log;
    if (CUresult result = log.read(numOptions, options, values))
      return result;
    std::vector<Function> loaded;
    std::string why;
    CUresult result = loadImage(static_cast<const char *>(image),
                                sim().settings, context.card, loaded, why);
    log.write(why);
    if (result)
      return sim().refuse(result, why);
    uint64_t module = sim().nextNumber();
    sim().modules[module] = &context;
    for (Function &function : loaded) {
      function.context = &context;
      function.module = module;
      sim().functions[sim().nextNumber()] =
          std::make_shared<Function>(std::move(function));
    }
    *handle = Simulator::handle<CUmodule>(module);
    return CUDA_SUCCESS;
  });
}

/// Calls `body` with the number of a module of the context.
template <typename Body>
static CUresult enterModule(const char *call, CUmodule handle, Body &&body) {
  return sim().enterContext(call, [&](Context &context) -> CUresult {
    auto found = sim().modules.find(Simulator::number(handle));
    if (found == sim().modules.end() || found->second != &context)
      return sim().refuse(CUDA_ERROR_INVALID_HANDLE,
                          "the module is none of the context");
    return body(found->first);
  });
}

static Range codeOf(const Function &function) {
  uintptr_t code = Simulator::number(function.grid.getCode());
  return {code, code + 1};
}

SIMGPU_ENTRY CUresult cuModuleUnload(CUmodule handle) {
  return enterModule("cuModuleUnload", handle, [&](uint64_t module) {
    for (const auto &[number, function] : sim().functions) {
      const Item *user = function->module == module
                             ? sim().scheduler->findUser(codeOf(*function))
                             : nullptr;
      if (!user)
        continue;
      function->context->fault = CUDA_ERROR_ILLEGAL_ADDRESS;
      return sim().refuse(CUDA_ERROR_ILLEGAL_ADDRESS,
                          "work is to use it: " + user->what);
    }
    sim().forgetModule(module);
    return CUDA_SUCCESS;
  });
}

SIMGPU_ENTRY CUresult cuModuleGetFunction(CUfunction *handle, CUmodule of,
                                          const char *name) {
  return enterModule("cuModuleGetFunction", of, [&](uint64_t module) {
    for (const auto &[number, function] : sim().functions)
      if (function->module == module && function->entry.name == name) {
        *handle = Simulator::handle<CUfunction>(number);
        return CUDA_SUCCESS;
      }
    return sim().refuse(CUDA_ERROR_NOT_FOUND,
                        std::string("the module knows no kernel ") + name);
  });
}

static std::string toText(uintptr_t address) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%zx", address);
  return text;
}

/// Says where a kernel was that touched what is none of its memory.
static std::string describeFault(const Launch &launch, uintptr_t address) {
  for (const Argument &argument : launch.arguments) {
    const GuardedBytes &bytes = argument.memory->second;
    if (!bytes.isNear(address))
      continue;
    uintptr_t begin = Simulator::number(bytes.data());
    uintptr_t end = begin + bytes.size();
    std::string where = address < begin
                            ? std::to_string(begin - address) + " bytes before"
                            : std::to_string(address - end) + " bytes behind";
    return where + " the memory of parameter " +
           std::to_string(argument.number);
  }
  return toText(address) + ", which is none of its memory";
}

static CUresult run(const Launch &launch) {
  std::vector<const void *> parameters;
  for (const std::vector<uint64_t> &value : launch.values)
    parameters.push_back(value.data());
  const Function &function = *launch.function;
  ax::GridOrder order;
  if (sim().settings.order == Order::Random)
    order.seed = sim().gridRandom();
  ax::GridEnd end = function.grid.run(launch.shape, parameters.data(), order);
  const std::string who = "kernel " + function.entry.name;
  if (!end.stuck.empty())
    return sim().refuse(CUDA_ERROR_LAUNCH_TIMEOUT, who + ": " + end.stuck);
  if (end.fault)
    return sim().refuse(CUDA_ERROR_ILLEGAL_ADDRESS,
                        who + " touched " + describeFault(launch, *end.fault));
  for (const Argument &argument : launch.arguments)
    if (!argument.memory->second.isPatternIntact())
      return sim().refuse(CUDA_ERROR_ILLEGAL_ADDRESS,
                          who + " wrote next to the memory of parameter " +
                              std::to_string(argument.number));
  return CUDA_SUCCESS;
}

/// Makes of a pointer's value the address of its bytes.
static CUresult translate(Context &context, const PtxParameter &parameter,
                          size_t number, Launch &launch, Item &item) {
  uint64_t &value = launch.values[number].front();
  // Who has no bytes there may say so; others touch what nobody can.
  if (value == 0)
    return CUDA_SUCCESS;
  const Allocation *memory = context.memory.around(value);
  const std::string what =
      "parameter " + std::to_string(number) + ", " + toText(value) + ", ";
  if (!memory)
    return sim().refuse(CUDA_ERROR_INVALID_VALUE,
                        what + "is not in memory of the card");
  if (value % parameter.alignment)
    return sim().refuse(CUDA_ERROR_INVALID_VALUE,
                        what + "is no multiple of " +
                            std::to_string(parameter.alignment));
  const auto &[begin, bytes] = *memory;
  launch.arguments.push_back({number, memory});
  item.uses.push_back({begin, begin + bytes.size()});
  value = value - begin + Simulator::number(bytes.data());
  return CUDA_SUCCESS;
}

static CUresult readParameters(Context &context, void **parameters,
                               Launch &launch, Item &item) {
  const PtxEntry &entry = launch.function->entry;
  if (!parameters && !entry.parameters.empty())
    return sim().refuse(CUDA_ERROR_INVALID_VALUE, "there are no parameters");
  for (size_t i = 0; i < entry.parameters.size(); ++i) {
    const PtxParameter &parameter = entry.parameters[i];
    std::vector<uint64_t> &value =
        launch.values.emplace_back(parameter.bytes / sizeof(uint64_t) + 1);
    std::memcpy(value.data(), parameters[i], parameter.bytes);
    if (!parameter.isPointer)
      continue;
    if (CUresult result = translate(context, parameter, i, launch, item))
      return result;
  }
  return CUDA_SUCCESS;
}

SIMGPU_ENTRY CUresult cuLaunchKernel(CUfunction kernel, unsigned gridX,
                                     unsigned gridY, unsigned gridZ,
                                     unsigned blockX, unsigned blockY,
                                     unsigned blockZ, unsigned sharedBytes,
                                     CUstream handle, void **parameters,
                                     void **extra) {
  return sim().enterStream(
      "cuLaunchKernel", handle, [&](Context &context, Stream &stream) {
        auto refuse = [](const char *why) {
          return sim().refuse(CUDA_ERROR_INVALID_VALUE, why);
        };
        auto found = sim().functions.find(Simulator::number(kernel));
        if (found == sim().functions.end() ||
            found->second->context != &context)
          return sim().refuse(CUDA_ERROR_INVALID_HANDLE,
                              "the kernel is none of the context");
        if (!gridX || !gridY || !gridZ || !blockX || !blockY || !blockZ)
          return refuse("a launch without threads");
        if (gridY != 1 || gridZ != 1 || blockY != 1 || blockZ != 1)
          return refuse("here grids and blocks have one dimension");
        if (blockX > mostThreads || gridX > INT_MAX)
          return refuse("a block has up to 1024 threads, a grid up to "
                        "2147483647 blocks");
        if (sharedBytes || extra)
          return refuse("here is no shared memory, and nothing extra");
        Launch launch{found->second, {gridX, blockX}, {}, {}};
        Item item;
        item.what = "kernel " + launch.function->entry.name;
        item.uses = {codeOf(*launch.function)};
        if (CUresult result = readParameters(context, parameters, launch, item))
          return result;
        item.run = [launch = std::move(launch)] { return run(launch); };
        sim().scheduler->push(stream, std::move(item));
        if (!stream.capture)
          sim().setComputing(true);
        return CUDA_SUCCESS;
      });
}

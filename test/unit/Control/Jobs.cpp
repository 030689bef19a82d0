//===- Jobs.cpp - Jobs of several processes, for tests --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Jobs.h"

#include <csignal>
#include <cstdlib>
#include <poll.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace ax::rt {

ControlOptions makeOptions(int32_t process, int32_t numProcesses) {
  ControlOptions options;
  options.place = {process, numProcesses, "host" + std::to_string(process)};
  options.address = "127.0.0.1";
  options.timeout = std::chrono::seconds(20);
  options.joinTimeout = std::chrono::seconds(60);
  return options;
}

std::function<llvm::Expected<std::string>(std::string)>
ThreadBroadcast::at(int32_t process) {
  return [this, process](std::string value) -> llvm::Expected<std::string> {
    if (process == 0)
      promise.set_value(std::move(value));
    return future.get();
  };
}

std::string textOf(llvm::Error error) {
  return llvm::toString(std::move(error));
}

static std::string runWorld(ControlOptions options, const Body &body) {
  llvm::Expected<std::unique_ptr<World>> world =
      joinControl(std::move(options));
  return world ? body(**world) : textOf(world.takeError());
}

std::vector<std::string> runThreads(int32_t numProcesses, const Body &body,
                                    const Change &change) {
  ThreadBroadcast broadcast;
  std::vector<std::string> results(static_cast<size_t>(numProcesses));
  std::vector<std::thread> threads;
  for (int32_t process = 0; process < numProcesses; ++process)
    threads.emplace_back([&, process] {
      ControlOptions options = makeOptions(process, numProcesses);
      options.broadcast = broadcast.at(process);
      if (change)
        change(options);
      results[static_cast<size_t>(process)] =
          runWorld(std::move(options), body);
    });
  for (std::thread &thread : threads)
    thread.join();
  return results;
}

static void writeAll(int file, const std::string &text) {
  if (write(file, text.data(), text.size()) !=
      static_cast<ssize_t>(text.size()))
    std::abort();
}

/// What comes before the end, or what is there at all within `time`.
static std::string readAll(int file, std::chrono::milliseconds time) {
  std::string text;
  char bytes[4096];
  auto last = std::chrono::steady_clock::now() + time;
  for (;;) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(
        last - std::chrono::steady_clock::now());
    pollfd item = {file, POLLIN, 0};
    if (left.count() <= 0 || poll(&item, 1, static_cast<int>(left.count())) < 1)
      return "silence";
    ssize_t got = read(file, bytes, sizeof(bytes));
    if (got <= 0)
      return text;
    text.append(bytes, static_cast<size_t>(got));
  }
}

Processes::Processes(int32_t numProcesses, const Body &body,
                     const Change &change) {
  std::vector<std::pair<int, int>> addresses, texts;
  auto makePipe = [] {
    int ends[2];
    if (pipe(ends))
      std::abort();
    return std::make_pair(ends[0], ends[1]);
  };
  for (int32_t process = 0; process < numProcesses; ++process) {
    addresses.push_back(makePipe());
    texts.push_back(makePipe());
  }
  for (int32_t process = 0; process < numProcesses; ++process) {
    auto index = static_cast<size_t>(process);
    pid_t pid = fork();
    if (pid) {
      pids.push_back(pid);
      results.push_back(texts[index].first);
      continue;
    }
    for (size_t i = 0; i < texts.size(); ++i)
      if (i != index)
        close(texts[i].second);
    // Who holds an end of a pipe keeps its reader waiting.
    if (process != 0)
      for (auto &ends : addresses)
        close(ends.second);
    ControlOptions options = makeOptions(process, numProcesses);
    options.broadcast = [&](std::string value) -> llvm::Expected<std::string> {
      if (process != 0)
        return readAll(addresses[index].first, std::chrono::seconds(60));
      for (auto &ends : addresses) {
        writeAll(ends.second, value);
        close(ends.second);
      }
      return value;
    };
    if (change)
      change(options);
    writeAll(texts[index].second, runWorld(std::move(options), body));
    std::exit(0);
  }
  for (auto &ends : addresses) {
    close(ends.first);
    close(ends.second);
  }
  for (auto &ends : texts)
    close(ends.second);
}

Processes::~Processes() {
  for (pid_t pid : pids)
    if (pid) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  for (int file : results)
    close(file);
}

void Processes::signal(int32_t process, int number) const {
  kill(pids[static_cast<size_t>(process)], number);
}

std::string Processes::wait(int32_t process, std::chrono::milliseconds time) {
  return readAll(results[static_cast<size_t>(process)], time);
}

int Processes::reap(int32_t process) {
  int status = 0;
  waitpid(pids[static_cast<size_t>(process)], &status, 0);
  pids[static_cast<size_t>(process)] = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::string makeSteps(World &world, int numSteps) {
  for (int step = 1; step <= numSteps; ++step) {
    if (llvm::Error error = world.barrier("step " + std::to_string(step)))
      return textOf(std::move(error));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return "all steps";
}

} // namespace ax::rt

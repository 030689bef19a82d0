//===- Flags.h - Command lines --------------------------------*- C++ -*-===//
//
// LLVM's command line, but what is wrong with one is an error like others, not
// a line that LLVM prints.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SUPPORT_FLAGS_H
#define AX_SUPPORT_FLAGS_H

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"

#include <string>
#include <utility>

namespace ax {

namespace detail {
/// What was wrong with the flags parsed so far.
llvm::raw_ostream &flagErrors();

bool parseValue(llvm::StringRef text, bool &value);
bool parseValue(llvm::StringRef text, int64_t &value);
bool parseValue(llvm::StringRef text, uint64_t &value);
bool parseValue(llvm::StringRef text, int32_t &value);
bool parseValue(llvm::StringRef text, double &value);
} // namespace detail

/// A flag that is true or false, or a number.
template <typename T>
class Flag : public llvm::cl::opt<T> {
public:
  using llvm::cl::opt<T>::opt;
  using llvm::cl::opt<T>::operator=;

private:
  bool handleOccurrence(unsigned position, llvm::StringRef name,
                        llvm::StringRef text) override {
    T value;
    if (!detail::parseValue(text, value))
      return this->error("'" + text + "' is no value for it", name,
                         detail::flagErrors());
    this->setValue(value);
    this->setPosition(position);
    return false;
  }
};

/// Usage errors. --help shows the flags of `category`; --help and --version end
/// the process.
llvm::Error parseFlags(int argc, char **argv,
                       llvm::cl::OptionCategory &category,
                       llvm::StringRef overview);

/// `NAME=FILE`: names and files may hold '=' themselves, so that the first one
/// behind which an existing file is named counts, else the first. Both are
/// empty where one would be.
std::pair<llvm::StringRef, llvm::StringRef> splitAtFile(llvm::StringRef text);

/// Whether `text` has brackets of any kind more than `limit` deep, outside of
/// quoted strings: what parsers that recurse must not be given.
bool nestsDeeper(llvm::StringRef text, int limit);

} // namespace ax

#endif // AX_SUPPORT_FLAGS_H

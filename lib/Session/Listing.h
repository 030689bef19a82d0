//===- Listing.h - A program's commands as text -----------------*- C++ -*-===//
#ifndef AX_LIB_SESSION_LISTING_H
#define AX_LIB_SESSION_LISTING_H

#include "ax/Runtime/Program.h"
#include "llvm/Support/raw_ostream.h"

namespace ax {

/// Every stage's buffers and commands, one a line: for people.
void printListing(const rt::Program &program, llvm::raw_ostream &os);

} // namespace ax

#endif // AX_LIB_SESSION_LISTING_H

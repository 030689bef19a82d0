//===- Flags.td - What the tables of command lines are made of ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each tool has a table of its flags, a Flags.td, which includes this file. Its
// parser, its help, its manual page and the completions of shells are
// made of that table (ax/Support/FlagTable.h).
//
//===----------------------------------------------------------------------===//
#ifndef AX_SUPPORT_FLAGS
#define AX_SUPPORT_FLAGS

include "llvm/Option/OptParser.td"

// What a value must be; without one of these, and without Values, it is text.
def Integer : OptionFlag;
def Natural : OptionFlag;
def Number : OptionFlag;
// Several at once, between commas.
def CommaSeparated : OptionFlag;
// More than once; the others may be given once.
def Repeatable : OptionFlag;
// Values are what shells offer; there are others.
def Suggested : OptionFlag;
// On the first screen of the help.
def Common : OptionFlag;

// A section of the help, with an example. Sections come in the order of their
// records' names.
class Section<string title, string example> : OptionGroup<title>,
                                              HelpText<example>;

// --name=VALUE or --name VALUE. `values` are all that there are, if not empty.
multiclass Value<string name, string metaVar, string help, OptionGroup section,
                 list<OptionFlag> flags = [], string values = ""> {
  def NAME : Separate<["--"], name>, MetaVarName<metaVar>, HelpText<help>,
             Group<section>, Flags<flags>, Values<values>;
  def NAME#_joined : Joined<["--"], name#"=">;
}

// --name, or --name=false to take back what a file says.
multiclass Switch<string name, string help, OptionGroup section,
                  list<OptionFlag> flags = []> {
  def NAME : Flag<["--"], name>, HelpText<help>, Group<section>, Flags<flags>;
  def NAME#_joined : Joined<["--"], name#"=">;
}

// --name, or --name=VALUE.
multiclass OptionalValue<string name, string metaVar, string help,
                         OptionGroup section, string values,
                         list<OptionFlag> flags = []> {
  def NAME : Flag<["--"], name>, MetaVarName<metaVar>, HelpText<help>,
             Group<section>, Flags<flags>, Values<values>;
  def NAME#_joined : Joined<["--"], name#"=">;
}

// The same as another flag with a value.
multiclass LongName<string name, Option other> {
  def NAME : Separate<["--"], name>, Alias<other>;
  def NAME#_joined : Joined<["--"], name#"=">, Alias<other>;
}

def help9_about : Section<"About", "">;
defm help : Switch<"help", "The flags that most need", help9_about>;
def h : Flag<["-"], "h">, Alias<help>;
defm help_all : Switch<"help-all", "All flags", help9_about>;
defm version : Switch<"version", "Versions of this tool and of LLVM",
                      help9_about>;
defm print_man : Switch<"print-man", "This page, for man(1)", help9_about>;
defm print_completion
    : Value<"print-completion", "SHELL", "Completions for a shell to source",
            help9_about, [], "bash,zsh">;

#endif // AX_SUPPORT_FLAGS

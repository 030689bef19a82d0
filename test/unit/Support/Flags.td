//===- Flags.td - The table that FlagTableTest.cpp reads ---*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

include "ax/Support/Flags.td"

def help1_numbers : Section<"Numbers", "tool --count=1">;
def help2_words : Section<"Words", "tool --color=red">;

defm count : Value<"count", "N", "How many", help1_numbers, [Integer, Common]>;
defm count_long : LongName<"number-of-things", count>;
defm seed : Value<"seed", "SEED", "Not negative", help1_numbers, [Natural]>;
defm rate : Value<"rate", "R", "Any number", help1_numbers, [Number]>;
defm color : Value<"color", "COLOR", "What it looks like", help2_words,
                   [Common], "red,green,blue">;
defm atem : Value<"atem", "NAME", "Almost the next", help2_words>;
defm shade : Value<"shade", "SHADE", "How dark", help2_words, [Suggested],
                   "light,dark">;
defm item : Value<"item", "NAME", "One more", help2_words, [Repeatable]>;
defm stage : Value<"stage", "NAME,..", "Some of [these]: it's long enough that "
                   "one line of eighty columns cannot hold it", help2_words,
                   [CommaSeparated, Repeatable], "first,second">;
defm loud : Switch<"loud", "More noise", help2_words>;
defm explain : OptionalValue<"explain", "text|json", "Why", help2_words,
                             "text,json">;
def o : JoinedOrSeparate<["-"], "o">, MetaVarName<"FILE">, HelpText<"Output">,
        Group<help2_words>;
def pass : Joined<["--"], "pass-">, MetaVarName<"NAME">,
           HelpText<"Passed on">, Group<help2_words>, Flags<[Repeatable]>;

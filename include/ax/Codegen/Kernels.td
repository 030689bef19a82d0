//===- Kernels.td - From what is computed to kernels -------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_TD
#define AX_CODEGEN_KERNELS_TD

include "mlir/Pass/PassBase.td"

def JoinAccumulation : Pass<"axl-join-accumulation"> {
  let summary = "Products add to sums over micro-batches";
  let description = [{
    For cuBLASLt: the gradient of a weight that is what a product gives is added to
    that of the micro-batches before by the product itself, where that lies; the first
    one writes it (`axl.accumulate`). Otherwise a kernel would read both and write
    the sum.
  }];
}

def SplitScans : Pass<"axl-split-scans"> {
  let summary = "Running sums of few long rows are done in parts";
  let description = [{
    For GPUs, where a thread does a row of `cumulative` alone: rows are seen as [parts,
    rest], each part has a running sum of its own, and one of the parts' sums is added,
    which is split likewise; narrow floats are f32 until the end. Shapes alone decide
    how many parts there are; a size that has no suitable divisor is padded for sums,
    and stays whole for others, as do products of floats.
  }];
}

def SplitReductions : Pass<"axl-split-reductions"> {
  let summary = "Large reductions to few elements are done in two steps";
  let description = [{
    For GPUs, where each element of a reduction's result is one block's at most:
    reduced dimensions are seen as [parts, rest], or of sums of columns as
    [rest, parts], and parts are reduced in a kernel of their own, narrow floats
    in f32 until the end. Shapes alone decide how many parts there are; a size
    that has no suitable divisor stays whole. Softmax, norms and `arg_reduce` of
    few long rows, and a softmax along a dimension that is not the last, become
    reductions and element-wise operations before that.
  }];
}

def ComputeWhereRead : Pass<"axl-compute-where-read"> {
  let summary = "What would be read from memory, and is made of as little, is made where it is read";
  let description = [{
    For GPUs, whose kernels wait for memory: a narrow float that is widened, a mask of
    indices, the exponentials of a softmax over rows that no kernel keeps, a gate's
    SiLU would be written once and be read by each kernel. They read what it is made of,
    and do the arithmetic again, unless that takes long. So they do where that is about as much,
    and in memory for others anyway: x of (x - mean) in a norm's gradients. What a
    library or an exchange reads is in memory all the same.
  }];
}

def Fuse : Pass<"axl-fuse"> {
  let summary = "Kernels: operations that are computed together";
  let description = [{
    Afterwards a stage has what becomes commands (`axl.fusion`, operations of
    libraries, collectives), constants in memory, and views that strides express.
  }];
  let options = [
    Option<"separately", "separately", "bool", "false",
           "Every operation is a kernel of its own: slow, for finding faults">,
    Option<"gpu", "gpu", "bool", "false",
           "Operands of products lie as cuBLASLt reads them">
  ];
}

def ComputeOnce : Pass<"axl-compute-once"> {
  let summary = "What weights alone are needed for is done in the first step";
  let description = [{
    Marks commands of states that no step changes, and of constants, `axl.once`:
    they are done in the first step, whose results stay in memory. That is what
    compiling has added for a device, as a bias in the type of a product, or a weight
    whose rows are padded; the model's own is in the program `prepare`. What would
    take more memory of a stage than what it is made of, as weights of four bits that
    are multiplied as bf16, is made anew in each step, unless it is little; but where
    nothing trains, integers of eight bits, and f16, may become as many of f32. Made
    anew is likewise what the stage gives, and what differs from micro-batch to micro-batch.
  }];
}

def RoundAtUpdate : Pass<"axl-round-at-update", "::ax::PlanOp"> {
  let summary = "Weights are rounded where they are updated";
  let description = [{
    A kernel that only rounds a state, which one list of the program alone stores, is
    done once (`axl.once`), and the kernel that makes the new value leaves it rounded
    for the next step, too; or one behind that, of lists that are done for each
    micro-batch. The copies (`axl.copies`) stay in memory beside the state.
  }];
}

def JoinKernels : Pass<"axl-join-kernels"> {
  let summary = "Small kernels that compute alike are launched as one";
  let description = [{
    For GPUs. Small kernels that compute the same of other operands become one of up
    to eight, unless a result is needed before the last of them; and two that read
    the same large tensors element by element, or sum them along the same dimensions,
    become one, where what the second makes is little beside the stage's arguments.
  }];
}

def MarkInPlace : Pass<"axl-mark-in-place"> {
  let summary = "Kernels that write a new value over the old one";
  let description = [{
    Of a state, or of a sum over micro-batches: if nothing reads the old value
    later, and the kernel reads of it only the element that it is about to write. Who
    reads the new value reads it there.
  }];
}

def ReadParts : Pass<"axl-read-parts"> {
  let summary = "Kernels are given parts of tensors";
  let description = [{
    Where a kernel reads an operand through a slice alone, and that is in one piece
    and begins at a multiple of 64 bytes, it is given that piece: kernels that do the
    same with different parts are equal then. What a kernel writes in place is its
    operand as a whole.
  }];
}

def PlaceBuffers : Pass<"axl-place-buffers"> {
  let summary = "Where the results of commands lie in memory";
  let description = [{
    Each result of a command (`axl.fusion`, a library operation, a collective) gets
    an `#axl.place`: where the stage's result goes if that is `direct`, or a state
    whose old value nothing reads from there on; in the memory of an operand that
    nothing reads afterwards, where a kernel is `in_place`, a convolution adds its
    residual, or an all-reduce ends, be it in the arena or a sum over micro-batches
    (`axl.spent`); or in the arena, such that values of which both are still to be
    read do not overlap. Both ends of an exchange that was started stay until it is
    waited for.
  }];
}

def ChooseNests : Pass<"axl-choose-nests"> {
  let summary = "Shows which loops a kernel will have";
  let description = [{
    A kernel's operations become what is written of them (softmax and norms are
    reductions and element-wise operations), and attributes say with which loops:
    `nests` of the kernel has the iterations that threads share, and how results
    are written; `axl.nests` of an operation how its rows are computed, which is
    before that. `8(4x2) 16[3]` is a loop over 8 points, which stand for two
    dimensions, around one over 16, whose first three points are written apart;
    `once` is no loop. In front of them stands what they do: `elements` are summed
    in a register, `whole` is all of a row that is kept in memory, and of what has
    many terms there are `blocks`, `clear`, `add block` and what is `left`
    (`NestRole` in lib/Codegen/Kernels/Nests.h). For a GPU, whose threads are many,
    an iteration is one element, or one row; `100 <4>` is a loop over 100 points
    that have four neighbours each, which a thread reads and writes at once, and
    `3 2 {32x8} <4>` is 3 times 2 tiles of 32 rows and 8 times 4 columns, which a
    block reads before it writes them.

    Commands are made of what was before this: it is chosen again, in the same way,
    when a kernel is compiled, which one from the cache is not.
  }];
  let options = [
    Option<"gpu", "gpu", "bool", "false", "Loops that they have on GPUs">
  ];
}

def PrintKernels : Pass<"axl-print-kernels"> {
  let summary = "Prints the code of kernels for a GPU";
  let description = [{
    Each kernel is compiled, and what a driver would get is printed: PTX, as text.
    How many threads are to do how many iterations stands in front of it, and the
    scratch memory that each of them needs.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"sm_90\"", "The GPU: sm_80, ...">
  ];
}

#endif // AX_CODEGEN_KERNELS_TD

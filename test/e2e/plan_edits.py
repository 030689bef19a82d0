# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans that train, edited so that they would go wrong without a word."""
import re

from _training import GPT, axrun, compiled

from cases import Failed, run, scratch, tool

STORE = re.compile(r"^ *ax\.store (?P<state>@[^,]+), (?P<value>%[\w#]+) .*\n",
                   re.M)


def refused(folder, plan, text, says):
    path = f"{folder}/edited.mlir"
    assert text != plan, says
    with open(path, "w") as file:
        file.write(text)
    done = run(tool("axopt"), path, "--verify", expect=5)
    if says not in done.stderr:
        raise Failed(f"expected: {says}\ngot: {done.stderr}")
    axrun(path, "--random-inputs=1", expect=5, says=says)


def storesOf(text, ending=""):
    """By state, those of the program that trains."""
    found = {}
    for match in STORE.finditer(text):
        if match["state"].strip('"').endswith(ending):
            found.setdefault(match["state"], []).append(match)
    return found


def withOperands(text, *changes):
    """Stores with the operands of other ones, or other operands, where all of
    these are known."""
    def valueOf(source):
        return source if isinstance(source, str) else source["value"]

    end = max(match.end() for change in changes for match in change
              if not isinstance(match, str))
    moved = "".join(match[0].replace(f"{match['value']} ",
                                     f"{valueOf(source)} ", 1)
                    for match, source in changes)
    text = text[:end] + moved + text[end:]
    for match, _ in sorted(changes, key=lambda change: -change[0].start()):
        text = text[:match.start()] + text[match.end():]
    return text


def storesInEvaluation(text, state, program="eval"):
    """What is loaded there is stored again: it does nothing, it seems."""
    main, evaluation = text.split(f"ax.program @{program}")
    load = re.compile(rf"^( *)(%\S+) = ax\.load {re.escape(state)} : (.*)\n",
                      re.M)
    evaluation, count = load.subn(
        rf"\g<0>\1ax.store {state}, \2 : \3\n", evaluation)
    assert count, state
    return main + f"ax.program @{program}" + evaluation


def replicas():
    """A tied weight that one of its two stages does not store."""
    with scratch() as folder:
        plan = compiled(folder, "--pp=2", model=GPT,
                        shape="input=4x32").read_text()
        state, (first, second) = next(
            (state, stores) for state, stores in storesOf(plan).items()
            if len(stores) == 2 and "exp_avg" not in state
            and "optimizer" not in state)
        says = "only: the others would go on with the old value"
        for store in first, second:
            half = plan[:store.start()] + plan[store.end():]
            refused(folder, plan, half, says)
            refused(folder, plan, storesInEvaluation(half, state), says)
        for program in "eval", "predict":
            refused(folder, plan, storesInEvaluation(plan, state, program),
                    f"but @{program} changes no state")


def choiceOf(plan, store):
    """Condition, new value and old value of what is stored."""
    return re.search(rf"(?<={re.escape(store['value'])} = ax\.select )"
                     r"(?P<condition>%\S+), (?P<new>%\S+), (?P<old>%\S+)",
                     plan[plan.rfind("ax.stage", 0, store.start()):])


def choices(folder, plan, mean, square, weight):
    """The choice itself: left out, exchanged, or of something else."""
    says = "a value that is no choice between a new one and that of @"
    unmade = "what is not made of its value before"
    by = {"mean": mean, "square": square, "weight": weight}
    parts = {name: choiceOf(plan, store) for name, store in by.items()}
    if not all(parts.values()):
        return
    start = plan.rfind("ax.stage", 0, mean.start())

    def edited(name, new, old, condition=None):
        part = parts[name]
        at = start + part.start()
        return (plan[:at] + f"{condition or part['condition']}, {new}, {old}"
                + plan[start + part.end():])

    def appended(name, line):
        """A value of its own, computed before the choice is made."""
        at = plan.rfind("\n", 0, start + parts[name].start()) + 1
        return lambda text: text[:at] + line + "\n" + text[at:]

    for name, store in by.items():
        new, old = parts[name]["new"], parts[name]["old"]
        for value in new, old:
            refused(folder, plan, withOperands(plan, (store, value)), says)
        refused(folder, plan, edited(name, old, new), says)
        refused(folder, plan, edited(name, old, old), unmade)
        condition = parts[name]["condition"]
        never = (f"%never = ax.unary logical_not {condition} : "
                 "tensor<i1, #ax.layout<[]>> -> tensor<i1, #ax.layout<[]>>")
        refused(folder, plan, appended(name, never)(
            edited(name, new, old, "%never")),
            "a choice by something else than whether the loss and the norm of "
            "the gradient are finite")
    refused(folder, plan, edited("square", parts["mean"]["new"],
                                 parts["square"]["old"]), unmade)
    # What the weight becomes is made of the mean, too.
    line = plan[weight.start():plan.find("\n", weight.start())]
    kind = line[line.rfind(" : ") + 3:]
    wrong = (f"%wrong = ax.select {parts['mean']['condition']}, "
             f"{parts['weight']['new']}, {parts['mean']['old']} : tensor<i1, "
             f"#ax.layout<[]>>, {kind}, {kind} -> {kind}\n"
             f"ax.store {mean['state']}, %wrong : {kind}\n")
    later = plan[:weight.start()] + wrong + plan[weight.start():]
    refused(folder, plan, later[:mean.start()] + later[mean.end():],
            f"stores in @{weight['state'].strip(chr(34) + '@')} the new value "
            "of @")


def values(*flags):
    """Stores that take another state's value, or none that could be theirs."""
    with scratch() as folder:
        plan = compiled(folder, *flags).read_text()
        mean, square = (
            next(iter(storesOf(plan, ending).values()))[0]
            for ending in (".exp_avg", ".exp_avg_sq"))
        weight = next(stores[0] for state, stores in storesOf(plan).items()
                      if state.strip('@"') ==
                      mean["state"].strip('@"').removesuffix(".exp_avg"))
        says = "a value that is no choice between a new one and that of @"
        for changes in (((mean, square), (square, mean)),
                        ((square, mean),), ((square, weight),),
                        ((weight, mean),)):
            refused(folder, plan, withOperands(plan, *changes), says)
        choices(folder, plan, mean, square, weight)
        # A weight whose moments go on without it.
        refused(folder, plan, plan[:weight.start()] + plan[weight.end():],
                "and nothing else that this stores or gives is made of it")
        counter, = storesOf(plan, "optimizer.step").values()
        for stores in [square], counter:
            text = plan
            for store in reversed(stores):
                text = text[:store.start()] + text[store.end():]
            refused(folder, plan, text, "is zero at first, and no step of @main "
                    "stores it")
        taken = next(iter(storesOf(plan, "optimizer.finite_steps").values()),
                     None)
        if taken:
            refused(folder, plan,
                    withOperands(plan, (counter[0], taken[0])), says)
            refused(folder, plan, withOperands(plan, (taken[0], counter[0])),
                    "what is not made of its value before")


def cases(every):
    yield "replicas of a weight", replicas
    for flags in ("",), ("--precision=fp16",), ("--dp=2", "--zero=3"), \
            ("--pp=2", "--micro-batches=2"):
        yield " ".join(("values", *flags)), values, *filter(None, flags)

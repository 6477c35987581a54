"""The trusted launcher of a C ABI, written from the launch spec.

Invariants:
- It holds nothing of the candidate but the types of the launch spec's arguments.
"""

from __future__ import annotations

from akf.routes.launch_spec import LaunchSpec

_C_TYPES = {"int32": "std::int32_t", "int64": "std::int64_t", "float32": "float", "float64": "double"}


def launcher_source(spec: LaunchSpec) -> str:
    """C++ of the trusted launcher: one call of `akf_batch` does `count` launches on `count` pointer tuples.

    The table holds, launch by launch, one pointer per argument that is not a scalar, in call order.
    Integers and floating scalars come in two arrays, each in call order.
    """
    parameters: list[str] = []
    values: list[str] = []
    pointers = integers = floats = 0
    for arg in spec.args:
        if arg.kind != "scalar":
            qualifier = "const void*" if arg.kind == "tensor" and arg.access == "in" else "void*"
            parameters.append(qualifier)
            values.append(f"row[{pointers}]")
            pointers += 1
        elif arg.dtype.startswith("int"):
            parameters.append(_C_TYPES[arg.dtype])
            values.append(f"static_cast<{_C_TYPES[arg.dtype]}>(integers[{integers}])")
            integers += 1
        else:
            parameters.append(_C_TYPES[arg.dtype])
            values.append(f"static_cast<{_C_TYPES[arg.dtype]}>(floats[{floats}])")
            floats += 1
    return f"""// Written by akf from the launch spec. Do not edit.
#include <cstdint>

using Kernel = void (*)({", ".join(parameters)});

extern "C" std::int64_t akf_batch(void* function, void* const* table, const std::int64_t* integers,
                                  const double* floats, std::int64_t count) {{
    const Kernel kernel = reinterpret_cast<Kernel>(function);
    (void)integers;
    (void)floats;
    std::int64_t done = 0;
    for (; done < count; ++done) {{
        void* const* row = table + done * {pointers};
        kernel({", ".join(values)});
    }}
    return done;
}}
"""

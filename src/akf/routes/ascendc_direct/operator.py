"""An operator: device code, and host parts that run inside the engine that serves it.

Invariants:
- A tree with sources below `op_host/` is an operator: device code below `op_kernel/`, tiling, shape inference and
  registration in `op_host/NAME.cpp`, the binding to torch, where there is one, in `torch_binding/NAME.cpp`.
- Host parts are separate outputs with a role of their own and the trust class `host_code`; none of them is a device
  object, and a Build that holds nothing else says `host_parts`.
- The command lines of tiling, shape inference and aclnn are those of the project that CANN's msOpGen writes; that of
  the binding is `torch_npu.utils.cpp_extension`'s, without Python. `op_build` loads the operator's registration and
  writes the sources of its aclnn, in the sandbox like everything else.
- Each part is made where its own tools are; what is missing for another one is noted.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from akf.routes.route import Job, Plan, SourceRefused, Step, plain_sources
from akf.routes.sandbox import Limits

DEVICE, HOST, BINDING = "op_kernel/", "op_host/", "torch_binding/"
HEADER = "op_def_registry.h"
LIBRARY = "all_ops.so"
_CXX = (".cpp",)
_COMPILE = Limits(wall_s=600.0)
_SHARED = ("-O2", "-fPIC", "-shared", "-Wl,-z,relro,-z,now,-z,noexecstack", "-Wl,--build-id=none")
_HOST = ("-std=c++17", "-D_GLIBCXX_USE_CXX11_ABI=0", "-I", "src/op_kernel", "-I", "{toolkit}/include")
_TILING = ("-lexe_graph", "-lregister", "-ltiling_api")
_REGISTRY = ("-Wl,--whole-archive", "-lrt2_registry", "-Wl,--no-whole-archive", "-lpthread")
_TORCH = (
    "-std=c++20", "-DNDEBUG", "-fvisibility=hidden",
    "-I", "{packages}/torch_npu/include", "-I", "{packages}/torch_npu/include/third_party/hccl/inc",
    "-I", "{packages}/torch/include", "-I", "{packages}/torch/include/torch/csrc/api/include",
)  # fmt: skip
_TORCH_LIBRARIES = (
    "-L", "{packages}/torch/lib", "-L", "{packages}/torch_npu/lib", "-lc10", "-ltorch", "-ltorch_cpu", "-ltorch_npu",
    "-Wl,-z,defs",
)  # fmt: skip


def is_operator(job: Job) -> bool:
    """Whether the sources are an operator's."""
    return any(source.startswith(HOST) for source in job.sources)


def plan(job: Job, device: Step) -> Plan:
    """The device object and every host part.

    Args:
        job: what is built.
        device: the compiler's call for the device code.

    Raises:
        SourceRefused: the registration is not in one file that names the operator.
    """
    hosts = plain_sources([each for each in job.sources if each.startswith(HOST)], _CXX, "an operator's host code")
    if len(hosts) > 1:
        raise SourceRefused(f"one operator is registered in one source, not in {', '.join(hosts)}; include the others")
    name = PurePosixPath(hosts[0]).stem
    aclnn = (f"aclnn_{name}.cpp", f"aclnn_{name}.h")
    libraries = ("-L", "{toolkit}/lib64")
    described = _host((*_HOST, "-g", *hosts, *libraries, *_TILING), LIBRARY)
    generated = ("op_proto.cc", "op_proto.h", *aclnn)
    generate = Step("op_build", (f"out/{LIBRARY}", "out"), generated, (), _COMPILE, needs=(HEADER,), part=True)
    tiling = (*_HOST, "-fvisibility=hidden", "-DOP_TILING_LIB", *hosts, *libraries, "-lnnopbase", *_TILING, *_REGISTRY)
    proto = (*_HOST, "-fvisibility=hidden", "-DOP_PROTO_LIB", *hosts, "out/op_proto.cc", *libraries, *_TILING)
    calls = (*_HOST, "-I", "out", f"out/{aclnn[0]}", *libraries, "-lascendcl", "-lnnopbase", "-lpthread")
    steps = [
        device,
        _host(tiling, "host_tiling.so"),
        described,
        generate._replace(variables={"LD_LIBRARY_PATH": "{toolkit}/lib64"}),
        _host((*proto, *_REGISTRY), "infer_shape.so", "op_build"),
        _host(calls, "aclnn.so", "op_build"),
    ]
    bindings = [each for each in job.sources if each.startswith(BINDING)]
    if bindings:
        sources = plain_sources(bindings, _CXX, "a binding to torch")
        words = (*_SHARED, *_TORCH, *sources, *_TORCH_LIBRARIES, "-o", "out/torch_binding.so")
        made = Step("g++", words, ("torch_binding.so",), (), _COMPILE, needs=("torch", "torch_npu"), part=True)
        steps.append(made)
    return Plan(tuple(steps))


def _host(words: tuple[str, ...], file: str, *needs: str) -> Step:
    """A shared object against CANN's host libraries."""
    argv = (*_SHARED, *words, "-o", f"out/{file}")
    return Step("g++", argv, (file,), (), _COMPILE, needs=(HEADER, *needs), part=True)

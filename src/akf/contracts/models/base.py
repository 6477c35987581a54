"""The ground every artifact model stands on.

Invariants:
- The models are the one source of truth; `schemas/*.schema.json` are generated from them (`akf.contracts.generate`).
- Unknown fields are refused; values are strict (no coercion; a JSON array is a tuple) and frozen.
- Every field carries a description and an example; a number carries its unit in its name.
- A placeholder is `null`, allowed only on a field made with `fill`, which names the command that will fill it.
- A required field may also be `null` as an answer, if it is made with `stated`, which says what `null` means.
- The example of a nested object is made of its fields' examples (`sample`), so it cannot go out of date.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema

SCHEMA_VERSION = 1


def _take_lists(node: Any) -> None:
    if isinstance(node, dict):
        if node.get("type") == "tuple":
            node["strict"] = False
        for child in node.values():
            _take_lists(child)
    elif isinstance(node, list):
        for child in node:
            _take_lists(child)


class Value(BaseModel):
    """A value object inside an artifact."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        defer_build=True,
        protected_namespaces=(),
    )

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Let a JSON array be a tuple; everything else stays strict."""
        schema = handler(source)
        _take_lists(schema)
        return schema


def about(description: str, example: Any, **constraints: Any) -> Any:
    """A required field with its meaning and an example."""
    return Field(..., description=description, examples=[example], **constraints)


def maybe(description: str, example: Any, **constraints: Any) -> Any:
    """An optional field: absent or `null` means "not stated", which is never read as "none"."""
    return Field(default=None, description=description, examples=[example], **constraints)


def several(description: str, example: Any, **constraints: Any) -> Any:
    """An optional list: absent means empty."""
    return Field(default=(), description=description, examples=[example], **constraints)


def fill(command: str, description: str, example: Any, **constraints: Any) -> Any:
    """A required field that a draft leaves `null` until `command` fills it."""
    return Field(
        ...,
        description=description,
        examples=[example],
        json_schema_extra={"x-akf-fill": command},
        **constraints,
    )


def stated(null_means: str, description: str, example: Any, **constraints: Any) -> Any:
    """A required field whose `null` is an answer by itself, never a placeholder."""
    return Field(
        ..., description=description, examples=[example], json_schema_extra={"x-akf-null": null_means}, **constraints
    )


def sample(model: type[Value], **changes: Any) -> dict[str, Any]:
    """The example of a nested object: its required fields' own examples, and whatever `changes` says."""
    fields = {
        name: field.examples[0] for name, field in model.model_fields.items() if field.is_required() and field.examples
    }
    return fields | changes


def _never(value: bool) -> bool:
    if value:
        raise ValueError("must be false")
    return value


_SEGMENT = r"(?:[^/.\\:\x00-\x1f\x7f][^/\\:\x00-\x1f\x7f]*|\.[^/.\\:\x00-\x1f\x7f][^/\\:\x00-\x1f\x7f]*|\.\.[^/\\:\x00-\x1f\x7f]+)"

Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")]
ShortId = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,47}$")]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
PublicKeyText = Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$")]
Hex256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
RelPath = Annotated[str, Field(pattern=rf"^{_SEGMENT}(?:/{_SEGMENT})*$", max_length=512)]
Text = Annotated[str, Field(min_length=1, max_length=4096)]
MaybeEmpty = Annotated[str, Field(max_length=4096)]
Name = Annotated[str, Field(min_length=1, max_length=256)]
Symbol = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,31}$")]
Code = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{2,63}$")]
Whole = Annotated[int, Field(ge=-(2**53) + 1, le=2**53 - 1)]
Count = Annotated[int, Field(ge=0, le=2**53 - 1)]
Positive = Annotated[int, Field(ge=1, le=2**53 - 1)]
Ratio = Annotated[float, Field(ge=0, le=1)]
NonNegative = Annotated[float, Field(ge=0)]
Speedup = Annotated[float, Field(ge=1, le=1_000_000)]
Scalar = bool | Whole | float | str
# Not literals: in Python 1 == True and 0 == False, so a literal takes either for the other.
Version = Annotated[
    int, Field(ge=SCHEMA_VERSION, le=SCHEMA_VERSION), WithJsonSchema({"const": SCHEMA_VERSION, "type": "integer"})
]
Never = Annotated[bool, AfterValidator(_never), WithJsonSchema({"const": False, "type": "boolean"})]

Platform = Literal["ascend", "host", "cuda"]
Lane = Literal["per_framework_native_ab", "matched_policy", "framework_native_best"]
Route = Literal[
    "ascendc_direct",
    "catlass_cpp",
    "triton_ascend",
    "tilelang_ascend_ascendc",
    "tilelang_ascend_pto_headers",
    "tilelang_ascend_npuir",
    "catlass_dsl",
    "pypto_tensor_ptoas",
    "pypto_pro_cce",
    "pto_isa_direct",
    "host_cpp",
    "triton_cuda",
]
AnyRoute = Literal[Route, "python"]
"""A route, or `python`: a module that is called as it is, and that nothing compiles."""
Isolation = Literal["bwrap", "userns", "container", "uid", "none"]
StageName = Literal["short_prefill", "long_prefill", "decode", "mixed"]
TaskType = Literal["kernel", "integration", "configuration", "pipeline"]
DataClass = Literal["public", "internal", "confidential"]
GateName = Literal["environment", "operator", "model", "serving", "reproduction", "release"]
Better = Literal["lower", "higher"]
GraphMode = Literal["eager", "graph"]
DType = Literal[
    "float64", "float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2",
    "int64", "int32", "int16", "int8", "int4", "uint8", "bool",
]  # fmt: skip
Kind = Literal[
    "OptimizationSuite", "Campaign", "Workload", "Capture", "Run", "Task", "CandidateManifest", "Candidate", "Build",
    "Plan", "Gate", "Decision", "Portability", "ReleaseRecord", "KnowledgeEntry", "Adapter", "Triage", "Toolchain",
    "LaneResult", "Deployment", "RollbackPlan", "Revocation", "TrustRoot", "ServingBenchmark",
]  # fmt: skip


class Artifact(Value):
    """What opens every artifact."""

    schema_uri: str | None = Field(
        default=None,
        alias="$schema",
        description="Schema location for editors; not part of the meaning and dropped when the artifact is frozen.",
        examples=["../../schemas/campaign.schema.json"],
    )
    schema_version: Version = about("Version of this artifact's schema.", 1)
    id: Id = about("Name of this artifact, unique among its siblings.", "qwen3-8b-a3-bf16")


EXAMPLE_IDS: dict[str, str] = {
    "OptimizationSuite": "example-suite",
    "Campaign": "example-campaign",
    "Workload": "example-workload",
    "Capture": "example-capture",
    "Run": "example-campaign-0a1b2c3d4e5f",
    "Task": "example-task",
    "Triage": "example-triage",
    "Plan": "operator",
    "Gate": "operator",
}


def refs(*kinds: str) -> list[dict[str, Any]]:
    """Example parents of these kinds, with digests that are visibly made up."""
    return [
        {"kind": kind, "id": EXAMPLE_IDS.get(kind, "example-candidate"), "digest": "sha256:" + str(number % 10) * 64}
        for number, kind in enumerate(kinds)
    ]


class Ref(Value):
    """A parent, named by kind, id and the digest of its canonical file."""

    kind: Kind = about("Kind of the artifact referred to.", "Run")
    id: Id = about("Id of the artifact referred to.", "example-campaign-0a1b2c3d4e5f")
    digest: Digest = about("SHA-256 of the artifact's canonical file bytes.", "sha256:" + "0" * 64)

"""Run: the immutable snapshot that everything below it names as its parent. Owner: supervisor."""

from typing import Literal

from akf.contracts.models.base import (
    Artifact,
    Digest,
    Hex256,
    Kind,
    Name,
    Ref,
    Value,
    about,
    refs,
    sample,
)


class Source(Value):
    """One hand-written input: its digest before canonicalisation."""

    kind: Kind = about("Kind of the input.", "Campaign")
    name: Name = about("File name of the input, without its folder.", "host_reference.json")
    digest: Digest = about("SHA-256 of the file as it was written by hand.", "sha256:" + "0" * 64)


class Run(Artifact):
    kind: Literal["Run"] = about("Kind of this artifact.", "Run")
    nonce: Hex256 = about("Random 256 bits that make this run unlike any other.", "0" * 64)
    akf_version: Name = about("Version of AKF that made the snapshot.", "0.1.0")
    parents: tuple[Ref, ...] = about(
        "Suite, Campaign, Workload and Capture, in this order, by digest of their canonical bytes.",
        refs("OptimizationSuite", "Campaign", "Workload", "Capture"),
        min_length=4,
        max_length=4,
    )
    sources: tuple[Source, ...] = about(
        "Digests of the same inputs as they were written by hand.",
        [sample(Source, kind=kind) for kind in ("OptimizationSuite", "Campaign", "Workload", "Capture")],
        min_length=4,
        max_length=4,
    )

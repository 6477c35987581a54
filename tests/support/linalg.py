"""Linalg IR of our own in the form that the adapter of triton_ascend writes, and Builds that carry it.

A program scales one row of `n` elements to a softmax; `{...}` places are where a test makes it wrong.
"""

from __future__ import annotations

import json
from pathlib import Path

from akf.contracts.canonical import canonical_bytes, digest
from akf.contracts.shipped import shipped

KERNEL = shipped("examples") / "kernels" / "triton_ascend" / "softmax"
SOFTMAX = """
module {
  func.func @softmax(%lock: memref<?xi8>, %workspace: memref<?xi8>, %x: memref<?xf32> {tt.tensor_kind = 0 : i32},
      %out: memref<?xf32> {tt.tensor_kind = 1 : i32}, %n: i32, %gx: i32, %gy: i32, %gz: i32, %px: i32, %py: i32,
      %pz: i32) attributes {global_kernel = "local", mix_mode = "aiv"} {
    %zero = arith.constant 0 : index
    %most = arith.constant 1024 : index
    %none = arith.constant 0xFF800000 : f32
    %nothing = arith.constant 0.0 : f32
    %at = arith.muli %px, %n : i32
    %offset = arith.index_cast %at : i32 to index
    %size = arith.index_cast %n : i32 to index
    %row = memref.reinterpret_cast %x to offset: [%offset], sizes: [1024], strides: [1]
      : memref<?xf32> to memref<1024xf32, strided<[1], offset: ?>>
    %local = memref.alloc() : memref<1024xf32>
    %short = arith.cmpi slt, %size, %most : index
    scf.if %short {
      linalg.fill ins(%none : f32) outs(%local : memref<1024xf32>)
    } {hivm.unlikely_condition}
    %from = memref.subview %row[0] [%size] [1]
      : memref<1024xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1], offset: ?>>
    %to = memref.subview %local[0] [%size] [1] : memref<1024xf32> to memref<?xf32, strided<[1]>>
    memref.copy %from, %to : memref<?xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1]>>
    %value = bufferization.to_tensor %local restrict writable : memref<1024xf32>
    annotation.mark %value {MayImplicitTransposeWithLastAxis} : tensor<1024xf32>
    %one = bufferization.alloc_tensor() : tensor<f32>
    %start = linalg.fill ins(%none : f32) outs(%one : tensor<f32>) -> tensor<f32>
    %max = linalg.reduce ins(%value : tensor<1024xf32>) outs(%start : tensor<f32>) dimensions = [0]
      (%a: f32, %b: f32) { %larger = arith.maxnumf %a, %b : f32 linalg.yield %larger : f32 }
    %largest = tensor.extract %max[] : tensor<f32>
    %empty = tensor.empty() : tensor<1024xf32>
    %wide = linalg.fill ins(%largest : f32) outs(%empty : tensor<1024xf32>) -> tensor<1024xf32>
    %distance = arith.subf %value, %wide : tensor<1024xf32>
    %power = math.exp %distance : tensor<1024xf32>
    %two = bufferization.alloc_tensor() : tensor<f32>
    %begin = linalg.fill ins(%nothing : f32) outs(%two : tensor<f32>) -> tensor<f32>
    %total = linalg.reduce ins(%power : tensor<1024xf32>) outs(%begin : tensor<f32>) dimensions = [0]
      (%a: f32, %b: f32) { %sum = arith.addf %a, %b : f32 linalg.yield %sum : f32 }
    %divisor = tensor.extract %total[] : tensor<f32>
    %every = linalg.fill ins(%divisor : f32) outs(%empty : tensor<1024xf32>) -> tensor<1024xf32>
    %result = arith.divf %power, %every : tensor<1024xf32>
    %target = memref.reinterpret_cast %out to offset: [%offset], sizes: [1024], strides: [1]
      : memref<?xf32> to memref<1024xf32, strided<[1], offset: ?>>
    %part = tensor.extract_slice %result[0] [%size] [1] : tensor<1024xf32> to tensor<?xf32>
    %place = memref.subview %target[0] [%size] [1]
      : memref<1024xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1], offset: ?>>
    bufferization.materialize_in_destination %part in writable %place
      : (tensor<?xf32>, memref<?xf32, strided<[1], offset: ?>>) -> ()
    // more
    return
  }
}
"""


def edited(*changes: tuple[str, str]) -> str:
    """The kernel with texts replaced; each must occur."""
    text = SOFTMAX
    for old, new in changes:
        if old not in text:
            raise ValueError(old)
        text = text.replace(old, new)
    return text


def carrying(folder: Path, text: str = SOFTMAX) -> Path:
    """A diagnostic Build of triton_ascend in a folder, with this Linalg IR."""
    data = text.encode()
    target = folder / "build" / "candidate" / "kernel.linalg.mlir"
    target.parent.mkdir(parents=True)
    target.write_bytes(data)
    value = json.loads((shipped("docs/examples") / "artifacts" / "build.minimal.json").read_bytes())
    output = {**value["outputs"][0], "path": "candidate/kernel.linalg.mlir", "role": "ir", "trust": "data"}
    output |= {"digest": digest(data), "bytes": len(data)}
    value |= {"parents": [], "diagnostic": True, "route": "triton_ascend", "soc": "ascend910b4", "stage": "linalg"}
    value |= {"outputs": [output], "launch": json.loads((KERNEL / "launch.json").read_bytes())}
    (folder / "build.json").write_bytes(canonical_bytes(value))
    return folder

"""RMSNorm over rows, one row a turn; sums in float32, in vectors of 64. Columns are a multiple of 64."""

from catlass import tla

LANES = 64
UNPACK = tla.params.NormalLoadParams(load_dist=tla.params.LoadDist.DIST_UNPACK_B16)
PACK = tla.params.NormalStoreParams(store_dist=tla.params.StoreDist.DIST_PACK_B32)
EXACT = tla.params.CastParams()
ROUNDED = tla.params.CastParams()


@tla.kernel
def rms_norm(
    x: tla.Tensor,
    weight: tla.Tensor,
    out: tla.Tensor,
    T: tla.Constexpr[int],
    H: tla.Constexpr[int],
    eps: tla.Constexpr[float],
) -> None:
    """Sizes and `eps` are of the specialisation."""
    loaded = tla.flag("loaded", tla.arch.MTE2, tla.arch.VECTOR)
    done = tla.flag("done", tla.arch.VECTOR, tla.arch.MTE3)
    stored = tla.flag("stored", tla.arch.MTE3, tla.arch.MTE2)
    near = tla.allocate(H, tla.Float16, tla.AddressSpace.ub, 256)
    factors = tla.allocate(H, tla.Float16, tla.AddressSpace.ub, 256)
    made = tla.allocate(H, tla.Float16, tla.AddressSpace.ub, 256)
    with tla.vector():
        line = tla.make_layout(tla.make_shape(1, H), tla.make_stride(H, 1))
        far_factor = tla.make_tensor(weight.ptr, line)
        factor = tla.make_tensor_like(factors, far_factor, tla.arch.RowMajor)
        tla.copy(factor, far_factor)
        for row in tla.range(tla.arch.block_idx(), T, tla.arch.block_num()):
            far = tla.tile_view(x, tla.make_shape(1, H), tla.make_coord(row, 0))
            target = tla.tile_view(out, tla.make_shape(1, H), tla.make_coord(row, 0))
            tile = tla.make_tensor_like(near, far, tla.arch.RowMajor)
            result = tla.make_tensor_like(made, target, tla.arch.RowMajor)
            tla.copy(tile, far)
            tla.set_flag(loaded)
            tla.wait_flag(loaded)
            with tla.vec.func(mode="simd"):
                every = tla.create_mask(pattern=tla.mask.ALL, dtype=tla.Float32)
                total = tla.full(0.0, dtype=tla.Float32)
                for i in tla.range(0, H // LANES, 1):
                    part = tla.tile_view(tile, tla.make_shape(1, LANES), tla.make_coord(0, i))
                    value = part.load(UNPACK).to(tla.Float32, EXACT)
                    total = total + value * value
                mean = tla.full(total.reduce(tla.ReductionOp.ADD, mask=every), dtype=tla.Float32) * (1.0 / H)
                root = tla.sqrt(mean + eps)
                for j in tla.range(0, H // LANES, 1):
                    left = tla.tile_view(tile, tla.make_shape(1, LANES), tla.make_coord(0, j))
                    right = tla.tile_view(factor, tla.make_shape(1, LANES), tla.make_coord(0, j))
                    scaled = left.load(UNPACK).to(tla.Float32, EXACT) / root
                    weighted = scaled * right.load(UNPACK).to(tla.Float32, EXACT)
                    goal = tla.tile_view(result, tla.make_shape(1, LANES), tla.make_coord(0, j))
                    goal.store(weighted.to(tla.Float16, ROUNDED), PACK)
            tla.set_flag(done)
            tla.wait_flag(done)
            tla.copy(target, result)
            tla.set_flag(stored)
            tla.wait_flag(stored)
        tla.pipe_barrier(tla.pipes.ALL)

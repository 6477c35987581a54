"""Softmax over rows, one row a turn: the maximum, the sum, the quotients, in vectors of 64. N is a multiple of 64."""

from catlass import tla

LANES = 64


@tla.kernel
def softmax(x: tla.Tensor, out: tla.Tensor, M: tla.Constexpr[int], N: tla.Constexpr[int]) -> None:
    """Sizes are of the specialisation."""
    loaded = tla.flag("loaded", tla.arch.MTE2, tla.arch.VECTOR)
    done = tla.flag("done", tla.arch.VECTOR, tla.arch.MTE3)
    stored = tla.flag("stored", tla.arch.MTE3, tla.arch.MTE2)
    near = tla.allocate(N, tla.Float32, tla.AddressSpace.ub, 256)
    made = tla.allocate(N, tla.Float32, tla.AddressSpace.ub, 256)
    with tla.vector():
        for row in tla.range(tla.arch.block_idx(), M, tla.arch.block_num()):
            far = tla.tile_view(x, tla.make_shape(1, N), tla.make_coord(row, 0))
            target = tla.tile_view(out, tla.make_shape(1, N), tla.make_coord(row, 0))
            tile = tla.make_tensor_like(near, far, tla.arch.RowMajor)
            result = tla.make_tensor_like(made, target, tla.arch.RowMajor)
            tla.copy(tile, far)
            tla.set_flag(loaded)
            tla.wait_flag(loaded)
            with tla.vec.func(mode="simd"):
                every = tla.create_mask(pattern=tla.mask.ALL, dtype=tla.Float32)
                largest = tla.full(-3.0e38, dtype=tla.Float32)
                for i in tla.range(0, N // LANES, 1):
                    part = tla.tile_view(tile, tla.make_shape(1, LANES), tla.make_coord(0, i))
                    largest = tla.max(largest, part.load())
                top = tla.full(largest.reduce(tla.ReductionOp.MAX, mask=every), dtype=tla.Float32)
                total = tla.full(0.0, dtype=tla.Float32)
                for j in tla.range(0, N // LANES, 1):
                    source = tla.tile_view(tile, tla.make_shape(1, LANES), tla.make_coord(0, j))
                    power = tla.exp(source.load() - top)
                    total = total + power
                    tla.tile_view(result, tla.make_shape(1, LANES), tla.make_coord(0, j)).store(power)
                tla.local_mem_bar(tla.params.MemType.VEC_STORE, tla.params.MemType.VEC_LOAD)
                whole = tla.full(total.reduce(tla.ReductionOp.ADD, mask=every), dtype=tla.Float32)
                for k in tla.range(0, N // LANES, 1):
                    quotient = tla.tile_view(result, tla.make_shape(1, LANES), tla.make_coord(0, k))
                    quotient.store(quotient.load() / whole)
            tla.set_flag(done)
            tla.wait_flag(done)
            tla.copy(target, result)
            tla.set_flag(stored)
            tla.wait_flag(stored)
        tla.pipe_barrier(tla.pipes.ALL)

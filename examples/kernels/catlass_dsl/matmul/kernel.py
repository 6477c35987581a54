"""A product of two matrices, one tile of the result a turn; sums and result in float32. Sizes are multiples of 64."""

from catlass import tla

TILE = 64


@tla.kernel
def matmul(
    a: tla.Tensor,
    b: tla.Tensor,
    c: tla.Tensor,
    M: tla.Constexpr[int],
    N: tla.Constexpr[int],
    K: tla.Constexpr[int],
) -> None:
    """Sizes are of the specialisation."""
    loaded = tla.flag("loaded", tla.arch.MTE2, tla.arch.MTE1)
    moved = tla.flag("moved", tla.arch.MTE1, tla.arch.CUBE)
    multiplied = tla.flag("multiplied", tla.arch.CUBE, tla.arch.MTE2)
    summed = tla.flag("summed", tla.arch.CUBE, tla.arch.FIX)
    stored = tla.flag("stored", tla.arch.FIX, tla.arch.CUBE)
    l1_a = tla.allocate((TILE, TILE), tla.Float16, tla.AddressSpace.l1, 512)
    l1_b = tla.allocate((TILE, TILE), tla.Float16, tla.AddressSpace.l1, 512)
    l0_a = tla.allocate((TILE, TILE), tla.Float16, tla.AddressSpace.l0a, 512)
    l0_b = tla.allocate((TILE, TILE), tla.Float16, tla.AddressSpace.l0b, 512)
    l0_c = tla.allocate((TILE, TILE), tla.Float32, tla.AddressSpace.l0c, 512)
    square = tla.make_shape(TILE, TILE)
    with tla.cube():
        for tile in tla.range(tla.arch.block_idx(), (M // TILE) * (N // TILE), tla.arch.block_num()):
            row = tile // (N // TILE)
            column = tile % (N // TILE)
            target = tla.tile_view(c, square, tla.make_coord(row, column))
            total = tla.make_tensor_like(l0_c, target, tla.arch.L0Clayout)
            for piece in tla.range(0, K // TILE, 1):
                far_a = tla.tile_view(a, square, tla.make_coord(row, piece))
                far_b = tla.tile_view(b, square, tla.make_coord(piece, column))
                near_a = tla.make_tensor_like(l1_a, far_a, tla.arch.zN)
                near_b = tla.make_tensor_like(l1_b, far_b, tla.arch.zN)
                left = tla.make_tensor_like(l0_a, near_a, tla.arch.zN)
                right = tla.make_tensor_like(l0_b, near_b, tla.arch.nZ)
                tla.copy(near_a, far_a)
                tla.copy(near_b, far_b)
                tla.set_flag(loaded)
                tla.wait_flag(loaded)
                tla.copy(left, near_a)
                tla.copy(right, near_b)
                tla.set_flag(moved)
                tla.wait_flag(moved)
                tla.mmad(total, left, right, init_c=piece == 0)
                tla.set_flag(multiplied)
                tla.wait_flag(multiplied)
            tla.set_flag(summed)
            tla.wait_flag(summed)
            tla.copy(target, total)
            tla.set_flag(stored)
            tla.wait_flag(stored)
        tla.pipe_barrier(tla.pipes.ALL)

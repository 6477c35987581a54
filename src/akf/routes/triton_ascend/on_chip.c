/* Compiled beside a kernel of Linalg IR: its on-chip memory, copies between views, and conversions of bfloat16.
 *
 * Memory is NaN until it is written and lasts as long as the program that asked for it. The names but for
 * `akf_program_ended` are those that MLIR's lowering calls. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct block {
    struct block *next;
    char padding[64 - sizeof(struct block *)];
};
static struct block *held;

void *_mlir_memref_to_llvm_alloc(size_t size) {
    struct block *made = size > SIZE_MAX - sizeof(struct block) ? NULL : malloc(sizeof(struct block) + size);
    if (!made) abort();
    made->next = held;
    held = made;
    return memset(made + 1, 0xFF, size);
}

void _mlir_memref_to_llvm_free(void *memory) { (void)memory; }

void akf_program_ended(void) {
    while (held) {
        struct block *next = held->next;
        free(held);
        held = next;
    }
}

struct view {
    int64_t rank;
    struct {
        char *allocated, *data;
        int64_t offset, sizes_and_strides[];
    } *of;
};

static void copy(int64_t rank, const int64_t *sizes, char *from, const int64_t *from_strides, char *to,
                 const int64_t *to_strides, int64_t size) {
    if (rank == 0) {
        memcpy(to, from, (size_t)size);
        return;
    }
    for (int64_t i = 0; i < *sizes; ++i)
        copy(rank - 1, sizes + 1, from + i * *from_strides * size, from_strides + 1, to + i * *to_strides * size,
             to_strides + 1, size);
}

void memrefCopy(int64_t size, struct view *from, struct view *to) {
    const int64_t rank = from->rank, *sizes = from->of->sizes_and_strides;
    copy(rank, sizes, from->of->data + from->of->offset * size, sizes + rank,
         to->of->data + to->of->offset * size, to->of->sizes_and_strides + rank, size);
}

/* Rounds to nearest, ties to even; NaN stays NaN. Older compiler libraries lack it. */
__attribute__((weak)) __bf16 __truncsfbf2(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
    const uint16_t half = (uint16_t)(nan ? (bits >> 16) | 0x40u : (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
    __bf16 result;
    memcpy(&result, &half, sizeof result);
    return result;
}

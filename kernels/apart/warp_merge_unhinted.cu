// Idea: softmax/warp_merge.cu with plain stores instead of streaming ones, and nothing else changed.
// Launch: 4 rows per block, 32 threads per row; rows below 2^31, up to 2^24 columns a thread, offsets in size_t.
// Traffic: x read twice, y written once, 12 bytes an element; neighbouring lanes read neighbouring elements.
// Source: ours, to tell apart what softmax/warp_merge.cu changes at once: rows to a block, operator, hint.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <math_constants.h>

#include "../merge.cuh"

namespace cg = cooperative_groups;

extern "C" __global__ void warp_merge_unhinted(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    // <row>
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const size_t row = size_t(blockIdx.x) * warp.meta_group_size() + warp.meta_group_rank();
    if (row >= size_t(rows)) return;  // a warp leaves whole or not at all, and only lanes of one warp meet below
    x += row * cols;
    y += row * cols;
    const unsigned lane = warp.thread_rank(), end = cols;  // unsigned, as i is
    // </row>

    // <pass>
    MaxSum pair = {-CUDART_MAX_NORMAL_F, 0.0f};  // not -infinity: see merge
    for (unsigned i = lane; i < end; i += 32) pair = merge(pair, {x[i], 1.0f});
    // </pass>

    // <lanes>
    pair = cg::reduce(warp, pair, [](MaxSum a, MaxSum b) { return merge(a, b); });  // in every lane alike
    const float sum = sum_or_nan(pair);
    // </lanes>

    // <write>
    for (unsigned i = lane; i < end; i += 32) y[i] = expf(x[i] - pair.max) / sum;
    // </write>
}

// Cooperative groups: a block, tiles of up to 32 threads, reduce, the whole grid, clusters, and
// asynchronous copies as copies that are finished at once.
#pragma once
#include "kernels.h"

namespace cooperative_groups {
struct thread_block {
    static EMU_HELPER void sync(unsigned line = __builtin_LINE()) { emu::watched_barrier(line); }
    static EMU_HELPER unsigned thread_rank() { return emu::g.current->linear; }
    static EMU_HELPER unsigned size() { return emu::g.threads; }
    static EMU_HELPER unsigned num_threads() { return emu::g.threads; }
    static EMU_HELPER dim3 group_dim() { return blockDim; }
    static EMU_HELPER dim3 dim_threads() { return blockDim; }
    static EMU_HELPER uint3 group_index() { return blockIdx; }
    static EMU_HELPER uint3 thread_index() { return threadIdx; }
};
static EMU_HELPER thread_block this_thread_block() { return {}; }

// All blocks of the launch, which must be cooperative: then they are all alive, and can wait for
// each other.
struct grid_group {
    static EMU_HELPER void sync(unsigned = 0) { emu::watched_group_barrier(); }
    static EMU_HELPER unsigned long long num_blocks() {
        return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
    }
    static EMU_HELPER unsigned long long block_rank() { return emu::g.block->number; }
    static EMU_HELPER unsigned long long size() { return num_blocks() * emu::g.threads; }
    static EMU_HELPER unsigned long long num_threads() { return size(); }
    static EMU_HELPER unsigned long long thread_rank() {
        return block_rank() * emu::g.threads + emu::g.current->linear;
    }
    static EMU_HELPER bool is_valid() { return emu::g.group == num_blocks(); }
    static EMU_HELPER dim3 group_dim() { return gridDim; }
};
static EMU_HELPER grid_group this_grid() { return {}; }

// The blocks of a cluster, each of which may read and write the others' shared memory.
struct cluster_group {
    static EMU_HELPER void sync(unsigned = 0) { emu::watched_group_barrier(); }
    static EMU_HELPER unsigned block_rank() { return emu::g.block->rank; }
    static EMU_HELPER unsigned num_blocks() { return emu::g.group; }
    static EMU_HELPER unsigned thread_rank() {
        return block_rank() * emu::g.threads + emu::g.current->linear;
    }
    static EMU_HELPER unsigned num_threads() { return emu::g.group * emu::g.threads; }
    template <class T>
    static EMU_HELPER T* map_shared_rank(T* p, unsigned rank) {
        return (T*)emu::shared_of((uintptr_t)p, rank);
    }
};
static EMU_HELPER cluster_group this_cluster() { return {}; }

template <unsigned N, class Parent = void>
struct thread_block_tile {
    static_assert(N && N <= 32 && (N & (N - 1)) == 0,
                  "a tile has a power of two of threads, at most 32");
    thread_block_tile() = default;
    template <class P>
    EMU_HELPER thread_block_tile(const thread_block_tile<N, P>&) {}
    static constexpr unsigned ALL = N == 32 ? ~0u : (1u << N % 32) - 1;
    static EMU_HELPER unsigned first_lane() { return emu::lane() / N * N; }
    static EMU_HELPER unsigned mask() { return ALL << first_lane(); }
    static EMU_HELPER unsigned thread_rank() { return emu::g.current->linear % N; }
    static constexpr unsigned size() { return N; }
    static constexpr unsigned num_threads() { return N; }
    static EMU_HELPER unsigned meta_group_rank() { return emu::g.current->linear / N; }
    static EMU_HELPER unsigned meta_group_size() { return (emu::g.threads + N - 1) / N; }
    static EMU_HELPER void sync(unsigned = 0) { __syncwarp(mask()); }
    template <class T>
    EMU_HELPER T shfl(T v, int source) const {
        return __shfl_sync(mask(), v, source, N);
    }
    template <class T>
    EMU_HELPER T shfl_xor(T v, unsigned bits) const {
        return __shfl_xor_sync(mask(), v, (int)bits, N);
    }
    template <class T>
    EMU_HELPER T shfl_down(T v, unsigned delta) const {
        return __shfl_down_sync(mask(), v, delta, N);
    }
    template <class T>
    EMU_HELPER T shfl_up(T v, unsigned delta) const {
        return __shfl_up_sync(mask(), v, delta, N);
    }
    static EMU_HELPER unsigned ballot(int predicate) {
        return __ballot_sync(mask(), predicate) >> first_lane() & ALL;
    }
    static EMU_HELPER int any(int predicate) { return ballot(predicate) != 0; }
    static EMU_HELPER int all(int predicate) { return ballot(!predicate) == 0; }
};
template <unsigned N, class P>
EMU_HELPER thread_block_tile<N, P> tiled_partition(const P&) {
    return {};
}
template <class G>
EMU_HELPER void sync(const G& group, unsigned line = __builtin_LINE()) {
    group.sync(line);
}

template <class T>
struct plus {
    EMU_HELPER T operator()(const T& a, const T& b) const { return a + b; }
};
template <class T>
struct less {
    EMU_HELPER T operator()(const T& a, const T& b) const { return min(a, b); }
};
template <class T>
struct greater {
    EMU_HELPER T operator()(const T& a, const T& b) const { return max(a, b); }
};
// NVIDIA's own order: halves, quarters, ... by xor. Each level is one instruction of the kernel's
// line.
template <unsigned N, class P, class T, class Op>
EMU_HELPER T reduce(const thread_block_tile<N, P>& group, T v, Op&& op) {
    for (unsigned bits = N / 2; bits > 0; bits /= 2) v = op(v, group.shfl_xor(v, bits));
    return v;
}

template <class G, class T>
EMU_HELPER void memcpy_async(const G& group, T* to, const T* from, size_t bytes) {
    for (size_t i = group.thread_rank(); i < bytes / sizeof(T); i += group.num_threads())
        to[i] = from[i];
}
template <class G>
EMU_HELPER void wait(const G& group, unsigned line = __builtin_LINE()) {
    group.sync(line);
}
}  // namespace cooperative_groups

"""Kernels in C++ that cheat, for the shipped Task `rmsnorm`, and honest ones beside them; tried with the clock.

`body` stands in the kernel, after `honest(x, weight, out, tokens, hidden, eps)` was defined; `head` before it.
"""

from __future__ import annotations

from typing import NamedTuple

_ARGUMENTS = (
    "const float* x, const float* weight, float* out, std::int64_t tokens, std::int64_t hidden, float eps"  # the Task's
)
CALL = "honest(x, weight, out, tokens, hidden, eps);"
_BEFORE = """
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <map>
#include <sys/mman.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>
#include <vector>

static void honest(ARGUMENTS) {
    for (std::int64_t token = 0; token < tokens; ++token) {
        const float* row = x + token * hidden;
        float partial[64] = {};
        for (std::int64_t i = 0; i < hidden; ++i) partial[i % 64] += row[i] * row[i];
        float sum = 0.0f;
        for (float each : partial) sum += each;
        const float scale = 1.0f / std::sqrt(sum / static_cast<float>(hidden) + eps);
        for (std::int64_t i = 0; i < hidden; ++i) out[token * hidden + i] = row[i] * scale * weight[i];
    }
}
"""


class Kernel(NamedTuple):
    """One kernel; no reasons for one that is honest."""

    reasons: frozenset[str]
    body: str
    head: str = ""

    @property
    def source(self) -> str:
        """The whole file."""
        text = f'{_BEFORE}{self.head}\nextern "C" void rms_norm(ARGUMENTS) {{\n{self.body}\n}}\n'
        return text.replace("ARGUMENTS", _ARGUMENTS)


def _kernel(reasons: str, body: str, head: str = "") -> Kernel:
    return Kernel(frozenset(reasons.split()), body, head)


CHEATS = {
    "does_a_batch_backwards": _kernel(
        "RESULT_REPLAY",
        """
        struct Call { const float *x, *weight; float* out; };
        static std::vector<Call> known;
        static std::size_t at = 0, length = 0;
        static bool ahead = false;
        if (at > 0 && out == known[0].out) { length = at; at = 0; ahead = length >= 8; }
        if (ahead && at == 0)
            for (std::size_t slot = length; slot-- > 0;)
                honest(known[slot].x, known[slot].weight, known[slot].out, tokens, hidden, eps);
        if (!ahead) {
            honest(x, weight, out, tokens, hidden, eps);
            known.resize(at);
            known.push_back({x, weight, out});
        }
        ++at;
        """,
    ),
    "spoils_the_output_before": _kernel(
        "INPUT_MUTATED WRONG_RESULT OUT_OF_BOUNDS_WRITE NONDETERMINISTIC",
        f"static float* last = nullptr; {CALL} if (last && last != out) last[hidden / 2] += 1.0f; last = out;",
    ),
    "answers_one_call_later": _kernel(
        "INPUT_MUTATED OUT_OF_BOUNDS_WRITE OUTPUT_NOT_WRITTEN WRONG_RESULT NON_FINITE NONDETERMINISTIC",
        """
        static const float *x0 = nullptr, *weight0 = nullptr;
        static float* out0 = nullptr;
        if (out0 && out0 != out) honest(x0, weight0, out0, tokens, hidden, eps);
        else honest(x, weight, out, tokens, hidden, eps);
        x0 = x; weight0 = weight; out0 = out;
        """,
    ),
    "starts_a_thread_as_it_is_loaded": _kernel(
        "ASYNCHRONOUS_WORK",
        CALL,
        "__attribute__((constructor)) static void begin() { std::thread([] { for (;;) pause(); }).detach(); }",
    ),
    "forks_as_it_is_loaded": _kernel(
        "ASYNCHRONOUS_WORK",
        CALL,
        "__attribute__((constructor)) static void begin() { if (fork() == 0) for (;;) pause(); }",
    ),
    "stops_the_clock": _kernel(
        "TIMING_MISMATCH HIT_NOT_PROVED",
        CALL,
        """
        __attribute__((constructor)) static void begin() {
            const unsigned char zero[] = {0x48, 0xc7, 0x06, 0, 0, 0, 0, 0x48, 0xc7, 0x46, 8, 0, 0, 0, 0,
                                          0x31, 0xc0, 0xc3};
            void* clock = dlsym(RTLD_DEFAULT, "clock_gettime");
            void* page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(clock) & ~4095ul);
            if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) == 0) std::memcpy(clock, zero, sizeof zero);
        }
        """,
    ),
    "fills_in_when_a_timer_rings": _kernel(
        "OUTPUT_NOT_WRITTEN WRONG_RESULT NON_FINITE NONDETERMINISTIC",
        """
        static struct { const float *x, *weight; float* out; std::int64_t tokens, hidden; float eps; } job;
        job = {x, weight, out, tokens, hidden, eps};
        signal(SIGALRM, [](int) { honest(job.x, job.weight, job.out, job.tokens, job.hidden, job.eps); });
        itimerval soon{{0, 0}, {0, 150}};
        setitimer(ITIMER_REAL, &soon, nullptr);
        """,
    ),
    "is_cheap_in_quick_succession": _kernel(
        "WRONG_RESULT NONDETERMINISTIC",
        """
        static timespec last{};
        timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        const long passed = (now.tv_sec - last.tv_sec) * 1000000000l + now.tv_nsec - last.tv_nsec;
        last = now;
        if (passed > 200000) honest(x, weight, out, tokens, hidden, eps);
        else for (std::int64_t i = 0; i < tokens * hidden; ++i) out[i] = x[i] * weight[i % hidden];
        """,
    ),
    "remembers_by_a_stripe": _kernel(
        "WRONG_RESULT RESULT_REPLAY NONDETERMINISTIC",
        """
        static std::map<std::uint64_t, std::vector<float>> kept;
        std::uint64_t key = tokens;
        auto add = [&](const float* from) {
            std::uint32_t bits;
            std::memcpy(&bits, from, 4);
            key = key * 1099511628211ull ^ bits;
        };
        for (std::int64_t i = 0; i < tokens * hidden; i += 61) add(x + i);
        for (std::int64_t i = 0; i < hidden; i += 61) add(weight + i);
        add(&eps);
        const auto found = kept.find(key);
        if (found != kept.end()) { std::memcpy(out, found->second.data(), found->second.size() * 4); return; }
        honest(x, weight, out, tokens, hidden, eps);
        kept.emplace(key, std::vector<float>(out, out + tokens * hidden));
        """,
    ),
    "keeps_another_rounding": _kernel(
        "NONDETERMINISTIC WRONG_RESULT WORSE_THAN_BASELINE",
        f"{CALL} __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0xe040);",
    ),
    "closes_every_descriptor": _kernel("CHILD_EXITED CHILD_CRASHED", f"{CALL} for (int i = 0; i < 64; ++i) close(i);"),
    "maps_over_its_output": _kernel(
        "WRONG_RESULT NON_FINITE OUTPUT_NOT_WRITTEN NONDETERMINISTIC",
        f"""
        {CALL}
        void* page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(out) & ~4095ul);
        std::vector<char> kept(static_cast<char*>(page), static_cast<char*>(page) + 4096);
        mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        std::memcpy(page, kept.data(), 4096);
        """,
    ),
}
CONTROLS = {
    "plain": _kernel("", CALL),
    "prints_at_its_end": _kernel("", CALL, '__attribute__((destructor)) static void end() { std::puts("done"); }'),
    "joins_what_it_starts": _kernel("", f"std::thread job([&] {{ {CALL} }}); job.join();"),
    "stops_its_group": _kernel("", f"{CALL} kill(0, SIGSTOP);"),
    "makes_its_tables_as_it_is_loaded": _kernel(
        "",
        f"{CALL} if (table[1] != 1) out[0] = 0.0f;",
        "static int table[2];\n__attribute__((constructor)) static void begin() { table[1] = 1; }",
    ),
}

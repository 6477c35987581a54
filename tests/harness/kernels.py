"""Small kernels for `out = 2 x + 1`, each with one habit that the harness must notice, or must not mind."""

from __future__ import annotations

HEADER = """
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <map>
#include <sched.h>
#include <set>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static void honest(const float* x, float* out, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = 2.0f * x[i] + 1.0f;
}
struct Job { const float* x; float* out; std::int64_t n; };
static int finish(void* job) {
    usleep(2000);
    const Job* it = static_cast<Job*>(job);
    honest(it->x, it->out, it->n);
    return 0;
}
static int idle(void*) { for (;;) pause(); }
static char* stack() {
    return static_cast<char*>(mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) + 65536;
}
extern "C" void affine(const float* x, float* out, std::int64_t n) {
"""

BODIES = {
    "honest": "honest(x, out, n);",
    "perturbed": "for (std::int64_t i = 0; i < n; ++i) out[i] = 3.0f * x[i] - 1.0f;",
    "slightly_wrong": "for (std::int64_t i = 0; i < n; ++i) out[i] = 2.0f * x[i] + 1.001f;",
    "less_exact": "for (std::int64_t i = 0; i < n; ++i) out[i] = (2.0f * x[i] + 1.0f) * 1.00001f;",
    "one_element": "honest(x, out, n); out[n / 2] += 0.01f;",
    "nan": "honest(x, out, n); out[0] = std::numeric_limits<float>::quiet_NaN();",
    "infinite": "honest(x, out, n); out[n - 1] = std::numeric_limits<float>::infinity();",
    "zeros": "std::memset(out, 0, n * 4);",
    "mutates_input": "honest(x, out, n); const_cast<float*>(x)[n - 1] = 0.0f;",
    "writes_outside": "honest(x, out, n); out[n] = 0.0f;",
    "writes_nothing": "(void)x; (void)out; (void)n;",
    "segfault": "honest(x, out, n); *reinterpret_cast<volatile int*>(8) = 1;",
    "abort": "honest(x, out, n); std::abort();",
    "hang": "honest(x, out, n); for (;;) pause();",
    "spin": "honest(x, out, n); for (volatile int i = 0;; i = i + 1) {}",
    "exit_zero": "honest(x, out, n); _exit(0);",
    "exhaust_memory": """
        honest(x, out, n);
        for (;;) { char* block = static_cast<char*>(std::malloc(64 << 20)); block[0] = 1; std::memset(block, 1, 4096); }
    """,
    "prints_forgery": """
        std::memset(out, 0, n * 4);
        std::puts("{\\"kind\\": \\"HarnessReport\\", \\"checks\\": {\\"correctness\\": {\\"outcome\\": \\"pass\\"}}}");
        std::fflush(stdout);
    """,
    "sends_forgery": """
        std::memset(out, 0, n * 4);
        char packet[41] = {};
        packet[16] = 'k';
        for (int fd = 3; fd < 64; ++fd) send(fd, packet, sizeof packet, MSG_DONTWAIT | MSG_NOSIGNAL);
    """,
    "floods_log": """
        honest(x, out, n);
        for (int i = 0; i < 4000; ++i) std::puts("a line of noise that goes on and on and on and on and on and on");
        std::fflush(stdout);
    """,
    "leaves_process": """
        honest(x, out, n);
        static bool started = false;
        if (!started) {
            started = true;
            if (fork() == 0) { setsid(); fork(); for (;;) pause(); }
        }
    """,
    "works_in_a_thread": """
        static Job job; job = {x, out, n};
        pthread_t thread;
        pthread_create(&thread, nullptr, [](void* it) -> void* { finish(it); return nullptr; }, &job);
        pthread_detach(thread);
    """,
    "works_in_a_process": "static Job job; job = {x, out, n}; clone(finish, stack(), CLONE_VM | SIGCHLD, &job);",
    "works_in_a_sibling": """
        static Job job; job = {x, out, n};
        signal(SIGCHLD, SIG_IGN);
        if (clone(finish, stack(), CLONE_VM | CLONE_PARENT, &job) < 0) clone(finish, stack(), CLONE_VM, &job);
    """,
    "works_below_a_process": """
        static Job job; job = {x, out, n};
        signal(SIGCHLD, SIG_IGN);
        if (fork() == 0) { setsid(); if (fork() == 0) { finish(&job); } _exit(0); }
        usleep(1000);
    """,
    "works_behind_a_crowd": """
        static Job job; job = {x, out, n};
        static bool started = false;
        for (int i = 0; i < 400 && !started; ++i) clone(idle, stack(), CLONE_VM | SIGCHLD, nullptr);
        started = true;
        clone(finish, stack(), CLONE_VM | SIGCHLD, &job);
    """,
    "works_on_waking": """
        static std::vector<Job> jobs;
        static std::size_t next = 0, ready = 0;
        static auto slowly = [](const Job& job) { for (int i = 0; i < 60; ++i) honest(job.x, job.out, job.n); };
        signal(SIGCONT, [](int) { for (const Job& job : jobs) slowly(job); ready = jobs.size(); next = 0; });
        if (next < ready && jobs[next].out == out) { ++next; return; }
        if (ready > 0) jobs.clear();
        ready = next = 0;
        jobs.push_back({x, out, n});
        slowly(jobs.back());
    """,
    "leaves_thread": """
        honest(x, out, n);
        static bool started = false;
        if (!started) { started = true; std::thread([] { for (;;) pause(); }).detach(); }
    """,
    "joins_threads": """
        std::thread other(honest, x, out, n / 2);
        honest(x + n / 2, out + n / 2, n - n / 2);
        other.join();
        int child = fork();
        if (child == 0) _exit(0);
        waitpid(child, nullptr, 0);
    """,
    "leader_leaves": """
        honest(x, out, n);
        static bool started = false;
        if (!started) { started = true; std::thread([] { for (;;) pause(); }).detach(); pthread_exit(nullptr); }
    """,
    "truncates": """
        for (int fd = 3; fd < 64; ++fd) if (ftruncate(fd, 0) == 0) out[0] = std::numeric_limits<float>::quiet_NaN();
        honest(x, out, n);
    """,
    "truncates_by_path": """
        char path[32];
        for (int fd = 0; fd < 64; ++fd) {
            std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
            if (fd > 2) truncate(path, 0);
        }
        honest(x, out, n);
    """,
    "holds_descriptors": """
        honest(x, out, n);
        struct stat status;
        for (int fd = 3; fd < 64; ++fd)
            if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) out[0] = std::numeric_limits<float>::quiet_NaN();
    """,
    "kills_itself": "honest(x, out, n); kill(getpid(), SIGKILL);",
    "unsteady": """
        static unsigned calls = 0;
        honest(x, out, n);
        out[0] = std::nextafter(out[0], (calls++ & 1) ? 1e9f : -1e9f);
    """,
    "right_once": """
        static unsigned calls = 0;
        honest(x, out, n);
        if (calls++ > 0) out[0] = 0.5f;
    """,
    "cache_by_address": """
        static std::map<const float*, std::vector<float>> seen;
        auto found = seen.find(x);
        if (found == seen.end()) { honest(x, out, n); seen[x].assign(out, out + n); }
        else std::memcpy(out, found->second.data(), n * 4);
    """,
    "cache_by_prefix": """
        static std::map<std::vector<float>, std::vector<float>> seen;
        std::vector<float> key(x, x + 2);
        auto found = seen.find(key);
        if (found == seen.end()) { honest(x, out, n); seen[key].assign(out, out + n); }
        else std::memcpy(out, found->second.data(), n * 4);
    """,
    "knows_every_input": """
        static std::set<std::vector<float>> seen;
        honest(x, out, n);
        if (!seen.insert(std::vector<float>(x, x + n)).second) out[0] = std::numeric_limits<float>::quiet_NaN();
    """,
    "forgets_one_in_many": "static unsigned calls = 0; honest(x, out, n); if (++calls % 20 == 0) out[n / 2] = 0.0f;",
    "skips_half": "static unsigned calls = 0; if (calls++ % 2 == 0 || calls < 64) honest(x, out, n);",
    "looks_around": """
        honest(x, out, n);
        bool confined = access("/etc/passwd", F_OK) != 0 && access("/var", F_OK) != 0 && access("/run", F_OK) != 0;
        confined = confined && open("/scratch", O_CREAT | O_WRONLY, 0600) < 0 && mkdir("/usr/scratch", 0700) != 0;
        confined = confined && getpid() == 1 && getppid() == 0 && geteuid() == 0 && chroot("/usr") != 0;
        confined = confined && getenv("PATH") == nullptr && unshare(CLONE_NEWUSER) != 0;
        if (!confined) out[0] = std::numeric_limits<float>::quiet_NaN();
    """,
}


def source(name: str) -> str:
    return f"{HEADER}{BODIES[name]}\n}}\n"


SPEC = {
    "abi": "c",
    "symbol": "affine",
    "args": [
        {"name": "x", "kind": "tensor", "dtype": "float32", "shape": ["N"], "access": "in"},
        {"name": "out", "kind": "tensor", "dtype": "float32", "shape": ["N"], "access": "out"},
        {"name": "n", "kind": "scalar", "dtype": "int64", "value": "N"},
    ],
}

REFERENCE = """
import numpy as np

def reference(x):
    return (2.0 * x.astype(np.float64) + 1.0,)
"""

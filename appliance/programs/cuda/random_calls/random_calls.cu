// Calls functions of the driver and of the runtime with random arguments, legal and illegal, and prints a line for each
// call: its index, function, arguments, result and outputs. Two runs with one seed print the same lines if results are
// the same: handles and addresses appear under names. `hawser-check --only errors` compares the lines of native CUDA
// with Hawser's.
//
//   random_calls --seed N --calls N [--from K] [--to K] [--pick K,K-K,...] [--end-after K,K-K,...] [--only GROUP]
//                [--jobs N] [--dead] [--functions FILE] [--cases]
//
// The functions and their parameters come from tables (table.h), the arguments from kinds of parameters (values.h). The
// run is divided into episodes of 100 calls. Each episode is a process with a context of its own, because some errors
// end a context. After a call that crashes or hangs, another process goes on behind it with fresh objects. So it does
// after the calls of --end-after: with those that crash in another run, both runs have the same objects.
//
// The first lines are the functions and a checksum of their description. One seed gives the same calls only with the
// same ones: --functions takes those of an earlier run's output.
//
// With --cases the lines of fixed calls follow (cases.h).
#include "cases.h"
#include "objects.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

static const unsigned EPISODE_CALLS = 100, FAULT_AT = 40, CAPTURE_CALLS = 25;
static const unsigned CALL_SECONDS = 30; // a call that takes longer hangs

static uint64_t seed = 1;
static unsigned call_count = 5000, first_call, last_call = ~0u;
static std::string picked, last_of_process;
static const int ENDED_EARLY = 3; // the exit code of a process that ends after a call of --end-after

// EARLY: nothing is initialised. BARE: no context. FAULT: a kernel faults. CAPTURE: a stream captures. DRIVER, RUNTIME:
// functions of one API.
enum episode_t { EARLY, BARE, FAULT, CAPTURE, PLAIN };
static const episode_t episode_kinds[] = {EARLY, PLAIN, FAULT, PLAIN, CAPTURE, PLAIN, BARE, PLAIN, FAULT, PLAIN};
static const char *const episode_names[] = {"early", "bare", "fault", "capture", "plain"};

// Whether a list such as 3,5-8 has the number.
static bool listed(const std::string &list, unsigned index) {
    const char *at = list.c_str();
    while (*at != 0) {
        char *end;
        unsigned long from = strtoul(at, &end, 10), to = *end == '-' ? strtoul(end + 1, &end, 10) : from;
        if (index >= from && index <= to) {
            return true;
        }
        at = *end == ',' ? end + 1 : end + strlen(end);
    }
    return false;
}

static bool wanted(unsigned index) {
    return index >= first_call && index <= last_call && (picked.empty() || listed(picked, index));
}

// A kernel that ends the context: at a wild address, at an odd address, by a trap.
static void fault(random_t &random, unsigned index) {
    static const char *const names[] = {"wild", "odd", "trap"};
    unsigned how = random.below(3);
    CUfunction function = nullptr;
    DRIVER(cuModuleGetFunction)(&function, (CUmodule) slots[MODULE][0].value, how == 2 ? "stop" : "add");
    kernel_address = how == 1 ? blocks[0].address + 1 : 64;
    int result = DRIVER(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, kernel_arguments, nullptr);
    print("%u fault(%s) = %d", index, names[how], result);
}

// Ends captures now and then: most calls fail while a stream captures.
static bool end_capture(random_t &random, unsigned index) {
    static auto end = DRIVER(cuStreamEndCapture);
    if (slots[CONTEXT][0].life != LIVE || !capturing() || !random.chance(12)) {
        return false;
    }
    print("%u end of captures =", index);
    for (const slot_t &slot : slots[STREAM]) {
        CUgraph graph = nullptr;
        if (slot.life == LIVE) {
            print(" %d", (int) end((CUstream) slot.value, &graph));
        }
    }
    return true;
}

// Makes the run's own context current again now and then.
static void restore_context(random_t &random) {
    CUcontext own = (CUcontext) slots[CONTEXT][0].value;
    if (slots[CONTEXT][0].life == LIVE && current_context() != own && random.chance(5)) {
        print("current context0: %d\n", (int) DRIVER(cuCtxSetCurrent)(own));
    }
}

static void run_episode(unsigned first, unsigned end) {
    episode_t kind = episode_kinds[first / EPISODE_CALLS % 10];
    print("episode %u %s:", first / EPISODE_CALLS, episode_names[kind]);
    alarm(CALL_SECONDS);
    set_up(kind != EARLY, kind != EARLY && kind != BARE, first / EPISODE_CALLS);
    print("\n");
    flush_line();
    for (unsigned i = first; i < end; i++) {
        if (!wanted(i)) {
            continue;
        }
        random_t random(seed, i);
        unsigned nth = i % EPISODE_CALLS;
        alarm(CALL_SECONDS);
        restore_context(random);
        if (kind == FAULT && nth == FAULT_AT) {
            fault(random, i);
        } else if (kind == CAPTURE && nth % CAPTURE_CALLS == 1) {
            print("%u begin of capture = %d", i,
                  (int) driver_function<CUresult (*)(CUstream, CUstreamCaptureMode)>("cuStreamBeginCapture_v2")(
                      (CUstream) slots[STREAM][0].value,
                      random.of({CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                 CU_STREAM_CAPTURE_MODE_RELAXED})));
        } else if (!end_capture(random, i)) {
            make_call(random, function_of(seed, i), i);
        }
        settle(i);
        if (listed(last_of_process, i)) {
            fflush(stdout);
            _exit(ENDED_EARLY);
        }
    }
}

struct child_t {
    pid_t process;
    FILE *output;
    unsigned end; // the call behind its last one
};

static child_t start_episode(unsigned first, unsigned end) {
    fflush(stdout); // or the child prints it again
    child_t child = {0, tmpfile(), end};
    if (child.output == nullptr || (child.process = fork()) < 0) {
        perror("random_calls: fork");
        exit(2);
    }
    if (child.process == 0) {
        if (dup2(fileno(child.output), STDOUT_FILENO) < 0) {
            _exit(2);
        }
        for (function_t &function : functions) {
            static void *library = dlopen("libcuda.so.1", RTLD_NOW);
            function.address = function.runtime || library == nullptr ? nullptr : dlsym(library, function.symbol);
        }
        run_episode(first, end);
        fflush(stdout);
        _exit(0); // without destructors: some objects have ended with a context
    }
    return child;
}

// Prints a child's lines. Returns the call behind the one that ended it early; 0 for a child that ended well.
static unsigned print_episode(const child_t &child) {
    int status = 0;
    waitpid(child.process, &status, 0);
    rewind(child.output);
    std::string text;
    char part[65536];
    for (size_t count; (count = fread(part, 1, sizeof(part), child.output)) > 0;) {
        text.append(part, count);
    }
    fclose(child.output);
    fwrite(text.data(), 1, text.size(), stdout);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return 0;
    }
    if (WIFSIGNALED(status)) {
        printf("%s %d\n", WTERMSIG(status) == SIGALRM ? "hang" : "crash", WTERMSIG(status));
    } else if (WEXITSTATUS(status) != ENDED_EARLY) {
        printf("exit %d\n", WEXITSTATUS(status));
    }
    size_t at = text.rfind('\n', text.empty() || text.back() != '\n' ? std::string::npos : text.size() - 2);
    unsigned long last = strtoul(text.c_str() + (at == std::string::npos ? 0 : at + 1), nullptr, 10);
    return text.find('\n') == std::string::npos ? child.end : (unsigned) last + 1;
}

static void end_episode(child_t child) {
    for (unsigned next; (next = print_episode(child)) != 0 && next < child.end;) {
        child = start_episode(next, child.end);
    }
    fflush(stdout);
}

// Makes the fixed calls in a process of their own.
static void make_cases() {
    fflush(stdout);
    pid_t process = fork();
    if (process == 0) {
        alarm(10 * CALL_SECONDS);
        run_cases();
        _exit(0);
    }
    int status = 0;
    if (process < 0 || waitpid(process, &status, 0) != process) {
        perror("random_calls: fork");
        exit(2);
    }
    if (WIFSIGNALED(status)) {
        printf("%s %d\n", WTERMSIG(status) == SIGALRM ? "hang" : "crash", WTERMSIG(status));
    }
}

int main(int argc, char **argv) {
    unsigned jobs = 1;
    bool with_cases = false;
    const char *functions_of = "";
    for (int i = 1; i < argc; i++) {
        std::string option = argv[i];
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (option == "--dead") {
            use_dead_handles = true;
            continue;
        } else if (option == "--cases") {
            with_cases = true;
            continue;
        } else if (option == "--seed") {
            seed = strtoull(value, nullptr, 10);
        } else if (option == "--calls") {
            call_count = (unsigned) strtoul(value, nullptr, 10);
        } else if (option == "--from") {
            first_call = (unsigned) strtoul(value, nullptr, 10);
        } else if (option == "--to") {
            last_call = (unsigned) strtoul(value, nullptr, 10);
        } else if (option == "--pick") {
            picked = value;
        } else if (option == "--end-after") {
            last_of_process = value;
        } else if (option == "--only") {
            only_group = value;
        } else if (option == "--functions") {
            functions_of = value;
        } else if (option == "--jobs") {
            jobs = (unsigned) std::max(1l, strtol(value, nullptr, 10));
        } else {
            fprintf(stderr,
                    "usage: random_calls --seed N --calls N [--from K] [--to K] [--pick K,K-K] [--end-after K,K-K] "
                    "[--only GROUP] [--jobs N] [--dead] [--functions FILE] [--cases]\n");
            return 2;
        }
        i++;
    }
    choose_functions(functions_of);
    print_description();
    std::vector<child_t> children;
    size_t ended = 0;
    for (unsigned first = 0; first < call_count; first += EPISODE_CALLS) {
        unsigned end = std::min(first + EPISODE_CALLS, call_count);
        bool any = false;
        for (unsigned i = first; i < end; i++) {
            any |= wanted(i);
        }
        if (!any) {
            continue;
        }
        if (children.size() - ended >= jobs) {
            end_episode(children[ended++]);
        }
        fprintf(stderr, "random_calls: calls %u to %u of %u\n", first, end - 1, call_count);
        children.push_back(start_episode(first, end));
    }
    while (ended < children.size()) {
        end_episode(children[ended++]);
    }
    if (with_cases) {
        make_cases();
    }
    return 0;
}

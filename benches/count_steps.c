/* Counts the instructions that a thread executes outside of the kernel, by single steps, while it runs against a real
 * server. It is for machines whose CPU counters cannot be read. A step takes microseconds, so the thread is slow while
 * it is watched, and finds as many answers as there are connections at each of its turns.
 *
 * An operation is a request that the thread submits to io_uring. A turn is a call of io_uring_enter.
 *
 * count_steps THREAD OPERATIONS WINDOWS  ->  for each window a line "INSTRUCTIONS OPERATIONS TURNS"
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

static void give_up(const char *what) {
    perror(what);
    exit(1);
}

static void await_stop(pid_t thread) {
    int status;
    if (waitpid(thread, &status, __WALL) < 0 || !WIFSTOPPED(status)) give_up("the thread has ended");
}

static void step(pid_t thread) {
    if (ptrace(PTRACE_SINGLESTEP, thread, 0, 0)) give_up("PTRACE_SINGLESTEP");
    await_stop(thread);
}

int main(int count_of_arguments, char **arguments) {
    if (count_of_arguments != 4) return 2;
    pid_t thread = atoi(arguments[1]);
    long wanted = atol(arguments[2]), windows = atol(arguments[3]);
    struct user_regs_struct registers;
    if (ptrace(PTRACE_SEIZE, thread, 0, 0)) give_up("PTRACE_SEIZE");
    if (ptrace(PTRACE_INTERRUPT, thread, 0, 0)) give_up("PTRACE_INTERRUPT");
    await_stop(thread);
    /* The first window is not shown, because it begins in the middle of a turn. */
    for (long window = -1; window < windows; window++) {
        long instructions = 0, operations = 0, turns = 0;
        while (operations < wanted) {
            if (ptrace(PTRACE_GETREGS, thread, 0, &registers)) give_up("PTRACE_GETREGS");
            /* At the instruction `syscall` (0f 05): its second argument is what it submits. */
            if (registers.rax == SYS_io_uring_enter) {
                errno = 0;
                long code = ptrace(PTRACE_PEEKTEXT, thread, registers.rip, 0);
                if (!errno && (code & 0xffff) == 0x050f) operations += (long)registers.rsi, turns++;
            }
            step(thread);
            instructions++;
        }
        if (window >= 0) printf("%ld %ld %ld\n", instructions, operations, turns), fflush(stdout);
    }
    ptrace(PTRACE_DETACH, thread, 0, 0);
    return 0;
}

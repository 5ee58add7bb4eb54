/* Handles truncation of a mapped file: a read beyond its new end raises SIGBUS. The library maps
   cache files and leaves signals to the program, which finds out the file and reports it. All of
   this runs in a signal handler: only system calls, no stdio, no allocation. */
#define _GNU_SOURCE /* siginfo_t */
#include "cli.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 4096 + 256 };

static bool hex(const char **at, uintptr_t *number)
{
    *number = 0;
    const char *from = *at;
    for (;; (*at)++) {
        char c = **at;
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return *at > from;
        *number = *number << 4 | (uintptr_t)digit;
    }
}

/* The path in a line of /proc/self/maps, "from-to mode offset device inode path", if it covers the
   address. */
static const char *path_in(const char *line, uintptr_t address)
{
    uintptr_t from, to;
    const char *at = line;
    if (!hex(&at, &from) || *at++ != '-' || !hex(&at, &to) || address < from || address >= to)
        return NULL;
    return strchr(line, '/');
}

/* Calls found(path) for the file mapped at an address, if any. */
static void look_up(uintptr_t address, void (*found)(const char *path))
{
    static char line[LINE];
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    char c;
    while (maps >= 0 && read(maps, &c, 1) == 1) {
        if (c != '\n') {
            if (used < sizeof line - 1)
                line[used++] = c;
            continue;
        }
        line[used] = 0;
        used = 0;
        const char *path = path_in(line, address);
        if (path)
            found(path);
    }
    if (maps >= 0)
        close(maps);
}

static void say(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

static void end_with(const char *path)
{
    say("sounder: ");
    say(path);
    say(": the file was truncated while in use; create it again and rerun\n");
    sdr_writers_remove();
    _exit(SDR_BAD_FILE);
}

static void on_bus_error(int number, siginfo_t *information, void *context)
{
    static atomic_flag taken = ATOMIC_FLAG_INIT;
    (void)context;
    while (atomic_flag_test_and_set(&taken)) /* only one thread reports */
        pause();
    if (information->si_code == BUS_ADRERR)
        look_up((uintptr_t)information->si_addr, end_with);
    signal(number, SIG_DFL); /* not a mapped file: default action */
}

void cli_mapped_start(void)
{
    struct sigaction action = {0};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

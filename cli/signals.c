/* Signals as requests. During training SIGUSR1 writes a checkpoint, SIGTERM and SIGINT write one
   and stop. Before training SIGTERM and SIGINT end the reading (exit code 75). A second SIGINT
   kills the process at once. */
#include "cli.h"

#include <signal.h>
#include <stdatomic.h>

static struct sdr_run *_Atomic listener;
static volatile sig_atomic_t waiting; /* requests that arrived before there was a run */
static volatile sig_atomic_t stopped_by;
static bool listening;

static void on_signal(int number)
{
    unsigned request = number == SIGUSR1 ? SDR_REQUEST_CHECKPOINT : SDR_REQUEST_STOP;
    if (number == SIGINT && stopped_by == SIGINT) {
        signal(SIGINT, SIG_DFL);
        raise(SIGINT);
        return;
    }
    if (number != SIGUSR1)
        stopped_by = number;
    struct sdr_run *run = atomic_load(&listener);
    if (run) {
        sdr_run_request(run, request);
        return;
    }
    waiting |= (int)request;
    if (number != SIGUSR1)
        sdr_stop_reading(true);
}

static struct sigaction before_checkpoint, before_stop, before_interrupt;

static void listen_to(int number, struct sigaction *before)
{
    struct sigaction action = {0};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(number, NULL, before);
    /* A signal that the parent set to be ignored (nohup, background jobs) stays ignored. */
    if (before->sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

void cli_signals_start(void)
{
    listen_to(SIGUSR1, &before_checkpoint); /* schedulers send it at any time */
    listen_to(SIGINT, &before_interrupt);
    listen_to(SIGTERM, &before_stop);
    signal(SIGXFSZ, SIG_IGN); /* a file size limit becomes a failed write, like a full disk */
    listening = true;
}

void cli_signals_run(struct sdr_run *run)
{
    atomic_store(&listener, run);
    if (run && waiting)
        sdr_run_request(run, (unsigned)waiting);
    if (run)
        waiting = 0;
}

void cli_signals_stop(void)
{
    if (listening) {
        sigaction(SIGUSR1, &before_checkpoint, NULL);
        sigaction(SIGINT, &before_interrupt, NULL);
        sigaction(SIGTERM, &before_stop, NULL);
    }
    listening = false;
    atomic_store(&listener, NULL);
}

bool cli_signals_stopped(void)
{
    return stopped_by != 0;
}

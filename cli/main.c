/* sounder: the program. Finds the command, runs it, prints one message if it failed. */
#include "cli.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static enum sdr_status run_command(const struct cli_command *command, int count, char **texts)
{
    struct cli_arguments arguments;
    enum sdr_status status = cli_arguments_parse(&arguments, command, count, texts);
    if (status == SDR_OK && (arguments.given & CLI_HELP)) {
        status = cli_command_help(command, arguments.given & CLI_HELP_ALL);
    } else if (status == SDR_OK && (arguments.given & CLI_PRINT_CONFIG)) {
        char *text = NULL;
        status = sdr_options_print(arguments.options, &text);
        if (status == SDR_OK)
            fputs(text, stdout);
        sdr_string_free(text);
    } else if (status == SDR_OK) {
        status = cli_arguments_check(&arguments);
        if (status == SDR_OK)
            status = command->run(&arguments);
    }
    cli_arguments_destroy(&arguments);
    return status;
}

static enum sdr_status find_and_run(int count, char **texts)
{
    if (count < 2)
        return cli_fail(SDR_USAGE, "no command given; see 'sounder --help'");
    const char *name = texts[1], *nearest = NULL;
    if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0) {
        printf("sounder %s\n", sdr_version());
        return SDR_OK;
    }
    bool help = strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0;
    if (help && count == 2) {
        cli_help();
        return SDR_OK;
    }
    if (help)
        name = texts[2];
    else if (name[0] == '-')
        return cli_fail(SDR_USAGE, "the command comes first, then %s; see 'sounder --help'", name);
    const struct cli_command *command = cli_command_find(name, &nearest);
    if (!command)
        return cli_fail(SDR_USAGE, "there is no command '%s'; %s%s%s", name,
                        nearest ? "did you mean '" : "see 'sounder --help'", nearest ? nearest : "",
                        nearest ? "'?" : "");
    if (help)
        return cli_command_help(command, count > 3 && strcmp(texts[3], "all") == 0);
    return run_command(command, count - 2, texts + 2);
}

int cli_process;
static bool in_job;

static void complain(enum sdr_status status, const char *sentence)
{
    cli_progress_clear();
    if (status == SDR_OK || cli_reader_gone())
        return;
    fputs("sounder: ", stderr);
    if (cli_process > 0)
        fprintf(stderr, "process %d: ", cli_process);
    cli_print_clean(stderr, sentence);
    putc('\n', stderr);
}

/* Called when the job has ended while this process reads or measures data. */
static void end_at_once(enum sdr_status status, const char *sentence)
{
    complain(status, sentence);
    _exit((int)status);
}

/* Processes that were started together, but not told to be one job, train the whole model, each for
   itself. The variables are those of mpirun (Open MPI, MPICH) and of srun. */
static void note_processes(const struct cli_arguments *arguments)
{
    static const char *const names[][2] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                           {"PMI_SIZE", "PMI_RANK"},
                                           {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}};
    const char *transport = sdr_options_get(arguments->options, "transport");
    for (size_t i = 0; i < sizeof names / sizeof *names && strcmp(transport, "threads") == 0; i++) {
        const char *processes = getenv(names[i][0]), *process = getenv(names[i][1]);
        if (processes && process && atoi(processes) > 1 && strcmp(process, "0") == 0) {
            cli_note("this is one of %d processes, and trains alone; --transport mpi --sync bsp "
                     "makes them one job",
                     atoi(processes));
            return;
        }
    }
}

enum sdr_status cli_job_start(struct cli_arguments *arguments)
{
    int processes;
    in_job = true;
    sdr_job_watch(end_at_once);
    CLI_TRY(sdr_job_join(arguments->options, &cli_process, &processes));
    in_job = processes > 1;
    if (cli_process > 0)
        arguments->given |= CLI_QUIET;
    cli_progress_start(arguments);
    note_processes(arguments);
    cli_signals_start();
    return SDR_OK;
}

int main(int count, char **texts)
{
    /* A closed reader (| head) makes a write fail: temporary files are removed and the exit code
       says so, without a message. */
    signal(SIGPIPE, SIG_IGN);
    cli_mapped_start();
    setvbuf(stderr, NULL, _IOLBF, 0); /* whole lines, also if several processes write */
    enum sdr_status status = find_and_run(count, texts);
    if (status == SDR_OK)
        status = cli_stdout_flush();
    complain(status, cli_sentence(status));
    enum sdr_status left = sdr_job_leave(status);
    if (left != status)
        complain(left, cli_sentence(left));
    if (in_job) { /* MPI threads may wait for a process that has died */
        fflush(NULL);
        _exit((int)left);
    }
    return (int)left;
}

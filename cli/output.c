/* Output files: checked before the work starts, and visible only when complete. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t cli_file_bytes(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 ? (uint64_t)facts.st_size : 0;
}

static bool is_file(const char *path, const struct stat *facts)
{
    struct stat input;
    return stat(path, &input) == 0 && input.st_dev == facts->st_dev &&
           input.st_ino == facts->st_ino;
}

/* An input that is not a file is a pattern, as in the library. */
static enum sdr_status check_input(const char *what, const char *path, const struct stat *facts,
                                   const char *input)
{
    glob_t found = {0};
    bool same = is_file(input, facts);
    if (!same && access(input, F_OK) != 0 && glob(input, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && !same; i++)
            same = is_file(found.gl_pathv[i], facts);
    globfree(&found);
    if (same)
        return cli_fail(SDR_USAGE, "%s '%s' would overwrite the input '%s'", what, path, input);
    return SDR_OK;
}

enum sdr_status cli_output_check(const char *what, const char *path, const char *const *inputs,
                                 size_t input_count, bool regular)
{
    struct stat facts;
    const char *slash = strrchr(path, '/');
    size_t length = strlen(path);
    if (length == 0)
        return cli_fail(SDR_USAGE, "%s needs the name of a file", what);
    if (slash && slash[1] == '\0')
        return cli_fail(SDR_USAGE, "%s '%s' names a folder, not a file", what, path);
    if (stat(path, &facts) == 0) {
        if (S_ISDIR(facts.st_mode))
            return cli_fail(SDR_USAGE, "%s '%s' is a folder, not a file", what, path);
        if (regular && !S_ISREG(facts.st_mode))
            return cli_fail(SDR_USAGE, "%s '%s' is not a regular file", what, path);
        for (size_t i = 0; i < input_count; i++)
            CLI_TRY(check_input(what, path, &facts, inputs[i]));
    }
    char *folder = strdup(path);
    if (!folder)
        return cli_fail(SDR_RUNTIME, "out of memory");
    enum sdr_status status = SDR_OK;
    folder[slash ? (slash == path ? 1 : slash - path) : 0] = '\0';
    const char *name = slash ? folder : ".";
    if (stat(name, &facts) != 0)
        status = cli_fail(SDR_RUNTIME, "cannot write '%s': folder '%s': %s", path, name,
                          strerror(errno));
    else if (!S_ISDIR(facts.st_mode))
        status = cli_fail(SDR_RUNTIME, "cannot write '%s': '%s' is not a folder", path, name);
    else if (access(name, W_OK | X_OK) != 0)
        status = cli_fail(SDR_RUNTIME, "cannot write '%s': folder '%s': %s", path, name,
                          strerror(errno));
    free(folder);
    return status;
}

enum sdr_status cli_output_check_all(const char *what, const char *path,
                                     const struct cli_arguments *arguments, size_t input_count,
                                     bool regular)
{
    static const char *const readers[] = {"labels", "valid", "valid-labels"};
    CLI_TRY(cli_output_check(what, path, arguments->paths, input_count, regular));
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        const char *input = sdr_options_get(arguments->options, readers[i]);
        if (input && input[0])
            CLI_TRY(cli_output_check(what, path, &input, 1, regular));
    }
    return SDR_OK;
}

static enum sdr_status open_temporary(struct cli_output *output, const char *path)
{
    /* Through a symbolic link, replaces the file behind it instead of the link. */
    output->path = realpath(path, NULL);
    if (!output->path)
        output->path = strdup(path);
    size_t room = output->path ? strlen(output->path) + 48 : 0;
    output->temporary = room ? malloc(room) : NULL;
    if (!output->temporary)
        return cli_fail(SDR_RUNTIME, "out of memory");
    /* A killed process with the same id may have left a file behind. */
    int descriptor = -1;
    for (int attempt = 0; attempt < 100 && descriptor < 0; attempt++) {
        snprintf(output->temporary, room, "%s.tmp-%ld-%d", output->path, (long)getpid(), attempt);
        descriptor = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor < 0 && errno != EEXIST)
            break;
    }
    output->stream = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (output->stream)
        return SDR_OK;
    enum sdr_status status = cli_fail(SDR_RUNTIME, "cannot write '%s': %s", path, strerror(errno));
    if (descriptor >= 0) {
        close(descriptor);
        unlink(output->temporary);
    }
    return status;
}

enum sdr_status cli_output_open(struct cli_output *output, const char *path)
{
    *output = (struct cli_output){.stream = stdout};
    if (!path || strcmp(path, "-") == 0)
        return SDR_OK;
    struct stat facts;
    enum sdr_status status = SDR_OK;
    output->stream = NULL;
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode)) {
        /* Pipes and devices are written directly; a rename would replace them by a file. */
        output->stream = fopen(path, "w");
        if (!output->stream)
            status = cli_fail(SDR_RUNTIME, "cannot write '%s': %s", path, strerror(errno));
    } else {
        status = open_temporary(output, path);
    }
    if (status != SDR_OK) {
        free(output->path);
        free(output->temporary);
        *output = (struct cli_output){0};
    }
    return status;
}

enum sdr_status cli_output_close(struct cli_output *output, enum sdr_status status)
{
    if (!output->stream)
        return status;
    if (output->stream == stdout)
        return status == SDR_OK ? cli_stdout_flush() : status;
    const char *name = output->path ? output->path : "the output";
    bool written = fflush(output->stream) == 0 && !ferror(output->stream) &&
                   (!output->temporary || fsync(fileno(output->stream)) == 0);
    int problem = errno;
    if (fclose(output->stream) != 0 && written) {
        written = false;
        problem = errno;
    }
    if (status == SDR_OK && written && output->temporary &&
        rename(output->temporary, output->path) != 0) {
        written = false;
        problem = errno;
    }
    if (status == SDR_OK && !written)
        status = cli_fail(SDR_RUNTIME, "cannot write '%s': %s", name, strerror(problem));
    if (status != SDR_OK && output->temporary)
        unlink(output->temporary);
    free(output->path);
    free(output->temporary);
    *output = (struct cli_output){0};
    return status;
}

static bool reader_gone;

bool cli_reader_gone(void)
{
    return reader_gone;
}

enum sdr_status cli_stdout_failed(const char *what, int problem)
{
    reader_gone = problem == EPIPE;
    return cli_fail(SDR_RUNTIME, "cannot write %s%s%s", what, problem ? ": " : "",
                    problem ? strerror(problem) : "");
}

enum sdr_status cli_stdout_flush(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return SDR_OK;
    if (reader_gone)
        return SDR_RUNTIME;
    return cli_stdout_failed("the results to standard output", errno);
}

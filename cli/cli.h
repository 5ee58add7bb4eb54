/* Shared by the files of the program. The program uses the library only through sounder.h; external
   names carry the prefix cli_ so that they cannot clash with the library's in a static link. */
#ifndef CLI_H
#define CLI_H

#include "sounder/sounder.h"

#include <jansson.h>
#include <stdio.h>

/* ---- failures (message.c): one message, printed once, by main ---- */
/* Records the message and returns status. Without a message main prints the library's
   sdr_error(). */
enum sdr_status cli_fail(enum sdr_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The number of this process in a job; only process 0 prints, except for errors. */
extern int cli_process;
/* The current message: the program's, else the library's, else the status in words. */
const char *cli_sentence(enum sdr_status status);
/* Prints text from files and file names without control characters (including newline and tab),
   which could control a terminal or break the line. */
void cli_print_clean(FILE *stream, const char *text);
/* Edit distance: insertions, deletions, replacements and swaps of neighbours. */
size_t cli_typing_errors(const char *a, const char *b);
/* Whether a distance is small enough, for a word of that length, for "did you mean". */
bool cli_is_near(size_t typing_errors, size_t length);

#define CLI_TRY(expression)                                                                        \
    do {                                                                                           \
        enum sdr_status try_status_ = (expression);                                                \
        if (try_status_ != SDR_OK)                                                                 \
            return try_status_;                                                                    \
    } while (0)

/* CLI_TRY for functions with a label `cleanup` and a variable `status`. */
#define CLI_CHECK(expression)                                                                      \
    do {                                                                                           \
        status = (expression);                                                                     \
        if (status != SDR_OK)                                                                      \
            goto cleanup;                                                                          \
    } while (0)

/* ---- mapped files that are truncated (mapped.c) ---- */
void cli_mapped_start(void);

/* ---- arguments (arguments.c) ---- */
/* Options of the program itself; all others belong to the library. */
enum {
    CLI_HELP = 1 << 0,
    CLI_JSON = 1 << 1,
    CLI_QUIET = 1 << 2,
    CLI_CONFIG = 1 << 3,
    CLI_PRINT_CONFIG = 1 << 4,
    CLI_OUT = 1 << 5,
    CLI_PROBA = 1 << 6,
    CLI_SCORES = 1 << 7,
    CLI_VERBOSE = 1 << 8,
    CLI_TOP = 1 << 9,
    CLI_SPARSITY = 1 << 10,
    CLI_SYNC = 1 << 11,
    CLI_SEEDS = 1 << 12,
    CLI_TARGET = 1 << 13,
    CLI_REPORT = 1 << 14,
    CLI_LEDGER = 1 << 15,
    CLI_CHART = 1 << 16,
    CLI_HELP_ALL = 1 << 17,
    CLI_VARIANT = 1 << 18,
    CLI_CHART_X = 1 << 19,
    CLI_CHART_Y = 1 << 20
};

struct cli_arguments {
    const struct cli_command *command; /* borrowed */
    struct sdr_options *options;       /* owned: the library's options from flags and file */
    const char **paths;                /* owned array of borrowed texts: the positional arguments */
    size_t path_count;
    const char **variants; /* owned array of borrowed texts: --variant, in order */
    size_t variant_count;
    unsigned given; /* CLI_… that were set */
    const char *out, *config, *top, *sync, *seeds, *target, *report, *chart, *chart_x,
        *chart_y; /* borrowed from argv; NULL: not given */
};

struct cli_command {
    const char *name, *positional, *summary;
    const char *description; /* for --help; lines of at most 95 columns */
    const char *example;
    const char *out_help; /* help of --out, if the command takes it */
    size_t least, most;   /* number of positional arguments */
    unsigned takes;       /* CLI_… that it accepts */
    enum sdr_status (*run)(struct cli_arguments *arguments);
};

/* Parses the arguments after the command's name. Check for CLI_HELP before cli_arguments_check.
   Destroy the arguments also after a failure. */
enum sdr_status cli_arguments_parse(struct cli_arguments *arguments,
                                    const struct cli_command *command, int count, char **texts);
/* Parses the option at texts[*at], which starts with "--"; leaves *at at its last text. */
enum sdr_status cli_arguments_option(struct cli_arguments *arguments, int count, char **texts,
                                     int *at);
/* Fails for too few or too many positional arguments. */
enum sdr_status cli_arguments_check(const struct cli_arguments *arguments);
/* Standard input can be read only once, as data or as labels. */
enum sdr_status cli_arguments_check_input(const struct cli_arguments *arguments);
void cli_arguments_destroy(struct cli_arguments *arguments);

/* ---- commands and their help (help.c) ---- */
extern const struct cli_command cli_train, cli_predict, cli_eval, cli_inspect, cli_convert,
    cli_generate, cli_list, cli_compare;
extern const struct cli_command *const cli_commands[]; /* ends with NULL */
/* NULL if there is no such command; *nearest is then a similar name, or NULL. */
const struct cli_command *cli_command_find(const char *name, const char **nearest);
void cli_help(void);
/* all: all options instead of the common ones. */
enum sdr_status cli_command_help(const struct cli_command *command, bool all);

/* An option of the program itself, for parsing and help. */
struct cli_own_option {
    const char *name, *value; /* value: placeholder in the help; NULL for a flag */
    unsigned bit;
    const char *help;
};
extern const struct cli_own_option cli_own_options[]; /* ends with name NULL */

/* ---- progress (progress.c): on standard error while a command works ---- */
/* Makes the library report to standard error, unless --quiet was given. */
void cli_progress_start(struct cli_arguments *arguments);
/* Erases the progress line, so that output starts on a clean line. */
void cli_progress_clear(void);
/* "sounder: note: …" on standard error, unless --quiet was given. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- signals (signals.c) ---- */
/* Installs the handlers: SIGINT and SIGTERM stop reading, SIGUSR1 is remembered. */
void cli_signals_start(void);
/* Before data is read: determines cli_process, and which process prints and handles signals. */
enum sdr_status cli_job_start(struct cli_arguments *arguments);
/* Directs signals to this run as requests; NULL: they are only remembered, so that saving the model
   is not interrupted. */
void cli_signals_run(struct sdr_run *run);
/* Restores the default handlers; call before the run is destroyed. */
void cli_signals_stop(void);
/* True once a signal has requested a stop. */
bool cli_signals_stopped(void);

/* ---- model files (model.c) ---- */
bool cli_starts_like_model(const char *path);
/* Loads the model named by the first argument. For other files the message gives the order of
   arguments. */
enum sdr_status cli_model_load(const struct cli_arguments *arguments, struct sdr_model **model);

/* ---- output files (output.c) ---- */
/* Fails early if `path` cannot be written, or is one of the inputs, which may be patterns. `what`
   names it in the message: "--out", "OUT". `regular` refuses pipes and devices: the library
   replaces files by renaming, which must not happen to /dev/null. */
enum sdr_status cli_output_check(const char *what, const char *path, const char *const *inputs,
                                 size_t input_count, bool regular);
/* The same for the first input_count positional arguments and the files named by options. */
enum sdr_status cli_output_check_all(const char *what, const char *path,
                                     const struct cli_arguments *arguments, size_t input_count,
                                     bool regular);
/* A stream that becomes a file on close; path NULL or "-" is standard output. */
struct cli_output {
    FILE *stream;
    char *path, *temporary; /* owned; NULL for standard output and devices */
};
enum sdr_status cli_output_open(struct cli_output *output, const char *path);
/* Closes the output. The file appears only if `status`, that of the work before, is SDR_OK. Returns
   the first failure. */
enum sdr_status cli_output_close(struct cli_output *output, enum sdr_status status);
/* Flushes standard output; SDR_RUNTIME if that fails. */
enum sdr_status cli_stdout_flush(void);
/* Reports a failed write of `what` to standard output; `problem` is its errno. */
enum sdr_status cli_stdout_failed(const char *what, int problem);
/* The reader of standard output has closed it: nobody reads a message. */
bool cli_reader_gone(void);
/* Size of a file in bytes, 0 if unknown. */
uint64_t cli_file_bytes(const char *path);

/* ---- printing results (table.c, number.c) ---- */
/* Prints the JSON text on one line. */
void cli_print_json(const char *json);
/* Prints the JSON object as aligned lines: nested objects indented, arrays of objects as tables. */
enum sdr_status cli_print_table(const char *json);
/* Prints the object on one line and releases it (NULL: out of memory). */
enum sdr_status cli_print_object(json_t *object);
/* Build such an object; both take over value. cli_print_object fails if an allocation failed. */
void cli_json_set(json_t *object, const char *key, json_t *value);
void cli_json_append(json_t *array, json_t *value);
/* A user's text as JSON; NULL: out of memory. Invalid UTF-8 becomes {"hex": "…"}. */
json_t *cli_json_text(const char *text);
/* Width in terminal columns. */
size_t cli_text_width(const char *text);
/* Parses the library's JSON text; the caller releases *object with json_decref. */
enum sdr_status cli_json_parse(const char *json, json_t **object);

enum { CLI_NUMBER_TEXT = 40 };
/* These write to text and return it, for use as printf arguments. */
const char *cli_count_text(char text[CLI_NUMBER_TEXT], double count);      /* 5.1M       */
const char *cli_bytes_text(char text[CLI_NUMBER_TEXT], double bytes);      /* 1.2 GB     */
const char *cli_duration_text(char text[CLI_NUMBER_TEXT], double seconds); /* 1:02:03    */
/* The shortest text that reads back as the same float. */
const char *cli_float_text(char text[CLI_NUMBER_TEXT], float value);

#endif

/* What the files of the program share. The program knows the library only through sounder.h; names
   with external linkage carry cli_ so that they never meet the library's own in a static link. */
#ifndef CLI_H
#define CLI_H

#include "sounder/sounder.h"

#include <jansson.h>
#include <stdio.h>

/* ---- failures (message.c): one sentence, printed once, by main ---- */
/* Records the sentence and returns status. Without it, main prints the library's sdr_error(). */
enum sdr_status cli_fail(enum sdr_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The sentence in force: the program's own, else the library's, else the status in words. */
/* Which of the processes of a job this is; only the first one talks, errors aside. */
extern int cli_process;
const char *cli_sentence(enum sdr_status status);
/* Text from files and file names, without the control characters that could steer a terminal or
   break "one line"; newline and tab count as such. */
void cli_print_clean(FILE *stream, const char *text);
/* Distance in typing errors: insert, delete, replace, swap of neighbours. */
size_t cli_typing_errors(const char *a, const char *b);
/* True if a distance is small enough, for a word of that length, to say "did you mean". */
bool cli_is_near(size_t typing_errors, size_t length);

#define CLI_TRY(expression)                                                                        \
    do {                                                                                           \
        enum sdr_status try_status_ = (expression);                                                \
        if (try_status_ != SDR_OK)                                                                 \
            return try_status_;                                                                    \
    } while (0)

/* The same in a function with a cleanup label and a variable `status`. */
#define CLI_CHECK(expression)                                                                      \
    do {                                                                                           \
        status = (expression);                                                                     \
        if (status != SDR_OK)                                                                      \
            goto cleanup;                                                                          \
    } while (0)

/* ---- files that are cut off while they are mapped (mapped.c) ---- */
void cli_mapped_start(void);

/* ---- arguments (arguments.c) ---- */
/* The options the program itself owns; all others belong to the library. */
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
    CLI_HELP_ALL = 1 << 17
};

struct cli_arguments {
    const struct cli_command *command; /* borrowed */
    struct sdr_options *options;       /* owned: the library's options, flags and file merged */
    const char **paths;                /* owned array of borrowed texts: what is not an option */
    size_t path_count;
    unsigned given; /* CLI_… that were set */
    const char *out, *config, *top, *sync, *seeds, *target, *report,
        *chart; /* borrowed from argv; NULL: not given */
};

struct cli_command {
    const char *name, *positional, *summary;
    const char *description; /* for --help; lines of at most 95 columns */
    const char *example;
    const char *out_help; /* what --out names, if the command takes it */
    size_t least, most;   /* number of positional arguments */
    unsigned takes;       /* CLI_… */
    enum sdr_status (*run)(struct cli_arguments *arguments);
};

/* Parses what follows the command's name. Ask for CLI_HELP before the positional arguments are
   counted: see cli_arguments_check. Destroy in every case. */
enum sdr_status cli_arguments_parse(struct cli_arguments *arguments,
                                    const struct cli_command *command, int count, char **texts);
/* Too few or too many positional arguments. */
enum sdr_status cli_arguments_check(const struct cli_arguments *arguments);
/* Standard input can be read once, be it as data or as labels. */
enum sdr_status cli_arguments_check_input(const struct cli_arguments *arguments);
void cli_arguments_destroy(struct cli_arguments *arguments);

/* ---- commands and their help (help.c) ---- */
extern const struct cli_command cli_train, cli_predict, cli_eval, cli_inspect, cli_convert,
    cli_generate, cli_list, cli_compare;
extern const struct cli_command *const cli_commands[]; /* ends with NULL */
/* NULL if there is none of that name; *nearest is then a name like it, or NULL. */
const struct cli_command *cli_command_find(const char *name, const char **nearest);
void cli_help(void);
/* all: all options, not only the common ones. */
enum sdr_status cli_command_help(const struct cli_command *command, bool all);

/* The name and shape of an option the program owns, for parsing and help. */
struct cli_own_option {
    const char *name, *value; /* value: what the help shows; NULL for a flag */
    unsigned bit;
    const char *help;
};
extern const struct cli_own_option cli_own_options[]; /* ends with name NULL */

/* ---- progress (progress.c): standard error while a command works ---- */
/* Makes the library report to standard error, unless --quiet was given. */
void cli_progress_start(struct cli_arguments *arguments);
/* Removes the refreshed line, so that what is printed next starts on a clean one. */
void cli_progress_clear(void);
/* "sounder: note: …" on standard error, unless --quiet was given. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- signals (signals.c) ---- */
/* From here on signals are requests: SIGINT and SIGTERM end the reading, SIGUSR1 is remembered. */
void cli_signals_start(void);
/* Before data is read: which process of a job this is (cli_process), who speaks, and who listens to signals. */
enum sdr_status cli_job_start(struct cli_arguments *arguments);
/* Signals go to this run as requests; NULL: they are remembered only, so that saving the model is
   not interrupted either. */
void cli_signals_run(struct sdr_run *run);
/* Back to what the system does; call before the run is destroyed. */
void cli_signals_stop(void);
/* True once a signal has asked for a stop. */
bool cli_signals_stopped(void);

/* ---- model files (model.c) ---- */
bool cli_starts_like_model(const char *path);
/* The model that the first argument names. If that is no model, the sentence says which comes first. */
enum sdr_status cli_model_load(const struct cli_arguments *arguments, struct sdr_model **model);

/* ---- output files (output.c) ---- */
/* Fails early if a file cannot be written at `path`, or if it is one of the inputs, which
   may be patterns. `what` names it
   in the sentence: "--out", "OUT". `regular` refuses pipes and devices: the library replaces files
   by renaming, which must not happen to /dev/null. */
enum sdr_status cli_output_check(const char *what, const char *path, const char *const *inputs,
                                 size_t input_count, bool regular);
/* The same for the first input_count positional arguments and the files that options name. */
enum sdr_status cli_output_check_all(const char *what, const char *path,
                                     const struct cli_arguments *arguments, size_t input_count,
                                     bool regular);
/* A stream that becomes the file when it is committed; path NULL or "-" is standard output. */
struct cli_output {
    FILE *stream;
    char *path, *temporary; /* owned; NULL for standard output and devices */
};
enum sdr_status cli_output_open(struct cli_output *output, const char *path);
/* Ends the output in every case; status is that of the work before: the file appears only if it is
   SDR_OK. Returns the first failure. */
enum sdr_status cli_output_close(struct cli_output *output, enum sdr_status status);
/* Writes out what standard output still holds; SDR_RUNTIME if that is not possible. */
enum sdr_status cli_stdout_flush(void);
/* Standard output could not be written: `what` was, `problem` is the errno of it. */
enum sdr_status cli_stdout_failed(const char *what, int problem);
/* The reader of standard output has gone: there is nobody to complain to. */
bool cli_reader_gone(void);
/* Size of a file in bytes, 0 if it cannot be found out. */
uint64_t cli_file_bytes(const char *path);

/* ---- printing results (table.c, number.c) ---- */
/* Prints the JSON text as one line. */
void cli_print_json(const char *json);
/* Prints the JSON object as aligned lines, nested objects indented, arrays of objects as tables. */
enum sdr_status cli_print_table(const char *json);
/* Prints the object, which it takes over (NULL: out of memory), as one line. */
enum sdr_status cli_print_object(json_t *object);
/* Builds such an object; both take value over. cli_print_object fails if there was no memory for one of them. */
void cli_json_set(json_t *object, const char *key, json_t *value);
void cli_json_append(json_t *array, json_t *value);
/* A text of the user's; NULL: out of memory. What is not UTF-8 becomes {"hex": "…"}. */
json_t *cli_json_text(const char *text);
/* Columns on a terminal, not bytes. */
size_t cli_text_width(const char *text);
/* Parses the library's JSON text; the caller releases *object with json_decref. */
enum sdr_status cli_json_parse(const char *json, json_t **object);

enum { CLI_NUMBER_TEXT = 40 };
/* These write into text and return it, to be used as arguments of printf. */
const char *cli_count_text(char text[CLI_NUMBER_TEXT], double count);      /* 5.1M       */
const char *cli_bytes_text(char text[CLI_NUMBER_TEXT], double bytes);      /* 1.2 GB     */
const char *cli_duration_text(char text[CLI_NUMBER_TEXT], double seconds); /* 1:02:03    */
/* The shortest text that reads back as the same float. */
const char *cli_float_text(char text[CLI_NUMBER_TEXT], float value);

#endif

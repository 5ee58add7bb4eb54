/* Sounder: parallel and distributed stochastic gradient descent. The whole public interface.

   Handles are opaque. Every function that can fail returns an enum sdr_status; the sentence that
   explains the failure is sdr_error(), kept per thread. Options are strings, the same that the
   program takes. The library never prints, exits, aborts, or reads the environment.

   A training run in six lines:

       sdr_options_create(&options);
       sdr_data_open(options, paths, 1, NULL, &data);
       sdr_run_create(options, data, NULL, &run);
       sdr_run_train(run);
       sdr_run_model(run, &model);
       sdr_model_save(model, "model.safetensors");
*/
#ifndef SOUNDER_H
#define SOUNDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SDR_API __attribute__((visibility("default")))
#else
#define SDR_API
#endif

/* One list gives the enum and its texts; the numbers are the exit codes of the program. */
#define SDR_STATUS_LIST(X)                                                                         \
    X(SDR_OK, 0, "success")                                                                        \
    X(SDR_RUNTIME, 1, "runtime failure")                                                           \
    X(SDR_USAGE, 2, "usage")                                                                       \
    X(SDR_BAD_DATA, 3, "bad data")                                                                 \
    X(SDR_DIVERGED, 4, "diverged")                                                                 \
    X(SDR_BAD_FILE, 5, "bad model, cache or checkpoint")                                           \
    X(SDR_PEER_LOST, 6, "peer lost")                                                               \
    X(SDR_PREEMPTED, 75, "stopped on request; run again, or go on with a checkpoint")

#define SDR_STATUS_ENUM(name, number, text) name = number,
enum sdr_status { SDR_STATUS_LIST(SDR_STATUS_ENUM) };
#undef SDR_STATUS_ENUM

SDR_API const char *sdr_version(void);
/* The sentence of the calling thread's last failure; valid until its next failing call. */
SDR_API const char *sdr_error(void);
SDR_API const char *sdr_status_text(enum sdr_status status);
/* Frees a string that a function below gave away. */
SDR_API void sdr_string_free(char *text);

/* ---- options: the run's flags by name, without the leading dashes ---- */
struct sdr_options;
SDR_API enum sdr_status sdr_options_create(struct sdr_options **options);
SDR_API void sdr_options_destroy(struct sdr_options *options);
/* Checks name and value at once; an unknown name is refused with the nearest valid one.
   Options that take no value (flags) accept "yes" and "no". "cpu" counts for the whole process, from
   the data or the run that is opened with it on. */
SDR_API enum sdr_status sdr_options_set(struct sdr_options *options, const char *name,
                                        const char *value);
/* True if the option exists and takes no value on a command line. */
SDR_API bool sdr_options_is_flag(const char *name);
/* The value in force (set, or the default), cut off behind 4095 bytes, NULL for an unknown name; valid until the
   thread's next call. */
SDR_API const char *sdr_options_get(const struct sdr_options *options, const char *name);
/* Whether JSON can hold the text as a string; results hold others as {"hex": "…"}. */
SDR_API bool sdr_is_utf8(const char *text, size_t length);
/* Reads "name = value" lines; '#' starts a comment. Options already set are kept. */
SDR_API enum sdr_status sdr_options_load(struct sdr_options *options, const char *path);
/* All options in force as text that sdr_options_load reads. Given away. */
SDR_API enum sdr_status sdr_options_print(const struct sdr_options *options, char **text);
/* Rules across options that can be told before any data is read; sdr_run_create checks them too. */
SDR_API enum sdr_status sdr_options_check(const struct sdr_options *options);
/* Help for the options of one command ("train", "predict", "eval", "inspect", "convert",
   "generate", "compare"): a line each, below the titles of their groups. Where they are many, the common
   ones alone unless all are asked for. Given away. */
SDR_API enum sdr_status sdr_options_help(const char *command, bool all, char **text);
/* True if the command takes the option. */
SDR_API bool sdr_options_for_command(const char *command, const char *name);

/* ---- plug-ins ---- */
/* One plug-in a line, "name  summary", of a kind: model optimizer schedule sync format generate.
   NULL lists the kinds. verbose adds every plug-in's options. Given away. */
SDR_API enum sdr_status sdr_list(const char *kind, bool verbose, char **text);

/* ---- what a run tells while it goes ---- */
enum sdr_report_kind {
    SDR_REPORT_NOTE,     /* a sentence: a guess that was made, a cache rebuilt, a model chosen */
    SDR_REPORT_READ,     /* reading: bytes done of bytes in all (0: unknown)                   */
    SDR_REPORT_PROGRESS, /* training, a few times a second                                     */
    SDR_REPORT_EPOCH,    /* an epoch ended and was evaluated                                   */
    SDR_REPORT_POINT     /* a point of the curve was evaluated: option evaluate-every          */
};
struct sdr_report {
    enum sdr_report_kind kind;
    const char *note;          /* NOTE: borrowed for the call */
    uint64_t done, total;      /* READ: bytes; PROGRESS: rows of the whole run, 0 if unknown */
    uint64_t rows, updates;    /* rows and updates applied so far */
    uint64_t epoch, epochs;    /* finished, planned */
    double seconds, rate, eta; /* so far; rows (or bytes) per second; seconds to go, < 0 unknown */
    double running_loss; /* mean over this epoch of the loss before each update; NaN: unknown */
    double objective;    /* EPOCH, POINT: train loss + penalty; NaN if not evaluated */
    double valid_loss;   /* EPOCH, POINT: NaN without validation data */
    const char *metric;  /* EPOCH, POINT: "accuracy", "r2"; NULL without validation data */
    double valid_metric;
    bool virtual_time; /* seconds are those of the simulator; rate and eta are real */
};
/* Called from the thread that called the library, never concurrently. */
typedef void sdr_report_function(void *context, const struct sdr_report *report);
SDR_API void sdr_options_report(struct sdr_options *options, sdr_report_function *function,
                                void *context);

/* ---- data ---- */
struct sdr_data;
struct sdr_model;
/* Reads files (paths or glob patterns; "-" is standard input) as one data set. With a model, its
   schema decides columns, categories, hashing and labels, and a table may have a header alone: no
   rows; without, the file does, and rows are needed. Uses the options
   format, label, labels, weight, ignore, bits, missing, cache, memory, threads ... */
SDR_API enum sdr_status sdr_data_open(const struct sdr_options *options, const char *const *paths,
                                      size_t count, const struct sdr_model *model,
                                      struct sdr_data **data);
/* The data named by the options valid and valid-labels, read with the schema of train;
 *data is NULL if there is none. */
SDR_API enum sdr_status sdr_data_open_valid(const struct sdr_options *options,
                                            const struct sdr_data *train, struct sdr_data **data);
/* Arrays of the caller, borrowed until sdr_data_destroy. label may be NULL for prediction,
   weight NULL for all ones. x[row * stride + column]. */
SDR_API enum sdr_status sdr_data_dense(const float *x, size_t rows, size_t features, size_t stride,
                                       const float *label, const float *weight,
                                       struct sdr_data **data);
/* Compressed sparse rows: start has rows + 1 entries, columns strictly increasing in a row. */
SDR_API enum sdr_status sdr_data_csr(const uint64_t *start, const uint32_t *column,
                                     const float *value, size_t rows, size_t features,
                                     const float *label, const float *weight,
                                     struct sdr_data **data);
SDR_API void sdr_data_destroy(struct sdr_data *data);
/* With true: reading and predicting, under way or later, in any thread, end with SDR_PREEMPTED; nothing
   half-written stays. With false: no longer. May be called from a signal handler. */
SDR_API void sdr_stop_reading(bool stop);
SDR_API size_t sdr_data_rows(const struct sdr_data *data);
SDR_API size_t sdr_data_features(const struct sdr_data *data);
SDR_API uint64_t sdr_data_nonzeros(const struct sdr_data *data);
/* One JSON object: format, rows, features, density, labels, columns ... Given away. */
SDR_API enum sdr_status sdr_data_inspect(const struct sdr_data *data, char **json);
/* How much its rows conflict, as one JSON object: omega, the entries of the longest row; delta, the
   largest share of rows that touch one feature; rho, the largest share of rows that one row shares a
   feature with (the latter two from some of the rows); components of windows. Given away. */
SDR_API enum sdr_status sdr_data_sparsity(const struct sdr_data *data, char **json);
/* Writes data as a cache file (.sdc). */
SDR_API enum sdr_status sdr_data_convert(const struct sdr_options *options,
                                         const struct sdr_data *data, const char *path);
/* Makes a data file with known truth. kind as sdr_list("generate") prints it; uses the options rows
   features nnz classes noise seed ...; the format follows the file's extension. */
SDR_API enum sdr_status sdr_generate(const struct sdr_options *options, const char *kind,
                                     const char *path);

/* Jobs of several processes (transport mpi). join, before data is read, tells which process this is, from 0
   on, and how many there are: 0 of 1 otherwise. All of them read, create a run and train; process 0 alone
   has a model and results then. leave, at the end, with how it went: the others are not left waiting. It returns
   the status to end with: SDR_PEER_LOST if process 0 was lost before it had finished. End the process with _exit
   then: parts of MPI may wait for a process that has died. */
SDR_API enum sdr_status sdr_job_join(const struct sdr_options *options, int *process,
                                     int *processes);
SDR_API enum sdr_status sdr_job_leave(enum sdr_status status);
/* end is called, by another thread, if the job cannot go on because a process was lost, and this one is so busy,
   reading data say, that no call has returned SDR_PEER_LOST two seconds later. It should end the process with
   _exit; temporary files were removed. NULL: the call returns when its work is done. */
SDR_API void sdr_job_watch(void (*end)(enum sdr_status status, const char *sentence));
/* Removes the temporary files of everything that is being written: for a process that is about to _exit. A signal
   handler may call it. */
SDR_API void sdr_writers_remove(void);

/* ---- training ---- */
struct sdr_run;
/* Borrows both data sets until sdr_run_destroy; valid may be NULL. Copies the options. */
SDR_API enum sdr_status sdr_run_create(const struct sdr_options *options, struct sdr_data *train,
                                       struct sdr_data *valid, struct sdr_run **run);
SDR_API void sdr_run_destroy(struct sdr_run *run);
enum sdr_request {
    SDR_REQUEST_CHECKPOINT = 1, /* write a checkpoint and go on */
    SDR_REQUEST_STOP = 2        /* write a checkpoint if there is a run directory, then stop */
};
/* May be called from a signal handler or another thread while sdr_run_train runs. */
SDR_API void sdr_run_request(struct sdr_run *run, unsigned requests);
/* Trains, once. A failure need not cost the model: after SDR_DIVERGED it is the last good one, after SDR_RUNTIME it may
   be complete and only the run directory lack something (its disk is full). sdr_run_has_model tells. */
SDR_API enum sdr_status sdr_run_train(struct sdr_run *run);
/* One JSON object with the results and the chosen options. Given away. */
SDR_API enum sdr_status sdr_run_summary(const struct sdr_run *run, char **json);
/* Where a run stands, by its directory, and of one with servers: staleness, and what every worker did, waited for
   and was waited for; "straggler" where one stands out. Given away. */
SDR_API enum sdr_status sdr_run_inspect(const char *folder, char **json);
/* The ledger of a run with servers, a line for every gradient, the first with the names: worker, waited_for (the worker
   whose gradient ended its wait, or -1), read and applied (versions; applied is empty where it was dropped), bytes,
   seconds computing, travelling and waiting; with commas. `text` is borrowed for the call. */
typedef void sdr_text_function(void *context, const char *text);
SDR_API enum sdr_status sdr_run_ledger(const char *folder, sdr_text_function *print, void *context);
SDR_API bool sdr_run_has_model(const struct sdr_run *run);
/* The trained model; the caller destroys it. */
SDR_API enum sdr_status sdr_run_model(const struct sdr_run *run, struct sdr_model **model);

/* ---- models ---- */
SDR_API enum sdr_status sdr_model_load(const char *path, struct sdr_model **model);
/* Atomic: the file is the whole model or what was there before. */
SDR_API enum sdr_status sdr_model_save(const struct sdr_model *model, const char *path);
SDR_API void sdr_model_destroy(struct sdr_model *model);
/* Number of scores a row has: 1, or the number of classes of a softmax model. */
SDR_API size_t sdr_model_outputs(const struct sdr_model *model);
/* Number of classes, 0 for regression. */
SDR_API size_t sdr_model_classes(const struct sdr_model *model);
/* The text of a class label as it stood in the training data; borrowed. */
SDR_API const char *sdr_model_label(const struct sdr_model *model, size_t class_number);
enum sdr_prediction {
    SDR_PREDICT_VALUE, /* class number, or the predicted value: 1 per row          */
    SDR_PREDICT_SCORE, /* raw scores: outputs per row                              */
    SDR_PREDICT_PROBA  /* probabilities: classes per row (a usage error if it has none) */
};
/* out: rows × (1, outputs or classes), written by the call. */
SDR_API enum sdr_status sdr_model_predict(const struct sdr_model *model,
                                          const struct sdr_data *data, enum sdr_prediction what,
                                          float *out);
/* Recommendations by a model of ratings (mf): for every user in the data, in the order they appear, the
   `top` best items, best first, without those that the data has for the user. All is borrowed for
   the call. */
typedef void sdr_top_function(void *context, const char *user, size_t count,
                              const char *const *item, const float *score);
SDR_API enum sdr_status sdr_model_top(const struct sdr_model *model, const struct sdr_data *data,
                                      size_t top, sdr_top_function *function, void *context);
/* Loss and metrics on labelled data as one JSON object. Given away. */
SDR_API enum sdr_status sdr_model_evaluate(const struct sdr_model *model,
                                           const struct sdr_data *data, char **json);
/* Schema, blocks, options, largest weights by feature as one JSON object. Given away. */
SDR_API enum sdr_status sdr_model_inspect(const struct sdr_model *model, char **json);
/* Copies a block ("weight", "intercept") out; *count is its number of values; out may be NULL. */
SDR_API enum sdr_status sdr_model_block(const struct sdr_model *model, const char *name, float *out,
                                        size_t *count);

#ifdef __cplusplus
}
#endif
#endif

/* Sounder: parallel and distributed stochastic gradient descent. The complete public interface.

   Handles are opaque. Every function that can fail returns an enum sdr_status; sdr_error() has the
   message, one per thread. Options are strings, the same as on the command line. The library never
   prints, exits, aborts, or reads the environment. A training run in six lines:

       sdr_options_create(&options);
       sdr_data_open(options, paths, 1, NULL, &data);
       sdr_run_create(options, data, NULL, &run);
       sdr_run_train(run);
       sdr_run_model(run, &model);
       sdr_model_save(model, "model.safetensors"); */
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

/* One list gives the enum and its texts; the numbers are the program's exit codes. */
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
/* The message of the calling thread's last failure; valid until its next failing call. */
SDR_API const char *sdr_error(void);
SDR_API const char *sdr_status_text(enum sdr_status status);
/* Frees a string given away by a function below. */
SDR_API void sdr_string_free(char *text);

/* ---- options: the run's flags by name, without the leading dashes ---- */
struct sdr_options;
SDR_API enum sdr_status sdr_options_create(struct sdr_options **options);
/* A handle of its own with the same values and report function. */
SDR_API enum sdr_status sdr_options_clone(const struct sdr_options *options,
                                          struct sdr_options **clone);
SDR_API void sdr_options_destroy(struct sdr_options *options);
/* Checks name and value at once; the error for an unknown name suggests the nearest valid one.
   Flags accept "yes" and "no". "cpu" applies to the whole process, from the next data or run opened
   with it. */
SDR_API enum sdr_status sdr_options_set(struct sdr_options *options, const char *name,
                                        const char *value);
/* True if the option exists and takes no value on a command line. */
SDR_API bool sdr_options_is_flag(const char *name);
/* The current value (set, or the default), truncated to 4095 bytes; NULL for an unknown name. Valid
   until the thread's next call. */
SDR_API const char *sdr_options_get(const struct sdr_options *options, const char *name);
/* Whether the text is valid UTF-8; results represent other texts as {"hex": "…"}. */
SDR_API bool sdr_is_utf8(const char *text, size_t length);
/* Reads "name = value" lines; '#' starts a comment. Options already set are kept. */
SDR_API enum sdr_status sdr_options_load(struct sdr_options *options, const char *path);
/* All current options as text that sdr_options_load reads. Given away. */
SDR_API enum sdr_status sdr_options_print(const struct sdr_options *options, char **text);
/* Checks rules across options that need no data; sdr_run_create checks them too. */
SDR_API enum sdr_status sdr_options_check(const struct sdr_options *options);
/* Help for the options of a command ("train", "predict", "eval", "inspect", "convert", "generate",
   "compare"), one line per option, grouped under titles. If there are many, only the common ones
   unless `all`. Given away. */
SDR_API enum sdr_status sdr_options_help(const char *command, bool all, char **text);
/* True if the command takes the option. */
SDR_API bool sdr_options_for_command(const char *command, const char *name);

/* ---- plug-ins ---- */
/* Lists the plug-ins of a kind, one line each: name and summary. kind: model optimizer schedule
   sync transport codec aggregate format generate; NULL lists the kinds. verbose adds the options of
   every plug-in. Given away. */
SDR_API enum sdr_status sdr_list(const char *kind, bool verbose, char **text);

/* ---- reports during a run ---- */
enum sdr_report_kind {
    SDR_REPORT_NOTE,     /* a message: a guess, a rebuilt cache, a chosen model */
    SDR_REPORT_READ,     /* reading: bytes done of total (0: unknown) */
    SDR_REPORT_PROGRESS, /* training, several times a second */
    SDR_REPORT_EPOCH,    /* an epoch ended and was evaluated */
    SDR_REPORT_POINT     /* a point of the curve was evaluated: option evaluate-every */
};
struct sdr_report {
    enum sdr_report_kind kind;
    const char *note;          /* NOTE: borrowed for the call */
    uint64_t done, total;      /* READ: bytes; PROGRESS: rows of the whole run, 0 if unknown */
    uint64_t rows, updates;    /* rows and updates applied so far */
    uint64_t epoch, epochs;    /* completed, planned */
    double seconds, rate, eta; /* elapsed; rows (or bytes) per second; remaining, < 0: unknown */
    double running_loss; /* mean over this epoch of the loss before each update; NaN: unknown */
    double objective;    /* EPOCH, POINT: train loss + penalty; NaN if not evaluated */
    double valid_loss;   /* EPOCH, POINT: NaN without validation data */
    const char *metric;  /* EPOCH, POINT: "accuracy", "r2"; NULL without validation data */
    double valid_metric;
    bool virtual_time; /* seconds are the simulator's; rate and eta are real */
};
/* Called from the thread that called the library, never concurrently. */
typedef void sdr_report_function(void *context, const struct sdr_report *report);
SDR_API void sdr_options_report(struct sdr_options *options, sdr_report_function *function,
                                void *context);

/* ---- data ---- */
struct sdr_data;
struct sdr_model;
/* Reads files (paths or glob patterns; "-" is standard input) as one data set. With a model, its
   schema determines columns, categories, hashing and labels, and a table may have no rows below its
   header. Without a model, the file determines them and must have rows. Uses the options format,
   label, labels, weight, ignore, bits, missing, cache, memory, threads ... */
SDR_API enum sdr_status sdr_data_open(const struct sdr_options *options, const char *const *paths,
                                      size_t count, const struct sdr_model *model,
                                      struct sdr_data **data);
/* Reads the data of the options valid and valid-labels with the schema of train; *data is NULL if
   they are not set. */
SDR_API enum sdr_status sdr_data_open_valid(const struct sdr_options *options,
                                            const struct sdr_data *train, struct sdr_data **data);
/* Data from the caller's arrays, borrowed until sdr_data_destroy. label may be NULL for prediction,
   weight NULL for all ones. x[row * stride + column]. */
SDR_API enum sdr_status sdr_data_dense(const float *x, size_t rows, size_t features, size_t stride,
                                       const float *label, const float *weight,
                                       struct sdr_data **data);
/* Compressed sparse rows: start has rows + 1 entries, columns strictly increase within a row. */
SDR_API enum sdr_status sdr_data_csr(const uint64_t *start, const uint32_t *column,
                                     const float *value, size_t rows, size_t features,
                                     const float *label, const float *weight,
                                     struct sdr_data **data);
SDR_API void sdr_data_destroy(struct sdr_data *data);
/* true: current and later reading and predicting, in all threads, end with SDR_PREEMPTED; no
   partial files remain. false: allows them again. May be called from a signal handler. */
SDR_API void sdr_stop_reading(bool stop);
SDR_API size_t sdr_data_rows(const struct sdr_data *data);
SDR_API size_t sdr_data_features(const struct sdr_data *data);
SDR_API uint64_t sdr_data_nonzeros(const struct sdr_data *data);
/* One JSON object: format, rows, features, density, labels, columns ... Given away. */
SDR_API enum sdr_status sdr_data_inspect(const struct sdr_data *data, char **json);
/* How much rows conflict, as one JSON object. omega: entries of the longest row; delta: largest
   fraction of rows that touch one feature; rho: largest fraction of rows that share a feature with
   one row (delta and rho from a sample of rows); components of windows. Given away. */
SDR_API enum sdr_status sdr_data_sparsity(const struct sdr_data *data, char **json);
/* Writes data as a cache file (.sdc). */
SDR_API enum sdr_status sdr_data_convert(const struct sdr_options *options,
                                         const struct sdr_data *data, const char *path);
/* Generates a data file with known truth. kind: see sdr_list("generate"). Uses the options rows
   features nnz classes noise seed ...; the file's extension determines the format. */
SDR_API enum sdr_status sdr_generate(const struct sdr_options *options, const char *kind,
                                     const char *path);

/* Jobs of several processes (transport mpi). sdr_job_join, called before data is read, gives the
   number of this process, from 0, and the number of processes; 0 of 1 for other transports. All
   processes read, create a run and train; then only process 0 has a model and results.
   sdr_job_leave, called at the end with the process's own status, releases the others and returns
   the status to exit with: SDR_PEER_LOST if process 0 was lost before it finished. Then end the
   process with _exit: MPI threads may wait for a process that has died. */
SDR_API enum sdr_status sdr_job_join(const struct sdr_options *options, int *process,
                                     int *processes);
SDR_API enum sdr_status sdr_job_leave(enum sdr_status status);
/* Sets a function that is called on another thread if a lost process has ended the job and this
   process is so busy (reading data, for example) that no call has returned SDR_PEER_LOST after two
   seconds. It should end the process with _exit; temporary files are already removed. NULL: such a
   call returns when its work is done. */
SDR_API void sdr_job_watch(void (*end)(enum sdr_status status, const char *sentence));
/* Removes the temporary files of all open writers, before _exit. May be called from a signal
   handler. */
SDR_API void sdr_writers_remove(void);

/* ---- training ---- */
struct sdr_run;
/* Borrows both data sets until sdr_run_destroy; valid may be NULL. Copies the options. */
SDR_API enum sdr_status sdr_run_create(const struct sdr_options *options, struct sdr_data *train,
                                       struct sdr_data *valid, struct sdr_run **run);
SDR_API void sdr_run_destroy(struct sdr_run *run);
enum sdr_request {
    SDR_REQUEST_CHECKPOINT = 1, /* write a checkpoint and continue */
    SDR_REQUEST_STOP = 2        /* write a checkpoint if there is a run directory, then stop */
};
/* May be called from a signal handler or another thread while sdr_run_train runs. */
SDR_API void sdr_run_request(struct sdr_run *run, unsigned requests);
/* Trains; call it once. A failure need not cost the model: after SDR_DIVERGED there is the last
   good one; after SDR_RUNTIME it may be complete, and only files of the run directory missing (disk
   full). sdr_run_has_model tells. */
SDR_API enum sdr_status sdr_run_train(struct sdr_run *run);
/* One JSON object with the results and the chosen options. Given away. */
SDR_API enum sdr_status sdr_run_summary(const struct sdr_run *run, char **json);
/* Status of a run from its directory; for runs with servers also staleness and, per worker, compute
   and waiting times; "straggler" if one worker stands out. Given away. */
SDR_API enum sdr_status sdr_run_inspect(const char *folder, char **json);
/* The ledger of a run with servers as CSV, one line per gradient, the first with the names: worker,
   waited_for (the worker whose gradient ended its wait, or -1), read and applied (versions; applied
   is empty if the gradient was dropped), bytes, and seconds computing, travelling and waiting.
   `text` is borrowed for the call. */
typedef void sdr_text_function(void *context, const char *text);
SDR_API enum sdr_status sdr_run_ledger(const char *folder, sdr_text_function *print, void *context);
SDR_API bool sdr_run_has_model(const struct sdr_run *run);
/* The trained model; the caller destroys it. */
SDR_API enum sdr_status sdr_run_model(const struct sdr_run *run, struct sdr_model **model);

/* ---- models ---- */
SDR_API enum sdr_status sdr_model_load(const char *path, struct sdr_model **model);
/* Atomic: the file is either the complete model or unchanged. */
SDR_API enum sdr_status sdr_model_save(const struct sdr_model *model, const char *path);
SDR_API void sdr_model_destroy(struct sdr_model *model);
/* Scores per row: 1, or the number of classes of a softmax model. */
SDR_API size_t sdr_model_outputs(const struct sdr_model *model);
/* Number of classes, 0 for regression. */
SDR_API size_t sdr_model_classes(const struct sdr_model *model);
/* The text of a class label as in the training data; borrowed. */
SDR_API const char *sdr_model_label(const struct sdr_model *model, size_t class_number);
enum sdr_prediction {
    SDR_PREDICT_VALUE, /* class number, or the predicted value: 1 per row          */
    SDR_PREDICT_SCORE, /* raw scores: outputs per row                              */
    SDR_PREDICT_PROBA  /* probabilities: classes per row (SDR_USAGE without classes) */
};
/* out: rows × (1, outputs or classes), written by the call. */
SDR_API enum sdr_status sdr_model_predict(const struct sdr_model *model,
                                          const struct sdr_data *data, enum sdr_prediction what,
                                          float *out);
/* Recommendations of a factorisation model (mf): for every user in the data, in order of
   appearance, the `top` best items, best first, excluding the user's items in the data. All
   arguments are borrowed for the call. */
typedef void sdr_top_function(void *context, const char *user, size_t count,
                              const char *const *item, const float *score);
SDR_API enum sdr_status sdr_model_top(const struct sdr_model *model, const struct sdr_data *data,
                                      size_t top, sdr_top_function *function, void *context);
/* Loss and metrics on labelled data as one JSON object. Given away. */
SDR_API enum sdr_status sdr_model_evaluate(const struct sdr_model *model,
                                           const struct sdr_data *data, char **json);
/* Schema, blocks, options, largest weights by feature as one JSON object. Given away. */
SDR_API enum sdr_status sdr_model_inspect(const struct sdr_model *model, char **json);
/* Copies a block ("weight", "intercept") to `out`, which may be NULL; *count is its number of
   values. */
SDR_API enum sdr_status sdr_model_block(const struct sdr_model *model, const char *name, float *out,
                                        size_t *count);

#ifdef __cplusplus
}
#endif
#endif

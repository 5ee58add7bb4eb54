/* A run: everything that train.c and its helpers share. Front ends see it as an opaque handle. */
#ifndef SDR_RUN_H
#define SDR_RUN_H

#include "base/cpu.h"
#include "data/data.h"
#include "kind/aggregate.h"
#include "kind/codec.h"
#include "run/record.h"
#include "run/settings.h"
#include "server/network.h"
#include "team/node.h"
#include "team/role.h"
#include "team/rotation.h"
#include "team/window.h"
#include "update/parameters.h"
#include <stdatomic.h>

/* The classes of a problem in their order: numbers ascending, texts by byte order. */
struct sdr_classes {
    uint32_t count;
    char **text;  /* owned, as the labels stood in the data */
    float *value; /* owned; NULL for text labels */
};

/* Rows to go over: all of them, or a list. */
struct sdr_row_list {
    uint32_t *row; /* owned; NULL: 0 … count−1 */
    uint32_t count;
};
static inline uint32_t sdr_listed(const struct sdr_row_list *list, uint32_t i)
{
    return list->row ? list->row[i] : i;
}
/* features.c: `most` rows of a list, drawn at random (base/rng.h) and in its order, or all if it has no
   more. They depend on the list and the seed alone. The caller frees sample->row. */
enum sdr_status sdr_sample_rows(const struct sdr_row_list *list, uint32_t most, uint64_t seed,
                                struct sdr_row_list *sample);

/* Sums over rows that were evaluated. */
struct sdr_evaluation {
    double loss, weight;     /* weighted sum of losses, sum of weights */
    double penalty;          /* of penalties that belong to rows (mf), weighted as their losses */
    double correct, counted; /* classification: weights of the right ones, and of all */
    double majority;         /* classification: weight of the most frequent class */
    double target_sum, target_square, error_square; /* regression */
    uint64_t rows, unknown;                         /* unknown: labels never seen in training */
};

enum { SDR_PROGRESS = 3 }; /* of a worker with a shard: shares taken, steps, penalties due */
struct sdr_turns;
struct sdr_team;

/* The examples as they are trained on. */
struct sdr_training_set {
    struct sdr_classes classes;
    struct sdr_problem valid_problem;
    struct sdr_row_list train_rows, valid_rows;
    float *target, *valid_target, *row_weight, *scale, *center; /* owned or NULL */
    uint8_t *side;                                              /* of ratings; owned or NULL */
    double weight_sum;  /* of the training rows: sample weights times class weights */
    double typical_row; /* mean squared length of a row, in the units steps are taken in */
    double target_mean, target_size; /* regression: mean and standard deviation of the labels */
};

/* How large steps are, and how many. */
struct sdr_pace {
    double rate;            /* the step size in force */
    uint64_t epochs;        /* planned */
    double length;          /* of the step's schedule, in epochs */
    double per_row;         /* 1 / training rows */
    uint64_t average_from;  /* epochs before averaging starts; UINT64_MAX: never */
    uint64_t average_every; /* updates between two additions to the average */
    uint64_t update_rows;   /* rows of an update: --batch, of all workers where it is joint */
};

/* Workers that share memory: what they train on, and what the strategy asked for. */
struct sdr_shared {
    struct sdr_plan plan;            /* of the strategy */
    int nodes, replicas, loss_count; /* how many there are of node, replica and losses */
    uint32_t factors;                /* of pairs whose steps are fused; 0: a linear model */
    struct sdr_node *node;           /* owned: one per worker */
    struct sdr_parameters *replica;  /* owned: aliases of the parameters, or replicas */
    struct sdr_loss_sum *losses;     /* owned: since the last barrier, by workers or by pieces */
    struct sdr_gradient_space *leaf; /* owned: of an update that all workers compute, by leaves */
    int leaves;
    struct sdr_sum joint;      /* of these leaves */
    float *frequency;          /* owned, per feature: the share of the rows that touch it */
    struct sdr_span *span;     /* owned: the values that each worker steps on in a joint update */
    struct sdr_team *team;     /* owned: the threads, while they train */
    uint64_t team_version;     /* updates at the last barrier */
    float *damping;            /* owned, per value: see the kernel `merge`; NULL: no lanes */
    struct sdr_window *window; /* owned: windows of rows cut into components; NULL: none */
    struct sdr_rotation *rotation; /* owned: rows by cells; NULL: no rotation */
    double raced, lost;      /* steps of the intercept by racing workers, and those that got lost */
    void *round_memory;      /* the model's, between rounds on all rows */
    struct sdr_turns *turns; /* owned: gradients in flight; NULL: workers take no turns */
    double *shard_progress;  /* owned, with shards: SDR_PROGRESS numbers of each worker */
};

/* The order of events of racing workers, as it is recorded or followed. */
struct sdr_race {
    struct sdr_record *record; /* owned: where it goes; NULL: nowhere */
    struct sdr_replay *replay; /* owned: where it comes from; NULL: from what happens */
    double difference;         /* of the weights of a replay from those recorded, relative */
};

/* Where the run stands; saved in checkpoints. */
struct sdr_progress {
    uint64_t epoch; /* finished epochs */
    uint64_t at;    /* rows of this epoch that were handed out */
    uint64_t rows_done;
    struct sdr_loss_sum loss_sum; /* of this epoch */
    double last_epoch_loss;       /* mean loss of the epoch before, NaN at first */
    double best_valid;            /* with early stopping */
    uint64_t best_epoch;
    double seconds_before;  /* training seconds before a resume */
    uint64_t restarts;      /* so far: see --restarts */
    double least_objective; /* at the end of an epoch, with restarts; NaN: none yet */
    bool went_back;         /* in this epoch */
    uint64_t good_epoch;    /* whose weights are kept as good */
};

/* The order of the rows of an epoch. */
struct sdr_row_order {
    enum sdr_shuffle_choice shuffle; /* in force */
    uint32_t *order;     /* owned: the rows of this epoch in the order they are handed out */
    uint32_t *chunk;     /* owned: order of the chunks, shuffled by chunks */
    uint32_t *grouped;   /* owned: the order by shards, while it is made */
    uint32_t chunk_rows; /* rows of a chunk */
    uint64_t block_rows; /* rows of a block, shuffled by blocks */
    uint64_t streaming;  /* first row of the block in memory, where data streams */
    uint64_t block_end;  /* the place in the epoch where it ends */
};

/* Weights to come back to. */
struct sdr_kept {
    float *best, *good; /* owned: of the best epoch; of the last finite one */
    bool has_best, has_good;
};

/* Whether and why the run is over. */
struct sdr_end {
    bool over, diverged, preempted, resumed;
    bool ended_early;     /* the target was reached, or early stopping; resuming does not go on */
    const char *why_over; /* static text */
    const char *enough;   /* why the strategy wants no more than this epoch, static text; NULL */
    bool trained;         /* sdr_run_train was called */
    bool was_over; /* before it: its last checkpoint is there, and says what is in flight */
};

/* The run directory, and the clock. */
struct sdr_run_log {
    int64_t started, paused, tick; /* start of training; nanoseconds evaluating; next look */
    int64_t paused_then;           /* of `paused`, when updates were last accounted for */
    int64_t next_checkpoint_time, next_status;
    int lock;              /* of the run directory, 0: none */
    bool trouble;          /* the run directory cannot be written */
    struct sdr_text lines; /* owned: of metrics.jsonl, those that could not be written yet */
    char missing[512];     /* why something is missing in the run directory; "": nothing is */
    uint64_t next_checkpoint_update, checkpoint_updates;
    double checkpoint_seconds;
    double seconds_train, seconds_total_start;
    char *path, *fingerprint; /* owned: the options that define the path, and their hash */
    struct sdr_tensors resumed; /* a checkpoint whose values are still to be handed out to servers */
};

/* --evaluate-every. */
struct sdr_curve {
    bool on;
    uint64_t every; /* updates; 0: not by their number */
    uint64_t span;  /* updates over which a hundred points are spread, closer at first; 0: none */
    uint64_t next;  /* updates; 0: at the ends of epochs */
    struct sdr_row_list rows; /* points are evaluated on */
};

/* Of the final weights. */
struct sdr_result {
    struct sdr_evaluation train, valid;
    bool valid_known; /* `valid` is of weights that this run had */
    double objective;
    struct sdr_model *model; /* owned, once trained */
};

/* The plug-ins of a run, and their options. */
struct sdr_chosen {
    const struct sdr_model_kind *kind;
    const struct sdr_optimizer *optimizer;
    const struct sdr_schedule *schedule;
    const struct sdr_strategy *strategy;
    const struct sdr_transport *transport;
    const struct sdr_aggregate *aggregate;
    const struct sdr_codec *codec; /* NULL: values travel as they are */
    void *model_options, *optimizer_options, *schedule_options, *strategy_options,
        *transport_options, *aggregate_options, *codec_options; /* owned */
};

struct sdr_run {
    struct sdr_options options; /* own copy */
    struct sdr_data *data,
        *valid;       /* borrowed; valid may be NULL or the same as data (a share of it) */
    enum sdr_cpu cpu; /* level of its kernels */
    struct sdr_chosen use;
    struct sdr_problem problem;
    struct sdr_training_set set;
    struct sdr_pace pace;
    struct sdr_layout layout; /* of the values */
    struct sdr_parameters parameters;
    int process, processes; /* of the job: the first one has the results */
    int workers;
    struct sdr_shared shared;
    struct sdr_network *network; /* owned: nodes that exchange messages; NULL: memory is shared */
    struct sdr_race race;
    struct sdr_progress progress;
    struct sdr_row_order rows;
    struct sdr_kept kept;
    struct sdr_end end;
    struct sdr_run_log log;
    struct sdr_curve curve;
    struct sdr_result result;
    atomic_uint requests;
};

/* problem.c: which model, which rows, weights of rows. */
enum sdr_status sdr_problem_prepare(struct sdr_run *run);
/* Scores of an example. */
uint32_t sdr_outputs(const struct sdr_model_kind *kind, const void *options, uint32_t classes);
void sdr_problem_release(struct sdr_run *run);

/* features.c */
/* How many of some rows, drawn at random, touch each feature; the caller frees. */
enum sdr_status sdr_features_touched(const struct sdr_run *run, uint32_t **touched,
                                     uint32_t *looked_at);
/* Parts with the same work: features from cut[p] to cut[p + 1]. */
void sdr_features_cut(const uint32_t *touched, uint32_t features, uint32_t parts, uint32_t *cut);
/* Sizes and means of features, and the length of a typical row. */
enum sdr_status sdr_features_measure(struct sdr_run *run);
double sdr_longest_row(const struct sdr_run *run);
/* extremes.c: refuses a listed feature whose values are too large to compute with; notes where one value dwarfs
   the others. */
enum sdr_status sdr_extremes_check(const struct sdr_run *run, const uint32_t *feature,
                                   uint32_t count);
/* summary.c: the name a person knows a feature by: its column, its category, or its index in the file. */
void sdr_feature_name(const struct sdr_schema *schema, uint32_t feature, struct sdr_text *text);
/* Threads for what is not training: --threads, or all there are. */
int sdr_run_threads(const struct sdr_run *run);

/* labels.c */
/* Lists the labels of arrays a caller handed in; files come with their list. */
enum sdr_status sdr_labels_list(struct sdr_data *data);
enum sdr_status sdr_classes_find(const struct sdr_data *data, struct sdr_classes *classes);
int64_t sdr_class_of_text(const struct sdr_classes *classes, const char *text); /* −1: none */
/* Class of every row's label by the classes given, −1 where it is none of them. */
enum sdr_status sdr_targets(const struct sdr_data *data, const struct sdr_classes *classes,
                            const struct sdr_model_kind *kind, float **target);
enum sdr_status sdr_classes_copy(struct sdr_classes *to, const struct sdr_classes *from);
void sdr_classes_free(struct sdr_classes *classes);

/* evaluate.c: sums over rows with given weights; deterministic for any number of threads. */
enum sdr_status sdr_evaluate(const struct sdr_model_kind *kind, const struct sdr_problem *problem,
                             const struct sdr_block *block, const float *w,
                             const struct sdr_row_list *rows, int threads,
                             struct sdr_evaluation *result);
/* The same sums from values that live elsewhere: pull() gets the values that some rows read, into a subset made of
   these rows. */
struct sdr_subset;
struct sdr_pull {
    enum sdr_status (*pull)(void *context, const struct sdr_batch *rows, struct sdr_subset *subset);
    void *context;
    const struct sdr_layout *layout;
};
enum sdr_status sdr_evaluate_pulled(const struct sdr_model_kind *kind,
                                    const struct sdr_problem *problem, const struct sdr_pull *pull,
                                    const struct sdr_row_list *rows, int threads,
                                    struct sdr_evaluation *result);
double sdr_evaluation_loss(const struct sdr_evaluation *e);
/* Accuracy or R²; NaN for clusters, which have no truth to compare with. */
double sdr_evaluation_metric(const struct sdr_evaluation *e, enum sdr_truth task);
/* Adds loss, accuracy and its baseline, or rmse and r2 to a JSON object, with a prefix such as "valid_" on their
 * names. */
void sdr_evaluation_json(const struct sdr_evaluation *e, const struct sdr_model_kind *kind,
                         const char *prefix, json_t *object);

/* watch.c: the run directory: metrics, status, and what callers are told. */
enum sdr_status sdr_log_open(struct sdr_run *run); /* resumes, where that is asked for */
void sdr_log_release(struct sdr_run *run);
enum sdr_status sdr_log_epoch(struct sdr_run *run, double objective);
void sdr_log_point(struct sdr_run *run, double objective);
enum sdr_status sdr_log_tick(struct sdr_run *run);
/* Halves of a tick: a checkpoint is due; progress is reported if that is due. */
bool sdr_log_checkpoint_due(const struct sdr_run *run);
enum sdr_status sdr_log_progress(struct sdr_run *run);
/* A checkpoint now; one that cannot be written is told, and training goes on. */
void sdr_log_checkpoint(struct sdr_run *run);
/* What the run ends with. What cannot be written is in run->missing: the model is worth more than its folder. */
void sdr_log_last_checkpoint(struct sdr_run *run);
void sdr_log_model(struct sdr_run *run);
void sdr_log_close(struct sdr_run *run, const char *state);
double sdr_run_seconds(const struct sdr_run *run);

/* point.c: --evaluate-every. plan: from the options, or refuses; begin: where the next point is; point: it is
   evaluated and told. Nobody may be training meanwhile. */
enum sdr_status sdr_points_plan(struct sdr_run *run);
void sdr_points_begin(struct sdr_run *run);
bool sdr_point_due(const struct sdr_run *run, bool epoch_ended);
enum sdr_status sdr_point(struct sdr_run *run);

/* checkpoint.c */
enum sdr_status sdr_checkpoint_write(struct sdr_run *run);
bool sdr_checkpoint_any(const char *folder);
/* Removes what a killed run left half-written. The folder must be locked: nobody else is writing. */
void sdr_checkpoint_tidy(const char *folder);
/* Loads the newest readable checkpoint; SDR_RUNTIME if there is none. */
enum sdr_status sdr_checkpoint_resume(struct sdr_run *run);
/* The values of the checkpoint, if there is one, go to the servers that hold them. */
enum sdr_status sdr_checkpoint_hand_out(struct sdr_run *run);
/* fingerprint.c: the options and data that decide the path of the run, into run->path and its hash into
   run->fingerprint. */
enum sdr_status sdr_fingerprint(struct sdr_run *run);
/* Refuses a checkpoint of another path than the run's, and names the first difference; saved may be NULL. */
enum sdr_status sdr_other_path(const struct sdr_run *run, const char *path, const char *saved);
/* What all processes of a job must agree on. */
enum sdr_status sdr_job_text(const struct sdr_run *run, char **text);
/* The name of the first option that is not the same in two paths of runs; "" if none is. */
void sdr_path_difference(const char *a, const char *b, char name[32]);

/* run_record.c: begins the record that --record asks for, or compares the run with the one --replay names. */
enum sdr_status sdr_run_record_open(struct sdr_run *run);

/* node.c: `rows` more were trained on: what is due at this place? Ends epochs, reports, writes
   checkpoints, ends the run. Nobody may be training meanwhile. */
enum sdr_status sdr_account(struct sdr_run *run, uint64_t rows);
/* Looks up from the work: requests and the clock. */
enum sdr_status sdr_poll_requests(struct sdr_run *run);
/* Data that streams: the rows from a place in the order on are needed. */
void sdr_stream(struct sdr_run *run, uint64_t at);
/* The step of an update that begins `at` rows into the present epoch. */
double sdr_rate_at(const struct sdr_run *run, uint64_t at);
/* Training goes wrong: goes back to the last good weights if that is wanted, or ends the run. */
enum sdr_status sdr_diverge(struct sdr_run *run);
/* The steps of `count` updates, the i-th of which begins i rows behind `at`. */
void sdr_rates(const struct sdr_run *run, uint64_t at, uint32_t count, double *rate);

/* plan.c: asks the strategy how the work is to be shared, into run->plan; then makes the workers, and the
   copies and shared memory they need, for batches of so many rows. */
enum sdr_status sdr_plan_make(struct sdr_run *run);
enum sdr_status sdr_plan_carry_out(struct sdr_run *run);

/* job.c: which process of a job this is; before there is a run, and in one: bytes of the first process become
   everybody's, where there are several. */
int sdr_job_process(void);
enum sdr_status sdr_job_share(void *bytes, size_t count);
enum sdr_status sdr_share(const struct sdr_run *run, void *bytes, size_t count);
/* The job has ended, and this process has not noticed: calls what sdr_job_watch was given. */
void sdr_job_overdue(enum sdr_status status, const char *sentence);
/* A hash of the sources of the library, the compiler and its flags. */
extern const char sdr_build_id[];
/* Processes that mean different things must not train together: compares what sdr_job_text says. */
enum sdr_status sdr_job_meet(const struct sdr_run *run);

/* verdict.c: notes about a model that learnt nothing. */
void sdr_verdict(const struct sdr_run *run);

/* setup.c: the values of a span that training begins with, into the parameters and the good weights. */
enum sdr_status sdr_start_values(struct sdr_run *run, struct sdr_span span);

/* defaults.c: what the options leave open. Workers, and rows of an update; epochs and the length of the schedule;
   averaging; the step. setup.c says what each needs. */
enum sdr_status sdr_choose_workers(struct sdr_run *run);
void sdr_choose_length(struct sdr_run *run);
enum sdr_status sdr_choose_averaging(struct sdr_run *run);
void sdr_choose_rate(struct sdr_run *run);
/* Updates that an epoch makes, on average where they do not end with it. */
double sdr_updates_an_epoch(const struct sdr_run *run);
/* The step without --lr. */
double sdr_automatic_rate(const struct sdr_run *run);

/* run_plugins.c: the plug-ins that options name; then those that the model means by auto. */
enum sdr_status sdr_choose_plugins(struct sdr_run *run);
enum sdr_status sdr_choose_by_model(struct sdr_run *run);
/* Whether nodes exchange messages; where a strategy can do without, threads share memory. */
bool sdr_by_messages(const struct sdr_run *run);
/* Gradients of an update: K, or those of all workers where they compute one batch. */
enum sdr_status sdr_choose_quorum(const struct sdr_run *run, uint64_t workers, uint64_t *quorum);
/* Whether the strategy takes its steps itself, without --optimizer. */
bool sdr_own_steps(const struct sdr_run *run);
/* Batches that a worker takes steps with before it sends what they changed. */
uint64_t sdr_local_steps(const struct sdr_run *run);
/* Whether workers may have to go on from the values they have, and their own steps since. */
bool sdr_keeps_values(const struct sdr_run *run);
/* Whether workers take steps and send these, not gradients. */
bool sdr_sends_steps(const struct sdr_run *run);

/* team.c: runs the strategy's loop in as many threads as there are workers. */
enum { SDR_WORKERS_MOST = 1024 };
enum sdr_status sdr_team_work(struct sdr_run *run);
/* On a worker's turn: waits until every other worker has finished its gradient. */
enum sdr_status sdr_team_rest(struct sdr_run *run);
/* Rows dealt since workers last met. */
uint64_t sdr_team_dealt(const struct sdr_run *run);

/* train.c, for whoever runs the strategy's loops: before the first update; after the last one, while the weights
   are still where they were trained: the last checkpoint, the evaluation, the model. */
enum sdr_status sdr_run_begin(struct sdr_run *run);
enum sdr_status sdr_run_conclude(struct sdr_run *run);
/* train.c, for node.c: an epoch's rows were all dealt; evaluates and decides what follows. */
enum sdr_status sdr_epoch_end(struct sdr_run *run);
/* train.c, for point.c: whether the validation loss, or the objective, is good enough. */
void sdr_consider_target(struct sdr_run *run, double reached);

/* order.c: the order of the rows in the epoch that begins, into run->order. */
enum sdr_status sdr_order_allocate(struct sdr_run *run);
void sdr_shuffle_epoch(struct sdr_run *run);
/* The same of any epoch, windows, cells and shards aside. Not by two threads at a time. */
void sdr_epoch_order(const struct sdr_run *run, uint64_t epoch, uint32_t *order);
/* For each of `count` rows of the order from `from` on, one to fetch from memory meanwhile; false:
   there is none. */
bool sdr_order_ahead(const struct sdr_run *run, const uint32_t *from, uint32_t count,
                     uint32_t *ahead);
/* The place in the order where the rows of a worker's own shard begin. */
uint64_t sdr_shard_start(const struct sdr_run *run, int worker);
/* Shares that every shard is cut into in this epoch, and the rows of the first so many of them: whole batches. A
   share ends after every plan.share rows of the run, and where an epoch ends; whole: it is not cut there. */
uint64_t sdr_shard_shares(const struct sdr_run *run);
uint64_t sdr_shard_rows(const struct sdr_run *run, uint64_t length, uint64_t shares);
bool sdr_shard_whole(const struct sdr_run *run, uint64_t shares);

#endif

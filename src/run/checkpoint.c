/* Checkpoints: the whole state of a run between two updates. A resumed run gives the bits of an
   uninterrupted one. Files checkpoint-<updates>.safetensors in the run directory; the two newest
   are kept. */
#include "run/checkpoint.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/tensors.h"
#include "run/fingerprint.h"
#include "run/order.h"
#include "run/run_log.h"
#include "run/weights.h"
#include "server/network.h"
#include "server/placement.h"
#include "team/turns.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEPT = 2, NAME_BYTES = 64, COPY_ARRAYS = 4 };

/* ---- numbers, saved exactly ---- */
static void set_integer(json_t *object, const char *key, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    sdr_json_set(object, key, json_string(text));
}

static void set_double(json_t *object, const char *key, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    set_integer(object, key, bits);
}

static bool get_integer(const struct sdr_tensors *file, const char *key, uint64_t *value)
{
    const char *text = sdr_tensors_text(file, key);
    return text && sdr_parse_u64(text, value);
}

static bool get_double(const struct sdr_tensors *file, const char *key, double *value)
{
    uint64_t bits;
    if (!get_integer(file, key, &bits))
        return false;
    memcpy(value, &bits, sizeof bits);
    return true;
}

/* The saved numbers, one list for both directions. */
#define INTEGERS(X, run)                                                                           \
    X(epoch, run->progress.epoch)                                                                  \
    X(at, run->progress.at)                                                                        \
    X(rows_done, run->progress.rows_done)                                                          \
    X(best_epoch, run->progress.best_epoch)                                                        \
    X(version, run->parameters.version)                                                            \
    X(summed, run->parameters.average.summed)                                                      \
    X(restarts, run->progress.restarts)
#define DOUBLES(X, run)                                                                            \
    X(loss_sum, run->progress.loss_sum.loss)                                                       \
    X(weight_sum, run->progress.loss_sum.weight)                                                   \
    X(last_epoch_loss, run->progress.last_epoch_loss)                                              \
    X(best_valid, run->progress.best_valid)                                                        \
    X(penalty_due, run->parameters.penalty_due)                                                    \
    X(seconds, run->progress.seconds_before)                                                       \
    X(rate, run->pace.rate)                                                                        \
    X(least_objective, run->progress.least_objective)

static json_t *print_numbers(struct sdr_run *run)
{
    json_t *metadata = sdr_json_begin(json_object());
    double before = run->progress.seconds_before;
    sdr_json_set(metadata, "format", json_string("sounder-checkpoint"));
    sdr_json_set(metadata, "version_of_format", json_string("1"));
    sdr_json_set(metadata, "fingerprint", json_string(run->log.fingerprint));
    sdr_json_set(metadata, "path", json_string(run->log.path));
    sdr_json_set(metadata, "has_best", json_string(run->kept.has_best ? "yes" : "no"));
    sdr_json_set(metadata, "has_good", json_string(run->kept.has_good ? "yes" : "no"));
    sdr_json_set(metadata, "ended_early", json_string(run->end.ended_early ? "yes" : "no"));
    run->progress.seconds_before = sdr_run_seconds(run);
#define PUT(name, place) set_integer(metadata, #name, place);
    INTEGERS(PUT, run)
#undef PUT
#define PUT(name, place) set_double(metadata, #name, place);
    DOUBLES(PUT, run)
#undef PUT
    run->progress.seconds_before = before;
    return metadata;
}

static void add_array(struct sdr_tensor *tensor, int *count, const char *name, enum sdr_dtype dtype,
                      const void *data, uint64_t length)
{
    if (!data || !length)
        return;
    tensor[*count] = (struct sdr_tensor){.dtype = dtype, .shape = {length, 0}, .data = data};
    snprintf(tensor[(*count)++].name, sizeof tensor->name, "%s", name);
}

/* Replicas of workers, and their progress. */
static void add_copies(struct sdr_run *run, struct sdr_tensor *tensor, int *count)
{
    char name[48];
    for (int c = 0; c < run->shared.replicas; c++) {
        const struct sdr_parameters *p = &run->shared.replica[c];
        const float *array[COPY_ARRAYS] = {p->value, p->slot[0], p->slot[1], p->penalty_paid};
        for (int i = 0; i < COPY_ARRAYS; i++) {
            snprintf(name, sizeof name, "copy%d.%d", c, i);
            add_array(tensor, count, name, SDR_F32, array[i], p->layout->count);
        }
        snprintf(name, sizeof name, "copy%d.constant", c);
        add_array(tensor, count, name, SDR_F32, p->constant, SDR_CONSTANTS);
    }
    add_array(tensor, count, "progress", SDR_F64, run->shared.shard_progress,
              SDR_PROGRESS * (uint64_t)run->workers);
}

/* Arrays of the parameters that may live with servers in several processes. */
static const struct {
    const char *name;
    enum sdr_array array;
} shards[] = {{"value", SDR_ARRAY_VALUE},  {"slot0", SDR_ARRAY_SLOT0}, {"slot1", SDR_ARRAY_SLOT1},
              {"charged", SDR_ARRAY_PAID}, {"best", SDR_ARRAY_BEST},   {"good", SDR_ARRAY_GOOD}};
enum { SHARDS = sizeof shards / sizeof *shards };

static enum sdr_status read_shard(void *context, uint64_t first, uint64_t count, void *to)
{
    const struct sdr_shard_array *of = context;
    return sdr_shards_read(of->run, of->array, (struct sdr_span){first, first + count}, to);
}

/* Arrays of servers are read from them while the file is written. */
static void ask_servers(struct sdr_run *run, struct sdr_tensor *tensor, int count)
{
    for (int i = 0; i < count; i++)
        for (int s = 0; s < SHARDS; s++)
            if (strcmp(tensor[i].name, shards[s].name) == 0) {
                struct sdr_shard_array *of = &run->network->array[shards[s].array];
                *of = (struct sdr_shard_array){run, shards[s].array};
                tensor[i].read = read_shard;
                tensor[i].context = of;
            }
}

/* Lists the arrays of a run, to be written or filled: the data pointers are the run's own. */
static enum sdr_status list_arrays(struct sdr_run *run, struct sdr_tensor **list, int *count)
{
    struct sdr_tensor *tensor;
    enum { MOST = 10 + SDR_NODE_ARRAYS };
    *count = 0;
    SDR_TRY(sdr_allocate(&tensor, MOST + (COPY_ARRAYS + 1) * (size_t)run->shared.replicas,
                         sizeof *tensor, "a checkpoint"));
    *list = tensor;
    struct sdr_parameters *p = &run->parameters;
    sdr_cells_unpack(p);
    struct {
        const char *name;
        enum sdr_dtype dtype;
        const void *data;
        uint64_t count;
    } all[] = {{"value", SDR_F32, p->value, p->layout->count},
               {"slot0", SDR_F32, p->slot[0], p->layout->count},
               {"slot1", SDR_F32, p->slot[1], p->layout->count},
               {"charged", SDR_F32, p->penalty_paid, p->layout->count},
               {"constant", SDR_F32, p->constant, SDR_CONSTANTS},
               {"sum", SDR_F64, p->average.sum, p->layout->count},
               {"best", SDR_F32, run->kept.best, p->layout->count},
               {"good", SDR_F32, run->kept.good, p->layout->count},
               {"state", SDR_U8, run->shared.node[0].state, run->use.strategy->state_size}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        add_array(tensor, count, all[i].name, all[i].dtype, all[i].data, all[i].count);
    if (run->shared.plan.shards || run->network)
        add_copies(run, tensor, count);
    if (run->network && sdr_servers_apart(run->network))
        ask_servers(run, tensor, *count);
    return SDR_OK;
}

/* Copies the workers' progress to or from the numbers of a file. */
static void exchange_progress(struct sdr_run *run, bool save)
{
    for (int w = 0; w < run->workers && run->shared.shard_progress; w++) {
        struct sdr_node *node = &run->shared.node[w];
        double *number = run->shared.shard_progress + SDR_PROGRESS * w;
        if (save) {
            /* At the end of an epoch the next one has not begun. */
            number[0] = run->progress.at ? (double)node->taken : 0;
            number[1] = (double)node->steps;
            number[2] = run->shared.replica[w].penalty_due;
        } else {
            node->taken = (uint64_t)number[0];
            node->dealt = sdr_shard_rows(run, run->progress.epoch, w, node->taken);
            node->steps = (uint64_t)number[1];
            run->shared.replica[w].penalty_due = number[2];
        }
    }
}

/* ---- files ---- */
static bool is_checkpoint(const char *name)
{
    size_t length = strlen(name);
    return strncmp(name, "checkpoint-", 11) == 0 && length > 12 && length < NAME_BYTES &&
           strcmp(name + length - 12, ".safetensors") == 0;
}

static int newest_first(const void *a, const void *b)
{
    return strcmp(b, a);
}

/* Names of the checkpoints in a folder, newest first (their numbers have a fixed width). */
static int list_checkpoints(const char *folder, char (*name)[NAME_BYTES], int most)
{
    int count = 0;
    DIR *directory = opendir(folder);
    struct dirent *entry;
    while (directory && count < most && (entry = readdir(directory)))
        if (is_checkpoint(entry->d_name))
            snprintf(name[count++], NAME_BYTES, "%.63s", entry->d_name);
    if (directory)
        closedir(directory);
    qsort(name, (size_t)count, NAME_BYTES, newest_first);
    return count;
}

bool sdr_checkpoint_any(const char *folder)
{
    char name[1][NAME_BYTES];
    return list_checkpoints(folder, name, 1) > 0;
}

static void remove_file(const char *folder, const char *name)
{
    char *path;
    if (sdr_path_join(folder, name, &path) == SDR_OK) {
        unlink(path);
        sdr_release(path);
    }
}

void sdr_checkpoint_tidy(const char *folder)
{
    DIR *directory = opendir(folder);
    struct dirent *entry;
    while (directory && (entry = readdir(directory)))
        if (strstr(entry->d_name, ".tmp-"))
            remove_file(folder, entry->d_name);
    if (directory)
        closedir(directory);
}

static void remove_old(const char *folder)
{
    char name[64][NAME_BYTES];
    int count = list_checkpoints(folder, name, 64);
    for (int i = KEPT; i < count; i++)
        remove_file(folder, name[i]);
}

enum sdr_status sdr_checkpoint_write(struct sdr_run *run)
{
    struct sdr_tensor *tensor;
    const char *folder = run->options.settings.run;
    char name[NAME_BYTES], *path = NULL;
    int64_t before = sdr_clock_now();
    int count;
    if (run->network) { /* the ledger has all updates of the checkpoint */
        sdr_network_keep(run);
        SDR_TRY(sdr_network_save(run));
    }
    if (run->shared.turns)
        SDR_TRY(sdr_turns_save(run));
    SDR_TRY(list_arrays(run, &tensor, &count));
    exchange_progress(run, true);
    for (int i = 0; i < run->shared.node[0].arrays; i++) {
        const struct sdr_node_array *array = &run->shared.node[0].array[i];
        snprintf(name, sizeof name, "node.%s", array->name);
        add_array(tensor, &count, name, SDR_F64, array->value, array->count);
    }
    json_t *metadata = print_numbers(run);
    snprintf(name, sizeof name, "checkpoint-%020llu.safetensors",
             (unsigned long long)run->parameters.version);
    enum sdr_status status = sdr_path_join(folder, name, &path);
    if (status == SDR_OK && !sdr_json_whole())
        status = sdr_fail(SDR_RUNTIME, "out of memory: a checkpoint");
    if (status == SDR_OK)
        status = sdr_tensors_write(path, metadata, tensor, count);
    if (status == SDR_OK)
        remove_old(folder);
    json_decref(metadata);
    sdr_release(path);
    sdr_release(tensor);
    run->log.paused += sdr_clock_now() - before; /* not training time */
    return status;
}

static enum sdr_status bad(const char *path, const char *why)
{
    return sdr_fail(SDR_BAD_FILE, "%s: %s", path, why);
}

static enum sdr_status take_node_arrays(struct sdr_run *run, const struct sdr_tensors *file)
{
    for (int i = 0; i < file->count; i++) {
        const struct sdr_tensor *tensor = &file->tensor[i];
        double *value;
        if (strncmp(tensor->name, "node.", 5) != 0)
            continue;
        if (tensor->dtype != SDR_F64 || run->shared.node[0].arrays == SDR_NODE_ARRAYS ||
            strlen(tensor->name + 5) >= sizeof run->shared.node[0].array[0].name)
            return sdr_fail(SDR_BAD_FILE, "the checkpoint's arrays are not of this strategy");
        SDR_TRY(sdr_node_array(&run->shared.node[0], tensor->name + 5, tensor->shape[0], &value));
        memcpy(value, tensor->data, tensor->shape[0] * sizeof(double));
    }
    return SDR_OK;
}

/* Whether a file claims more progress than a shard has rows. */
static bool bad_progress(const struct sdr_run *run)
{
    for (int w = 0; w < run->workers && run->shared.shard_progress; w++) {
        double shares = (double)sdr_shard_shares(run, run->progress.epoch);
        const double *number = run->shared.shard_progress + SDR_PROGRESS * w;
        if (!(number[0] >= 0 && number[0] <= shares && number[1] >= 0 && number[1] < 0x1p53 &&
              isfinite(number[2])))
            return true;
    }
    return false;
}

static enum sdr_status take(struct sdr_run *run, const char *path, const struct sdr_tensors *file,
                            const struct sdr_tensor *tensor, int count)
{
    const char *format = sdr_tensors_text(file, "format");
    const char *fingerprint = sdr_tensors_text(file, "fingerprint");
    const char *best = sdr_tensors_text(file, "has_best"),
               *good = sdr_tensors_text(file, "has_good");
    const char *early = sdr_tensors_text(file, "ended_early");
    if (!format || strcmp(format, "sounder-checkpoint") != 0 || !fingerprint || !best || !good ||
        !early)
        return bad(path, "not a checkpoint");
    if (strcmp(fingerprint, run->log.fingerprint) != 0)
        return sdr_other_path(run, path, sdr_tensors_text(file, "path"));
    for (int i = 0; i < count; i++) {
        const struct sdr_tensor *found = sdr_tensors_find(file, tensor[i].name);
        if (!found && strcmp(tensor[i].name, "best") == 0)
            continue; /* early stopping is new in this run */
        if (!found || found->dtype != tensor[i].dtype || found->shape[0] != tensor[i].shape[0] ||
            found->shape[1])
            return bad(path, "an array is missing or of the wrong size");
    }
    bool complete = true;
#define GET(name, place) complete = get_integer(file, #name, &place) && complete;
    INTEGERS(GET, run)
#undef GET
#define GET(name, place) complete = get_double(file, #name, &place) && complete;
    DOUBLES(GET, run)
#undef GET
    if (!complete || run->progress.at >= run->set.train_rows.count ||
        (run->use.strategy->full_batch && run->progress.at) ||
        (run->parameters.average.summed && !run->parameters.average.sum))
        return bad(path, "a number is missing or out of range");
    static const uint64_t width[] = {4, 8, 1, 4};
    for (int i = 0; i < count; i++) {
        const struct sdr_tensor *found = sdr_tensors_find(file, tensor[i].name);
        if (found && !tensor[i].read) /* others are sent to their servers */
            memcpy((void *)(uintptr_t)tensor[i].data, found->data,
                   found->shape[0] * width[found->dtype]);
    }
    if (bad_progress(run))
        return bad(path, "a worker's progress is out of range");
    exchange_progress(run, false);
    run->kept.has_best = strcmp(best, "yes") == 0 && run->kept.best;
    run->kept.has_good = strcmp(good, "yes") == 0;
    run->end.ended_early = strcmp(early, "yes") == 0;
    run->end.over =
        run->end.ended_early || run->progress.epoch >= run->pace.epochs ||
        (run->options.settings.updates && run->parameters.version >= run->options.settings.updates);
    run->end.why_over = "it was already finished";
    return take_node_arrays(run, file);
}

enum sdr_status sdr_checkpoint_hand_out(struct sdr_run *run)
{
    struct sdr_tensors *file = &run->log.resumed;
    for (int s = 0; s < SHARDS; s++) {
        const struct sdr_tensor *found = sdr_tensors_find(file, shards[s].name);
        if (!found || (shards[s].array == SDR_ARRAY_BEST && !run->kept.best))
            continue;
        const float *value = found->data;
        for (uint64_t at = 0, end; at < found->shape[0]; at = end) {
            end = at + SDR_PIECE < found->shape[0] ? at + SDR_PIECE : found->shape[0];
            SDR_TRY(sdr_shards_write(run, shards[s].array, (struct sdr_span){at, end}, value + at));
        }
    }
    sdr_tensors_free(file);
    return SDR_OK;
}

enum sdr_status sdr_checkpoint_resume(struct sdr_run *run)
{
    bool apart = run->network && sdr_servers_apart(run->network);
    const char *folder = run->options.settings.run;
    char name[64][NAME_BYTES];
    int count = list_checkpoints(folder, name, 64);
    for (int i = 0; i < count; i++) {
        struct sdr_tensors file;
        char *path;
        SDR_TRY(sdr_path_join(folder, name[i], &path));
        enum sdr_status status =
            apart ? sdr_tensors_map(path, &file) : sdr_tensors_read(path, &file);
        if (status == SDR_BAD_FILE && i + 1 < count) {
            sdr_note(&run->options, "%s; trying the one before", sdr_error());
            sdr_release(path);
            continue;
        }
        if (status == SDR_OK) {
            struct sdr_tensor *tensor = NULL;
            int arrays;
            status = list_arrays(run, &tensor, &arrays);
            if (status == SDR_OK)
                status = take(run, path, &file, tensor, arrays);
            sdr_release(tensor);
            if (apart && status == SDR_OK)
                run->log.resumed = file;
            else
                sdr_tensors_free(&file);
        }
        sdr_release(path);
        if (status == SDR_OK) {
            run->end.resumed = true;
            sdr_note(&run->options, "resumed at update %llu, epoch %llu%s",
                     (unsigned long long)run->parameters.version,
                     (unsigned long long)run->progress.epoch,
                     run->end.over ? ": it was already finished" : "");
        }
        return status;
    }
    return sdr_fail(SDR_RUNTIME, "there is no checkpoint in '%s' to resume from", folder);
}

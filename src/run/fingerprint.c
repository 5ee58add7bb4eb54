/* The path of a run: what decides every bit of it, as a list name=value;… and as a hash, its
   fingerprint. A checkpoint is resumed, and a record replayed, by a run of the same path alone.

   In it: the options below, the data where a file is to be compared with it, the number of workers
   where the result depends on it, --updates where rounds are cut at the end of the run, its length
   where the step is scheduled towards the end, nodes and their times where messages race. Not in
   it, so that it may change between a checkpoint and --resume: --epochs and --updates otherwise,
   --valid, stopping rules, folders, threads, --memory, the CPU level. */
#include "run/fingerprint.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void hash_texts(struct sdr_hasher *hasher, const struct sdr_dictionary *texts)
{
    for (uint32_t i = 0; i < texts->count; i++)
        sdr_hasher_add(hasher, texts->text[i], texts->length[i] + (size_t)1);
}

/* Hashes all data, with the meaning of labels and categories. */
static enum sdr_status hash_data(const struct sdr_data *data, char text[33])
{
    const struct sdr_rows *rows = &data->rows;
    struct sdr_hasher *hasher = sdr_hasher_create();
    if (!hasher)
        return sdr_fail(SDR_RUNTIME, "out of memory: a hash");
    hash_texts(hasher, &data->schema.labels);
    hash_texts(hasher, &data->schema.category);
    for (uint64_t row = 0; row < rows->count; row++) {
        if (rows->dense) {
            sdr_hasher_add(hasher, sdr_dense_row(rows, row), rows->features * sizeof(float));
        } else {
            struct sdr_sparse_row r = sdr_sparse_row(rows, row);
            sdr_hasher_add(hasher, r.index16 ? (const void *)r.index16 : (const void *)r.index32,
                           r.n * (r.index16 ? sizeof(uint16_t) : sizeof(uint32_t)));
            sdr_hasher_add(hasher, r.x, r.n * sizeof(float));
        }
        if (row % 8192 == 8191)
            sdr_rows_release(rows, row - 8191, row + 1);
    }
    if (rows->label)
        sdr_hasher_add(hasher, rows->label, rows->count * sizeof(float));
    if (rows->weight)
        sdr_hasher_add(hasher, rows->weight, rows->count * sizeof(float));
    sdr_hasher_text(hasher, text);
    sdr_hasher_destroy(hasher);
    return SDR_OK;
}

/* Escapes semicolons, which separate a list name=value;…, and characters that JSON strings
   cannot hold. */
static void print_escaped(const char *value, size_t length, struct sdr_text *text)
{
    bool utf8 = sdr_is_utf8(value, length);
    for (size_t i = 0; i < length; i++)
        if (value[i] == ';' || value[i] == '%' || (value[i] & 0x80 && !utf8))
            sdr_text_add(text, "%%%02X", (unsigned char)value[i]);
        else
            sdr_text_bytes(text, &value[i], 1);
}

static void print_option(const struct sdr_run *run, const char *name, struct sdr_text *text)
{
    struct sdr_text value = {0};
    sdr_option_print(sdr_option_find(sdr_settings_table, name), &run->options.settings, &value);
    sdr_text_add(text, "%s=", name);
    print_escaped(value.bytes ? value.bytes : "", value.length, text);
    sdr_text_add(text, ";");
    text->failed |= value.failed;
    sdr_text_free(&value);
}

/* Options whose change is another path. */
static const char *const names[] = {
    "model",         "intercept",   "class-weight", "l1",        "l2",   "group-lasso",
    "penalty-on",    "standardize", "scale",        "optimizer", "lr",   "schedule",
    "average",       "batch",       "shuffle",      "sync",      "seed", "valid-fraction",
    "deterministic", "lr-batch"};

/* A file that only process 0 reads: its name and size. Folders may differ between machines. */
static void print_file_name(const char *name, const char *path, struct sdr_text *text)
{
    const char *base = path ? sdr_path_base(path) : "";
    struct sdr_file_facts facts = {0};
    if (path && (sdr_file_facts(path, &facts) != SDR_OK || !facts.regular))
        facts.bytes = 0;
    sdr_text_add(text, "%s=", name);
    print_escaped(base, strlen(base), text);
    sdr_text_add(text, ":%llu;", (unsigned long long)facts.bytes);
}

enum sdr_status sdr_job_text(const struct sdr_run *run, char **text)
{
    static const char *const nodes[] = {
        "epochs",  "updates", "workers", "servers", "dedicated-servers", "transport",
        "compute", "delay",   "slow",    "codec",   "aggregate"};
    const struct sdr_settings *settings = &run->options.settings;
    struct sdr_text out = {0};
    char sections[97];
    SDR_TRY(sdr_data_sections(run->data, sections));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        print_option(run, names[i], &out);
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        print_option(run, nodes[i], &out);
    print_file_name("valid", settings->valid, &out);
    print_file_name("valid-labels", settings->valid_labels, &out);
    sdr_text_add(&out, "data=%s%s", run->data->source_key, sections);
    return sdr_text_take(&out, text);
}

/* The options that determine every bit of the path, not its length. Given away. */
static enum sdr_status print_path(const struct sdr_run *run, char **path)
{
    /* Raised whenever the same options give another path: row order, arithmetic. */
    enum { PATH = 14 };
    const struct sdr_settings *s = &run->options.settings;
    struct sdr_text text = {0};
    sdr_text_add(&text, "path=%d;", PATH);
    /* Peers that share a batch may be as many as they like. */
    bool shared = run->use.strategy->peer && run->use.strategy->joint;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!shared || strcmp(names[i], "batch") != 0)
            print_option(run, names[i], &text);
    if (shared)
        sdr_text_add(&text, "batch-times-workers=%llu;", (unsigned long long)run->pace.update_rows);
    bool joint = run->use.strategy->joint && !s->deterministic && !run->network;
    if (run->shared.plan.shards || run->shared.plan.turns || joint)
        sdr_text_add(&text, "workers=%d;", run->workers);
    if (run->shared.plan.windows || run->shared.plan.rotates ||
        run->shared.plan.known.deterministic) /* rounds are cut at the end of the run */
        print_option(run, "updates", &text);
    if (run->use.schedule->needs_end && !run->use.strategy->full_batch)
        sdr_text_add(&text, "length=%.17g;", run->pace.length);
    if (run->network && !shared && (!s->deterministic || run->processes > 1))
        sdr_text_add(&text,
                     "workers=%d;servers=%d;transport=%s;compute=%s;delay=%s;slow=%s;codec=%s;"
                     "aggregate=%s;",
                     run->workers, run->network->servers, run->use.transport->name,
                     s->compute ? s->compute : "", s->delay ? s->delay : "", s->slow ? s->slow : "",
                     s->codec, s->aggregate);
    return sdr_text_take(&text, path);
}

/* Hashing all rows takes time: the data is part of the path only if a file will be compared with
   it. */
static enum sdr_status add_data(const struct sdr_run *run, char **path)
{
    const struct sdr_settings *s = &run->options.settings;
    struct sdr_text text = {0};
    char hash[33];
    if (!s->run && !s->record && !s->replay)
        return SDR_OK;
    SDR_TRY(hash_data(run->data, hash));
    sdr_text_add(&text, "%sdata=%s", *path, hash);
    sdr_release(*path);
    return sdr_text_take(&text, path); /* NULL if out of memory */
}

enum sdr_status sdr_fingerprint(struct sdr_run *run)
{
    char hash[33], *path;
    SDR_TRY(print_path(run, &path));
    enum sdr_status status = add_data(run, &path);
    sdr_release(run->log.path);
    run->log.path = path;
    SDR_TRY(status);
    sdr_hash_text(path, strlen(path), hash);
    return sdr_copy_string(&run->log.fingerprint, hash);
}

bool sdr_path_option(const char *path, const char *name, char value[64])
{
    size_t length = strlen(name);
    for (; path; path = strchr(path, ';'), path += path != NULL)
        if (strncmp(path, name, length) == 0 && path[length] == '=') {
            const char *start = path + length + 1;
            size_t bytes = strcspn(start, ";");
            snprintf(value, 64, "%.*s", (int)(bytes < 63 ? bytes : 63), start);
            return true;
        }
    return false;
}

void sdr_path_difference(const char *a, const char *b, char name[32])
{
    const char *start = a;
    for (; *a && *a == *b; a++, b++)
        if (*a == ';')
            start = a + 1;
    size_t length = strcspn(start, "=;");
    snprintf(name, 32, "%.*s", length < 31 ? (int)length : 31, start);
}

enum sdr_status sdr_other_path(const struct sdr_run *run, const char *path, const char *saved)
{
    char name[32] = "", planned[64], mine[64], other[64];
    sdr_path_difference(run->log.path, saved ? saved : "", name);
    if (sdr_path_option(run->log.path, "data", mine) && sdr_path_option(saved, "data", other) &&
        strcmp(mine, other) != 0) /* by which other things may have been chosen */
        snprintf(name, sizeof name, "data");
    if (strcmp(name, "length") == 0 && sdr_path_option(saved, name, planned))
        return sdr_fail(SDR_USAGE,
                        "%s: the run was planned for %.10g epochs (by --epochs or --updates), and "
                        "its steps shrink towards that end: --resume needs the same, not %.10g",
                        path, strtod(planned, NULL), run->pace.length);
    return sdr_fail(SDR_USAGE,
                    "%s: the checkpoint is of other data or options%s%s: --resume needs the same "
                    "ones (see the file 'config' beside it)",
                    path, *name ? ", the first that differs is " : "",
                    strcmp(name, "path") == 0 ? "the version of the program" : name);
}

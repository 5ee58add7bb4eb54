/* Reading, from paths to a data set: expand paths, determine the format, map a cache file if there
   is one; else parse and build, and write the cache file. */
#include "data/read.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/stop.h"
#include "base/tensors.h"
#include "data/cache.h"

#include <stdio.h>
#include <string.h>

/* One call of sdr_data_read. */
struct reader {
    const struct sdr_data_options *options;
    const struct sdr_schema *known;
    struct sdr_paths paths;
    struct sdr_source *source; /* of the first path */
    const char *head;          /* its first bytes, borrowed from it */
    size_t head_count;
    bool head_cut; /* the file continues behind the head */
    bool header;   /* the first line is not a row */
    bool labels_are_classes;
    const struct sdr_format *format;
    char key[33];
    char *cache_path; /* the cache file's path, or NULL */
    size_t chunk;
    int64_t started;
};

void sdr_read_note(const struct sdr_data_options *options, const char *format, ...)
{
    char sentence[1200];
    struct sdr_report report = {.kind = SDR_REPORT_NOTE, .note = sentence};
    va_list arguments;
    if (!options->report)
        return;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    options->report(options->report_context, &report);
}

void sdr_read_progress(const struct sdr_read_job *job, uint64_t done)
{
    const struct sdr_data_options *options = job->reading->options;
    double seconds = sdr_clock_since(job->started);
    struct sdr_report report = {
        .kind = SDR_REPORT_READ, .done = done, .total = job->total, .seconds = seconds, .eta = -1};
    if (!options->report)
        return;
    report.rate = seconds > 0 ? (double)done / seconds : 0;
    if (job->total > done && report.rate > 0)
        report.eta = (double)(job->total - done) / report.rate;
    options->report(options->report_context, &report);
}

/* ---- format ---- */

static enum sdr_status open_first(struct reader *r)
{
    SDR_TRY(sdr_source_open(r->paths.path[0], &r->source));
    sdr_source_limit(r->source, r->options->memory);
    SDR_TRY(sdr_source_peek(r->source, &r->head, &r->head_count));
    r->head_cut = r->head_count >= SDR_HEAD_BYTES;
    return SDR_OK;
}

/* Extends the head to some whole records, for formats that guess from them: names and types of
   columns cannot be guessed from half a line. The head stays in memory while rows are read, so it
   may take at most a quarter of --memory. */
static enum sdr_status see_records(struct reader *r, const void *options)
{
    /* One row below a header is necessary; more make the guess reliable. */
    enum { RECORDS = 16, NEEDED = 2, SAFE_MOST = 64 << 20 };
    const uint64_t record_most = (uint64_t)1 << 30;
    uint64_t most = r->options->memory ? r->options->memory / 4 : record_most;
    uint32_t records = RECORDS;
    while (r->format->records && r->head_cut &&
           (records = r->format->records(options, r->head, r->head_count)) < RECORDS &&
           r->head_count < (records < NEEDED || most < SAFE_MOST ? most : SAFE_MOST)) {
        uint64_t wanted = 2 * (uint64_t)r->head_count < most ? 2 * r->head_count : most;
        SDR_TRY(sdr_source_peek_more(r->source, (size_t)wanted, &r->head, &r->head_count));
        r->head_cut = r->head_count >= wanted;
    }
    if (records || !r->head_cut)
        return SDR_OK;
    if (r->options->memory)
        return sdr_fail(SDR_BAD_DATA,
                        "%s:1: the first line exceeds a quarter of --memory (%.1f MB); raise "
                        "--memory, or look for an unclosed quote",
                        sdr_source_name(r->source), (double)r->options->memory / 1e6);
    return sdr_fail(SDR_BAD_DATA, "%s:1: the first line is longer than 1 GB",
                    sdr_source_name(r->source));
}

static bool is_cache_file(const struct reader *r)
{
    return r->head_count >= sizeof SDR_CACHE_MAGIC - 1 &&
           memcmp(r->head, SDR_CACHE_MAGIC, sizeof SDR_CACHE_MAGIC - 1) == 0;
}

static enum sdr_status map_given(struct reader *r, struct sdr_data **data)
{
    const char *path = r->paths.path[0];
    if (strcmp(path, "-") == 0)
        return sdr_fail(SDR_USAGE, "a cache file cannot be read from standard input");
    if (r->paths.count > 1)
        return sdr_fail(SDR_USAGE, "%s: a cache file must be given alone", path);
    if (!r->known)
        SDR_TRY(sdr_format_check_options(r->options, NULL));
    SDR_TRY(sdr_cache_map_within(path, NULL, r->options->memory, r->options->on_demand, data));
    return r->known ? sdr_data_recast(r->options, r->known, data) : SDR_OK;
}

/* Old Macintosh line ends would make the whole file one line. */
static bool has_bare_returns(const char *head, size_t count)
{
    const char *found = memchr(head, '\r', count);
    return found && found + 1 < head + count && !memchr(head, '\n', count) &&
           !memchr(head, 0, count);
}

static enum sdr_status choose_format(struct reader *r)
{
    bool guessed;
    const char *name = sdr_source_name(r->source);
    if (r->head_count == 0 && r->paths.count == 1)
        return sdr_fail(SDR_BAD_DATA, "%s:1:1: no rows", name);
    if (has_bare_returns(r->head, r->head_count))
        return sdr_fail(SDR_BAD_DATA, "%s:1: lines end with CR; convert them to LF", name);
    SDR_TRY(sdr_format_choose(r->options, r->known, r->paths.path[0], name, r->head, r->head_count,
                              &r->format, &guessed));
    if (guessed)
        sdr_read_note(r->options, "%s: reading as %s", name, r->format->name);
    /* Format options apply to training data; other data is read with its schema. */
    return r->known ? sdr_format_check_known(r->format->name, r->known, name)
                    : sdr_format_check_options(r->options, r->format);
}

/* ---- the cache ---- */

/* A pipe cannot be identified, nor read twice for its key. */
static bool is_pipe(const char *path)
{
    struct sdr_file_facts facts;
    return strcmp(path, "-") == 0 || (sdr_file_facts(path, &facts) == SDR_OK && !facts.regular);
}

static enum sdr_status find_cache(struct reader *r)
{
    struct sdr_text path = {0};
    char name[33];
    if (!r->options->cache)
        return SDR_OK;
    if (r->options->labels && is_pipe(r->options->labels))
        return SDR_OK;
    for (size_t i = 0; i < r->paths.count; i++)
        if (is_pipe(r->paths.path[i]))
            return SDR_OK;
    SDR_TRY(sdr_folder_make(r->options->cache));
    SDR_TRY(sdr_read_key(r->options, r->known, r->format, &r->paths, name, r->key));
    sdr_text_add(&path, "%s/%s-%s.sdc", r->options->cache, sdr_path_base(r->paths.path[0]), name);
    return sdr_text_take(&path, &r->cache_path);
}

/* *data stays NULL if there is no usable cache file. */
static enum sdr_status use_cache(struct reader *r, struct sdr_data **data)
{
    if (!r->cache_path || !sdr_file_exists(r->cache_path))
        return SDR_OK;
    enum sdr_status status = sdr_cache_map_within(r->cache_path, r->key, r->options->memory,
                                                  r->options->on_demand, data);
    if (status == SDR_BAD_FILE) {
        sdr_read_note(r->options, "%s; it is made anew", sdr_error());
        return SDR_OK;
    }
    SDR_TRY(status);
    sdr_release((*data)->name);
    (*data)->name = NULL;
    SDR_TRY(sdr_copy_string(&(*data)->name, r->paths.path[0]));
    SDR_TRY(sdr_copy_string(&(*data)->cache_path, r->cache_path));
    sdr_read_note(r->options, "using cache %s", r->cache_path);
    return SDR_OK;
}

/* A failure is only noted: without the file the next run is slower. */
static void write_cache(const struct reader *r, const struct sdr_data *data)
{
    if (r->cache_path && !data->map && data->rows.count &&
        sdr_cache_write_keyed(data, r->key, r->cache_path) != SDR_OK)
        sdr_read_note(r->options, "no cache file: %s", sdr_error());
}

/* ---- reading ---- */

static uint64_t total_bytes(const struct reader *r)
{
    uint64_t total = 0;
    for (size_t i = 0; i < r->paths.count; i++) {
        struct sdr_file_facts facts;
        if (strcmp(r->paths.path[i], "-") == 0 ||
            sdr_file_facts(r->paths.path[i], &facts) != SDR_OK || !facts.regular)
            return 0;
        total += facts.bytes;
    }
    return total;
}

/* For whole-file formats. */
static enum sdr_status read_whole(struct sdr_read_job *job)
{
    uint64_t done = 0;
    for (size_t i = 0; i < job->paths->count; i++) {
        if (!job->source)
            SDR_TRY(sdr_source_open(job->paths->path[i], &job->source));
        sdr_source_limit(job->source, job->reading->options->memory);
        job->reading->path = sdr_source_name(job->source);
        SDR_TRY(job->format->whole(job->state, job->reading, job->source));
        done += sdr_source_taken(job->source);
        sdr_source_close(job->source);
        job->source = NULL;
        sdr_read_progress(job, done);
    }
    return SDR_OK;
}

static enum sdr_status run(struct reader *r, struct sdr_reading *reading, void *state,
                           struct sdr_data *data)
{
    struct sdr_schema *schema = &data->schema;
    struct sdr_read_job job = {.format = r->format,
                               .state = state,
                               .reading = reading,
                               .paths = &r->paths,
                               .chunk = r->chunk,
                               .total = total_bytes(r),
                               .started = r->started};
    enum sdr_status status;
    if (r->format->open)
        SDR_TRY(r->format->open(state, reading, r->head, r->head_count));
    if (!schema->format)
        SDR_TRY(sdr_copy_string(&schema->format, r->format->name));
    SDR_TRY(sdr_builder_create(r->options, r->known, schema,
                               r->format->by_density ? SDR_LAYOUT_BY_DENSITY : SDR_LAYOUT_SPARSE,
                               &reading->builder));
    sdr_builder_keep(reading->builder, r->cache_path, r->key);
    job.source = r->source;
    r->source = NULL;
    status = r->format->parse ? sdr_pipeline_run(&job) : read_whole(&job);
    sdr_source_close(job.source);
    if (status != SDR_OK) {
        sdr_builder_destroy(reading->builder);
        return status;
    }
    return sdr_builder_finish(reading->builder, data);
}

/* Sets up the format's options and state around run(). */
static enum sdr_status parse_files(struct reader *r, struct sdr_data *data)
{
    const struct sdr_format *format = r->format;
    const char *rest = r->options->format_rest ? r->options->format_rest : "";
    void *options = NULL, *state = NULL;
    bool opened = false;
    enum sdr_status status;
    SDR_CHECK(sdr_allocate(&options, 1, format->options_size, "the options of a format"));
    SDR_CHECK(sdr_allocate(&state, 1, format->state_size, "reading"));
    if (format->options)
        SDR_CHECK(sdr_option_defaults(format->options, options));
    if (format->options || *rest)
        SDR_CHECK(sdr_spec_options(format->options, format->name, rest, options));
    SDR_CHECK(see_records(r, options));
    struct sdr_reading reading = {.options = r->options,
                                  .known = r->known,
                                  .schema = &data->schema,
                                  .format_options = options,
                                  .path = sdr_source_name(r->source),
                                  .head_cut = r->head_cut};
    opened = true;
    status = run(r, &reading, state, data);
    r->header = reading.header;
    r->labels_are_classes = reading.labels_are_classes;
cleanup:
    if (opened && format->close)
        format->close(state);
    if (format->options && options)
        sdr_option_free(format->options, options);
    sdr_release(options);
    sdr_release(state);
    return status;
}

/* Refuses a table with a header but no rows. */
static enum sdr_status no_rows(const struct reader *r, const struct sdr_data *data)
{
    if (!r->header)
        return sdr_fail(SDR_BAD_DATA, "%s:1:1: no rows", data->name);
    return r->options->labels_optional
               ? SDR_OK
               : sdr_fail(SDR_BAD_DATA, "%s: no rows below the header", data->name);
}

static enum sdr_status read_files(struct reader *r, struct sdr_data **data)
{
    enum sdr_status status;
    SDR_TRY(sdr_allocate(data, 1, sizeof **data, "the data"));
    SDR_CHECK(sdr_copy_string(&(*data)->name, sdr_source_name(r->source)));
    SDR_CHECK(parse_files(r, *data));
    if ((*data)->rows.count == 0)
        SDR_CHECK(no_rows(r, *data));
    if (!r->known)
        SDR_CHECK(sdr_columns_note(r->options, r->labels_are_classes, *data));
    SDR_CHECK(sdr_data_sign(*data));
    write_cache(r, *data);
cleanup:
    if (status != SDR_OK) {
        sdr_data_destroy(*data);
        *data = NULL;
    }
    return status;
}

/* Refuses a model file among the data before its bytes are parsed as rows. */
static enum sdr_status refuse_models(const struct sdr_paths *paths)
{
    char head[9];
    size_t count;
    for (size_t i = 0; i < paths->count; i++) {
        SDR_TRY(sdr_file_head(paths->path[i], head, sizeof head, &count));
        if (sdr_tensors_begin(head, count))
            return sdr_fail(SDR_BAD_DATA, "%s is a model file or a checkpoint, not data",
                            paths->path[i]);
    }
    return SDR_OK;
}

static enum sdr_status read_paths(struct reader *r, const char *const *paths, size_t count,
                                  struct sdr_data **data)
{
    SDR_TRY(sdr_paths_expand(paths, count, &r->paths));
    for (size_t i = 0; i < r->paths.count && r->options->labels; i++)
        if (strcmp(r->paths.path[i], "-") == 0 && strcmp(r->options->labels, "-") == 0)
            return sdr_fail(SDR_USAGE, "standard input cannot be both data and --labels");
    SDR_TRY(refuse_models(&r->paths));
    SDR_TRY(open_first(r));
    if (is_cache_file(r))
        return map_given(r, data);
    SDR_TRY(choose_format(r));
    SDR_TRY(find_cache(r));
    SDR_TRY(use_cache(r, data));
    return *data ? SDR_OK : read_files(r, data);
}

enum sdr_status sdr_data_read_chunked(const struct sdr_data_options *options,
                                      const char *const *paths, size_t count,
                                      const struct sdr_schema *known, size_t chunk,
                                      struct sdr_data **data)
{
    struct reader r = {
        .options = options, .known = known, .chunk = chunk, .started = sdr_clock_now()};
    *data = NULL;
    enum sdr_status status = read_paths(&r, paths, count, data);
    if (status == SDR_OK)
        status = sdr_check_stop("reading");
    sdr_source_close(r.source);
    sdr_paths_free(&r.paths);
    sdr_release(r.cache_path);
    if (status != SDR_OK) {
        sdr_data_destroy(*data);
        *data = NULL;
        return status;
    }
    (*data)->seconds = sdr_clock_since(r.started);
    return SDR_OK;
}

enum sdr_status sdr_data_read(const struct sdr_data_options *options, const char *const *paths,
                              size_t count, const struct sdr_schema *known, struct sdr_data **data)
{
    return sdr_data_read_chunked(options, paths, count, known, SDR_CHUNK_BYTES, data);
}

/* Public functions on data: thin wrappers over the data layer. */
#include "base/memory.h"
#include "run/job.h"
#include "run/registry.h"
#include "run/run.h"
#include "trained/model.h"

#include <string.h>

void sdr_rows_release(const struct sdr_rows *rows, uint64_t first, uint64_t end)
{
    if (rows->streams)
        sdr_data_done_with(rows->streams, first, end);
}

static enum sdr_status read_data(const struct sdr_data_options *options, const char *const *paths,
                                 size_t count, const struct sdr_schema *known,
                                 struct sdr_data **data)
{
    SDR_TRY(sdr_data_read(options, paths, count, known, data));
    (*data)->rows.streams = (*data)->streams ? *data : NULL;
    return SDR_OK;
}

static void note_unseen(const struct sdr_options *options, const struct sdr_data *data)
{
    if (data->unseen)
        sdr_note(options, "%s: %llu values of features that training did not see were ignored",
                 data->name, (unsigned long long)data->unseen);
}

/* The model named by --model, before data is read; NULL: auto. */
static const struct sdr_model_kind *model_named(const struct sdr_options *options)
{
    const char *model = options->settings.model;
    size_t length = strcspn(model, ":");
    for (const struct sdr_model_kind *const *kind = sdr_model_kind_table; *kind; kind++)
        if (strlen((*kind)->name) == length && memcmp((*kind)->name, model, length) == 0)
            return *kind;
    return NULL;
}

enum sdr_status sdr_data_open(const struct sdr_options *options, const char *const *paths,
                              size_t count, const struct sdr_model *model, struct sdr_data **data)
{
    struct sdr_data_options o;
    char *format;
    *data = NULL;
    SDR_TRY(sdr_options_check(options)); /* before hours of reading, not after */
    SDR_TRY(sdr_settings_data(options, &o, &format));
    const struct sdr_model_kind *kind = model_named(options);
    o.labels_optional = model != NULL;
    o.labels_named = !model && kind && !(kind->needs & SDR_NEEDS_LABELS);
    o.model = o.labels_named ? kind->name : NULL;
    o.by_content =
        !model &&
        (!kind || kind->needs & SDR_NEEDS_SIDES); /* a table of ratings is one to linear models */
    o.on_demand = sdr_job_process() > 0;
    /* The other processes wait until the first one has read: it writes the cache file, if there
       is one. */
    char word = 0;
    bool waits = o.cache && sdr_job_process() > 0;
    enum sdr_status status = waits ? sdr_job_share(&word, 1) : SDR_OK;
    if (status == SDR_OK)
        status = read_data(&o, paths, count, model ? &model->schema : NULL, data);
    if (status == SDR_OK && !waits)
        status = sdr_job_share(&word, 1);
    if (status == SDR_OK)
        note_unseen(options, *data);
    sdr_release(format);
    return status;
}

enum sdr_status sdr_data_open_valid(const struct sdr_options *options, const struct sdr_data *train,
                                    struct sdr_data **data)
{
    const struct sdr_settings *s = &options->settings;
    struct sdr_data_options o;
    char *format;
    *data = NULL;
    if (!s->valid || sdr_job_process() > 0) /* the first process evaluates */
        return SDR_OK;
    SDR_TRY(sdr_settings_data(options, &o, &format));
    o.labels = s->valid_labels;
    const char *path = s->valid;
    enum sdr_status status = read_data(&o, &path, 1, &train->schema, data);
    if (status == SDR_OK)
        note_unseen(options, *data);
    sdr_release(format);
    return status;
}

enum sdr_status sdr_data_convert(const struct sdr_options *options, const struct sdr_data *data,
                                 const char *path)
{
    (void)options;
    return sdr_cache_write(data, path);
}

enum sdr_status sdr_generate(const struct sdr_options *options, const char *kind, const char *path)
{
    const struct sdr_settings *s = &options->settings;
    const struct sdr_plugin *plugin;
    void *parsed;
    SDR_TRY(sdr_plugin_choose("generator", sdr_generator_table, kind, &plugin, &parsed));
    struct sdr_generate_options o = {.rows = s->rows,
                                     .features = s->features,
                                     .nnz = s->nnz,
                                     .classes = s->classes,
                                     .seed = s->seed,
                                     .noise = s->noise};
    sdr_release(parsed);
    return ((const struct sdr_generator *)plugin)->make(&o, path);
}

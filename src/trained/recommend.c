/* Top-N items for users, from a matrix factorisation (--model mf). */
#include "base/memory.h"
#include "trained/model.h"

#include <string.h>

struct job {
    const struct sdr_model *model;
    const struct sdr_rows *rows;
    uint32_t *user, users; /* owned: features of the users in the data, in order of appearance */
    uint32_t *first, *entry; /* owned: user i has items entry[first[i]] … entry[first[i + 1] − 1] */
    uint32_t *item, items; /* owned: features of all items of the model */
    bool *taken;           /* owned, per feature: known to the current user */
};

static bool has_kind(const struct sdr_model *model, uint32_t feature, const char *kind)
{
    const struct sdr_schema *schema = &model->schema;
    uint32_t number = feature - schema->numbers;
    return feature >= schema->numbers && number < schema->category.count &&
           strncmp(schema->category.text[number], kind, strlen(kind)) == 0;
}

/* The id of a feature without its prefix "user:" or "item:". */
static const char *id_of(const struct sdr_model *model, uint32_t feature)
{
    return model->schema.category.text[feature - model->schema.numbers] + 5;
}

/* The user and the item of a row; false if one is missing. */
static bool pair_of(const struct job *job, uint64_t row, uint32_t *user, uint32_t *item)
{
    struct sdr_sparse_row r = sdr_sparse_row(job->rows, row);
    *user = *item = UINT32_MAX;
    for (uint32_t n = 0; n < r.n; n++) {
        uint32_t feature = sdr_row_index(&r, n);
        *(has_kind(job->model, feature, "user:") ? user : item) = feature;
    }
    return *user != UINT32_MAX && *item != UINT32_MAX;
}

static enum sdr_status list_users(struct job *job)
{
    uint32_t features = job->rows->features, user, item, *place, *next;
    enum sdr_status status;
    SDR_TRY(sdr_allocate(&place, (size_t)features * 2, sizeof *place, "users"));
    next = place + features;
    SDR_CHECK(sdr_allocate(&job->user, features, sizeof *job->user, "users"));
    SDR_CHECK(sdr_allocate(&job->first, (size_t)features + 1, sizeof *job->first, "users"));
    SDR_CHECK(sdr_allocate(&job->entry, job->rows->count, sizeof *job->entry, "users"));
    for (uint64_t row = 0; row < job->rows->count; row++) {
        pair_of(job, row, &user, &item);
        if (user == UINT32_MAX)
            continue;
        if (!place[user]) {
            job->user[job->users] = user;
            place[user] = ++job->users;
        }
        job->first[place[user]] += item != UINT32_MAX;
    }
    for (uint32_t i = 0; i < job->users; i++) {
        job->first[i + 1] += job->first[i];
        next[i] = job->first[i];
    }
    for (uint64_t row = 0; row < job->rows->count; row++)
        if (pair_of(job, row, &user, &item))
            job->entry[next[place[user] - 1]++] = item;
cleanup:
    sdr_release(place);
    return status;
}

static enum sdr_status list_items(struct job *job)
{
    uint32_t features = job->rows->features;
    SDR_TRY(sdr_allocate(&job->item, features, sizeof *job->item, "items"));
    SDR_TRY(sdr_allocate(&job->taken, features, sizeof *job->taken, "items"));
    for (uint32_t j = 0; j < features; j++)
        if (has_kind(job->model, j, "item:"))
            job->item[job->items++] = j;
    return SDR_OK;
}

/* The `top` best items, best first; ties in the order of items. */
static size_t best_items(const struct job *job, uint32_t user, size_t top, uint32_t *item,
                         float *score)
{
    const struct sdr_model *model = job->model;
    uint64_t start[2] = {0, 2};
    uint32_t pair[2];
    const float one[2] = {1, 1};
    struct sdr_rows rows = {
        .count = 1, .features = job->rows->features, .start = start, .index32 = pair, .value = one};
    struct sdr_problem problem = {.rows = &rows,
                                  .features = rows.features,
                                  .outputs = 1,
                                  .intercept = model->intercept,
                                  .model_options = model->options,
                                  .kernels = sdr_linear_kernels(sdr_cpu_level())};
    struct sdr_view view = {.problem = &problem, .block = model->block, .w = model->value};
    uint32_t zero = 0;
    struct sdr_batch batch = {.rows = &rows, .row = &zero, .count = 1};
    size_t count = 0;
    for (uint32_t i = 0; i < job->items; i++) {
        float s;
        if (job->taken[job->item[i]])
            continue;
        pair[0] = user;
        pair[1] = job->item[i];
        model->kind->score(&view, &batch, NULL, &s);
        if (count == top && !(s > score[top - 1]))
            continue;
        size_t place = count < top ? count++ : top - 1;
        for (; place > 0 && s > score[place - 1]; place--) {
            score[place] = score[place - 1];
            item[place] = item[place - 1];
        }
        score[place] = s;
        item[place] = job->item[i];
    }
    return count;
}

enum sdr_status sdr_model_top(const struct sdr_model *model, const struct sdr_data *data,
                              size_t top, sdr_top_function *function, void *context)
{
    struct job job = {.model = model, .rows = &data->rows};
    uint32_t *item = NULL;
    float *score = NULL;
    const char **text = NULL;
    enum sdr_status status;
    if (!(model->kind->needs & SDR_NEEDS_SIDES) || !model->schema.category.count ||
        data->rows.dense)
        return sdr_fail(SDR_USAGE,
                        "recommendations need a model of ratings: --model mf on triples");
    if (data->rows.features != model->schema.features || top == 0)
        return sdr_fail(SDR_USAGE,
                        top ? "the data was not read with the model" : "--top 0 is none");
    SDR_CHECK(list_users(&job));
    SDR_CHECK(list_items(&job));
    if (job.items == 0 || job.users == 0)
        SDR_CHECK(sdr_fail(SDR_BAD_DATA, job.items ? "the data names no user that the model knows"
                                                   : "the model knows no items: train on triples"));
    top = top < job.items ? top : job.items;
    SDR_CHECK(sdr_allocate(&item, top, sizeof *item, "recommendations"));
    SDR_CHECK(sdr_allocate(&score, top, sizeof *score, "recommendations"));
    SDR_CHECK(sdr_allocate(&text, top, sizeof *text, "recommendations"));
    for (uint32_t i = 0; i < job.users; i++) {
        for (uint32_t n = job.first[i]; n < job.first[i + 1]; n++)
            job.taken[job.entry[n]] = true;
        size_t count = best_items(&job, job.user[i], top, item, score);
        for (uint32_t n = job.first[i]; n < job.first[i + 1]; n++)
            job.taken[job.entry[n]] = false;
        for (size_t k = 0; k < count; k++)
            text[k] = id_of(model, item[k]);
        function(context, id_of(model, job.user[i]), count, text, score);
    }
cleanup:
    sdr_release(job.user);
    sdr_release(job.first);
    sdr_release(job.entry);
    sdr_release(job.item);
    sdr_release(job.taken);
    sdr_release(item);
    sdr_release(score);
    sdr_release(text);
    return status;
}

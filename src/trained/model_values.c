/* The weights of a trained model, shared by its copies. */
#include "base/file.h"
#include "base/memory.h"
#include "server/network.h"
#include "trained/model.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum sdr_status sdr_model_values_create(uint64_t count, struct sdr_model_values **values)
{
    SDR_TRY(sdr_allocate(values, 1, sizeof **values, "a model"));
    atomic_init(&(*values)->refs, 1);
    enum sdr_status status = sdr_allocate(&(*values)->value, count, sizeof(float), "a model");
    if (status != SDR_OK) {
        sdr_release(*values);
        *values = NULL;
    }
    return status;
}

struct sdr_model_values *sdr_model_values_hold(struct sdr_model_values *values)
{
    atomic_fetch_add(&values->refs, 1);
    return values;
}

void sdr_model_values_drop(struct sdr_model_values *values)
{
    if (!values || atomic_fetch_sub(&values->refs, 1) > 1)
        return;
    if (values->mapped)
        sdr_file_unmap(values->value, values->mapped);
    else
        sdr_release(values->value);
    sdr_release(values);
}

void sdr_model_passed(const struct sdr_model *model, const float *from, uint64_t count)
{
    if (model->values->mapped)
        sdr_file_passed(from, count * sizeof *from);
}

/* ---- values of servers in several processes ---- */
static enum sdr_status put_piece(void *context, struct sdr_span span, const float *value)
{
    return sdr_file_put_at(*(int *)context, span.first * sizeof *value, value,
                           (span.end - span.first) * sizeof *value);
}

/* A file in the run folder, or where scratch files go; −1: nowhere. */
static int open_somewhere(const struct sdr_run *run)
{
    const char *folder[] = {run->options.settings.run, run->options.settings.scratch};
    int descriptor = -1;
    for (size_t i = 0; i < sizeof folder / sizeof *folder && descriptor < 0; i++)
        if (folder[i] && sdr_file_nameless(folder[i], &descriptor) != SDR_OK)
            descriptor = -1;
    return descriptor;
}

static enum sdr_status collect_in_file(struct sdr_run *run, enum sdr_array which, int descriptor,
                                       struct sdr_model_values **values)
{
    const void *bytes;
    size_t count = run->layout.count * sizeof(float);
    SDR_TRY(sdr_weights_visit(run, which, put_piece, &descriptor));
    SDR_TRY(sdr_allocate(values, 1, sizeof **values, "a model"));
    atomic_init(&(*values)->refs, 1);
    enum sdr_status status = sdr_file_map_open(descriptor, count, &bytes);
    if (status == SDR_OK) {
        (*values)->value = (float *)(uintptr_t)bytes;
        (*values)->mapped = count;
        return SDR_OK;
    }
    sdr_release(*values);
    *values = NULL;
    return status;
}

enum sdr_status sdr_model_values_collect(struct sdr_run *run, enum sdr_array which,
                                         struct sdr_model_values **values)
{
    const float *w;
    float *copy;
    bool apart = run->network && sdr_servers_apart(run->network);
    *values = NULL;
    if (apart && !run->set.center) { /* centers must be folded in, in memory */
        int descriptor = open_somewhere(run);
        enum sdr_status status = descriptor < 0
                                     ? SDR_RUNTIME
                                     : collect_in_file(run, which, descriptor, values);
        if (descriptor >= 0)
            close(descriptor);
        if (status == SDR_OK)
            return SDR_OK;
    }
    SDR_TRY(sdr_model_values_create(run->layout.count, values));
    enum sdr_status status = sdr_weights_all(run, which, &copy, &w);
    if (status == SDR_OK)
        memcpy((*values)->value, w, run->layout.count * sizeof *w);
    sdr_release(copy);
    return status;
}

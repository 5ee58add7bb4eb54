/* A model under test, with the options it has by default. */
#ifndef TESTS_CONFORM_SUBJECT_H
#define TESTS_CONFORM_SUBJECT_H

#include "conform/numbers.h"

#include "base/memory.h"
#include "run/registry.h"
#include "run/settings.h"

enum { CLASSES = 5, OUTPUTS_MOST = 16 };

struct subject {
    const struct sdr_model_kind *kind;
    void *options; /* owned */
    uint32_t outputs;
};

static inline struct subject subject_open(const struct sdr_model_kind *kind)
{
    struct subject s = {.kind = kind, .outputs = kind->truth == SDR_CLASSES ? CLASSES : 1};
    const struct sdr_plugin *plugin;
    assert_int_equal(
        sdr_plugin_choose("model", sdr_model_kind_table, kind->name, &plugin, &s.options), SDR_OK);
    assert_ptr_equal(plugin, kind);
    if (kind->outputs)
        s.outputs = kind->outputs(s.options);
    assert_true(s.outputs <= OUTPUTS_MOST);
    return s;
}

static inline void subject_close(struct subject *s)
{
    sdr_plugin_free(s->kind, s->options);
    s->kind = NULL;
}

#define FOR_EVERY_MODEL(s)                                                                         \
    for (const struct sdr_model_kind *const *k_ = sdr_model_kind_table; *k_; k_++)                 \
        for (struct subject s = subject_open(*k_); s.kind; subject_close(&s))

static inline float random_target(const struct subject *s)
{
    switch (s->kind->truth) {
    case SDR_BINARY:
        return random_below(2) ? 1.0f : -1.0f;
    case SDR_CLASSES:
        return (float)random_below(s->outputs);
    case SDR_UNSUPERVISED: /* the weight of an edge */
        return fabsf(random_dyadic(4)) + 0.25f;
    default:
        return random_dyadic(4);
    }
}

#endif

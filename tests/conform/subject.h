/* A model under test, with the options it has by default; networks in several small forms
   instead. */
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
    char spec[100]; /* name and options */
};

/* Networks on images of 4 × 6 pixels. Window sizes, strides and padding leave remainders. */
static inline const char *subject_form(const struct sdr_model_kind *kind, int form)
{
    static const char *const dense[] = {"hidden=6,activation=relu", "hidden=5-3,activation=tanh",
                                        "hidden=40-3,activation=sigmoid-relu", NULL};
    static const char *const images[] = {"layers=conv3x2-pool2-dense3-tanh,image=4x6",
                                         "layers=conv2x3s2p1-sigmoid-conv3x2-relu,image=4x6",
                                         "layers=tanh-pool2s1-sigmoid-dense4-dropout0,image=4x6",
                                         "layers=conv2x2p1-pool3s2,image=4x3x2",
                                         "layers=dense4-relu-dense3",
                                         NULL};
    if (!kind->layered)
        return form == 0 ? "" : NULL;
    if (!kind->regression && form > 0) /* presets, and other losses: the same layers */
        return NULL;
    return sdr_option_find(kind->options, "layers") ? images[form] : dense[form];
}

static inline struct subject subject_open(const struct sdr_model_kind *kind, int form)
{
    struct subject s = {.kind = kind, .outputs = kind->truth == SDR_CLASSES ? CLASSES : 1};
    const struct sdr_plugin *plugin;
    if (!subject_form(kind, form))
        return (struct subject){0};
    snprintf(s.spec, sizeof s.spec, "%s%s%s", kind->name, kind->layered ? ":" : "",
             subject_form(kind, form));
    assert_int_equal(sdr_plugin_choose("model", sdr_model_kind_table, s.spec, &plugin, &s.options),
                     SDR_OK);
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
        for (int f_ = 0; subject_form(*k_, f_); f_++)                                              \
            for (struct subject s = subject_open(*k_, f_); s.kind; subject_close(&s))

static inline float random_target(const struct subject *s)
{
    switch (s->kind->truth) {
    case SDR_BINARY: return random_below(2) ? 1.0f : -1.0f;
    case SDR_CLASSES: return (float)random_below(s->outputs);
    case SDR_UNSUPERVISED: /* the weight of an edge */ return fabsf(random_dyadic(4)) + 0.25f;
    default: return random_dyadic(4);
    }
}

#endif

/* A trained model: weights in the units of the data, and everything needed to apply them to other
   files. */
#ifndef SDR_MODEL_H
#define SDR_MODEL_H

#include "run/run.h"

struct sdr_model {
    const struct sdr_model_kind *kind;
    char *kind_spec; /* owned: "huber:delta=2" */
    void *options;   /* owned: the kind's options */
    struct sdr_block block[SDR_BLOCKS_MOST];
    int blocks;
    float *value; /* owned */
    uint64_t count;
    bool intercept;
    uint32_t outputs;
    struct sdr_classes classes;
    struct sdr_schema schema;
    char *training; /* owned: JSON text of the options that define the model */
    char hash[33];  /* of kind, blocks, values, classes */
};

/* Creates a model from the uncentered weights w of a run. */
enum sdr_status sdr_model_create(const struct sdr_run *run, const float *w,
                                 struct sdr_model **model);
/* Computes the hash from the other members. */
enum sdr_status sdr_model_hash(struct sdr_model *model);
enum sdr_status sdr_model_copy(const struct sdr_model *model, struct sdr_model **copy);

#endif

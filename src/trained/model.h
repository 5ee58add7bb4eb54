/* A trained model: weights in the units of the data, and everything needed to apply them to other
   files. */
#ifndef SDR_MODEL_H
#define SDR_MODEL_H

#include "run/weights.h"

/* The weights of a model: in memory, or where they came from servers in several processes, in a
   file. Copies of a model share them. */
struct sdr_model_values {
    atomic_uint refs;
    float *value;    /* owned */
    uint64_t mapped; /* bytes of the file; 0: it is memory */
};

struct sdr_model {
    const struct sdr_model_kind *kind;
    char *kind_spec; /* owned: "huber:delta=2" */
    void *options;   /* owned: the kind's options */
    struct sdr_block block[SDR_BLOCKS_MOST];
    int blocks;
    struct sdr_model_values *values; /* shared */
    const float *value;              /* in `values` */
    uint64_t count;
    bool intercept;
    uint32_t outputs;
    struct sdr_classes classes;
    struct sdr_schema schema;
    char *training; /* owned: JSON text of the options that define the model */
    char hash[33];  /* of kind, blocks, values, classes */
};

/* From the weights of a run: NOW, GOOD or BEST. */
enum sdr_status sdr_model_create(struct sdr_run *run, enum sdr_array which,
                                 struct sdr_model **model);
/* model_values.c: `count` values in memory, all zero; or a run's, wherever they live. */
enum sdr_status sdr_model_values_create(uint64_t count, struct sdr_model_values **values);
enum sdr_status sdr_model_values_collect(struct sdr_run *run, enum sdr_array which,
                                         struct sdr_model_values **values);
struct sdr_model_values *sdr_model_values_hold(struct sdr_model_values *values);
void sdr_model_values_drop(struct sdr_model_values *values); /* NULL: nothing */
/* A pass over the values is done with some of them: pages of a file leave memory. */
void sdr_model_passed(const struct sdr_model *model, const float *from, uint64_t count);
/* Computes the hash from the other members. */
enum sdr_status sdr_model_hash(struct sdr_model *model);
enum sdr_status sdr_model_copy(const struct sdr_model *model, struct sdr_model **copy);

#endif

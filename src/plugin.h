/* The interfaces: one struct per kind of plug-in, with the contract of every member.

   A plug-in is one file in its kind's folder that ends in SDR_REGISTER(kind, name); the build finds
   that line and writes the table. Everything here is const and shared by all threads. */
#ifndef SDR_PLUGIN_H
#define SDR_PLUGIN_H

#include "base/option.h"
#include <stdint.h>

/* Defines the plug-in's symbol; '-' in names is '_' here. */
#define SDR_REGISTER(kind, name) const struct sdr_##kind sdr_##kind##_##name

/* ---- rows: the examples, as kernels and models see them ---- */
/* Sparse rows (CSR) have start, index, value; dense rows have dense. All pointers are borrowed. */
struct sdr_rows {
    uint64_t count;
    uint32_t features;
    const uint64_t *start;   /* sparse: count + 1 offsets; NULL: dense */
    const uint16_t *index16; /* sparse: one of index16 (features ≤ 65536) and index32 is set; */
    const uint32_t *index32; /*         distinct and increasing within a row                  */
    const float *value;
    const float *dense;      /* dense[row * stride + feature] */
    uint64_t stride;
    const float *label;      /* raw labels; NULL: none */
    const float *weight;     /* NULL: all one */
};

/* ---- formats: files → rows ---- */
struct sdr_reading;
struct sdr_piece;
struct sdr_source;
struct sdr_format {
    const char *name, *summary;
    const char *extensions;           /* "svm libsvm", without dots; "" if content alone decides */
    const struct sdr_option *options; /* or NULL */
    size_t options_size, state_size;  /* the framework allocates both, zeroed */
    /* How sure the format is that a file starting with head is its own: 0 no … 100 certain. */
    int (*recognise)(const char *head, size_t count);
    /* Looks at the head of the first file and fixes schema and state. Does not block. */
    enum sdr_status (*open)(void *state, struct sdr_reading *reading, const char *head, size_t count);
    /* Line formats: bytes up to and including the last whole record in a buffer, 0 if there is none;
       NULL: the last newline. The last chunk of a file is passed whole. */
    size_t (*cut)(const void *state, const char *bytes, size_t count);
    /* Line formats: turns a chunk of whole records into rows. Called in parallel: state is const.
       `first` is true for the chunk a file begins with (header lines). Errors go to sdr_piece_fail. */
    enum sdr_status (*parse)(const void *state, const char *bytes, size_t count, bool first,
                             struct sdr_piece *piece);
    /* Other formats (parse is NULL): reads one whole file and gives pieces to reading->builder. */
    enum sdr_status (*whole)(void *state, struct sdr_reading *reading, struct sdr_source *source);
    void (*close)(void *state);       /* frees what open allocated; may be NULL */
    bool by_density;                  /* rows may become dense if few cells are zero */
};

#endif

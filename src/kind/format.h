/* Formats: files → rows. */
#ifndef SDR_KIND_FORMAT_H
#define SDR_KIND_FORMAT_H

#include "kind/about.h"
#include "kind/rows.h"

enum { SDR_CONTENT_CERTAIN = 95 };
struct sdr_reading;
struct sdr_piece;
struct sdr_source;
struct sdr_format {
    SDR_ABOUT;
    const char *extensions; /* "svm libsvm", without dots; "" if content alone decides */
    const char *takes;      /* reading options that apply to it: "label weight" */
    size_t state_size;      /* the framework allocates it and the options, zeroed */
    /* Confidence that a file starting with `head` has this format: 0 no … 100 certain. From
       SDR_CONTENT_CERTAIN on it overrides the file's extension. */
    int (*recognise)(const char *head, size_t count);
    /* Number of whole records in a head, the last of which may be cut. If set, open() gets a
       head of several records, however long they are; NULL: 64 KB suffice. */
    uint32_t (*records)(const void *options, const char *head, size_t count);
    /* Reads the head of the first file and sets schema and state. Does not block. */
    enum sdr_status (*open)(void *state, struct sdr_reading *reading, const char *head,
                            size_t count);
    /* Line formats: bytes up to and including the last whole record in a buffer, 0 if there is
       none; NULL: the last newline. The last chunk of a file is passed whole. */
    size_t (*cut)(const void *state, const char *bytes, size_t count);
    /* Line formats: parses a chunk of whole records into rows. Called in parallel: state is
       const. `first`: the chunk begins the file (header lines). Errors go to sdr_piece_fail. */
    enum sdr_status (*parse)(const void *state, const char *bytes, size_t count, bool first,
                             struct sdr_piece *piece);
    /* Other formats (parse is NULL): reads one whole file and passes pieces to reading->builder. */
    enum sdr_status (*whole)(void *state, struct sdr_reading *reading, struct sdr_source *source);
    void (*close)(void *state); /* frees the allocations of open; may be NULL */
    bool by_density;            /* rows may become dense if few cells are zero */
};

#endif

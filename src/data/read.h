/* Shared by the parts of reading: read.c (from paths to data), paths.c (files and formats),
   pipeline.c (chunks, threads, order), key.c (names of cache files), recast.c (cache files with
   another schema) and column_notes.c (notes about suspicious columns). */
#ifndef SDR_DATA_READ_H
#define SDR_DATA_READ_H

#include "data/data.h"

/* Chunk and piece together fit into the L2 cache. */
enum { SDR_CHUNK_BYTES = 1 << 18 };

/* sdr_data_read with a given chunk size, for tests: the data must not depend on it. */
enum sdr_status sdr_data_read_chunked(const struct sdr_data_options *options,
                                      const char *const *paths, size_t count,
                                      const struct sdr_schema *known, size_t chunk,
                                      struct sdr_data **data);

/* ---- paths.c ---- */
struct sdr_paths {
    char **path; /* owned, as is each element */
    size_t count, room;
};
/* Existing paths and "-" are kept; patterns are expanded in sorted order. */
enum sdr_status sdr_paths_expand(const char *const *given, size_t count, struct sdr_paths *paths);
void sdr_paths_free(struct sdr_paths *paths);
/* *guessed: by content alone. */
enum sdr_status sdr_format_choose(const struct sdr_data_options *options,
                                  const struct sdr_schema *known, const char *path,
                                  const char *name, const char *head, size_t count,
                                  const struct sdr_format **format, bool *guessed);
/* SDR_USAGE for an option that has no effect on this data; format NULL: a cache file. */
enum sdr_status sdr_format_check_options(const struct sdr_data_options *options,
                                         const struct sdr_format *format);
/* SDR_BAD_DATA if rows of this format cannot fit a model with schema `known`. */
enum sdr_status sdr_format_check_known(const char *format, const struct sdr_schema *known,
                                       const char *name);

/* ---- key.c ---- */
/* Two hashes. name: paths and reading options; names the cache file. key: also the current
   contents; stored in the file, which is stale if it differs. */
enum sdr_status sdr_read_key(const struct sdr_data_options *options, const struct sdr_schema *known,
                             const struct sdr_format *format, const struct sdr_paths *paths,
                             char name[33], char key[33]);

/* ---- pipeline.c ---- */
/* The context of a format while it reads. */
struct sdr_read_job {
    const struct sdr_format *format;
    void *state; /* of the format */
    struct sdr_reading *reading;
    const struct sdr_paths *paths;
    struct sdr_source *source; /* of the first path, already open; taken over */
    size_t chunk;
    uint64_t total; /* bytes of all files, 0 if unknown */
    int64_t started;
};
enum sdr_status sdr_pipeline_run(struct sdr_read_job *job);
/* Reports progress. Called only on the thread that called the library. */
void sdr_read_progress(const struct sdr_read_job *job, uint64_t done);
void sdr_read_note(const struct sdr_data_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- column_notes.c ---- */
/* Notes about columns of a new table that are rarely meant as features: constants, ids, copies of
   the label. SDR_BAD_DATA if labels are numbers with currency signs or units, unless requested as
   classes. */
enum sdr_status sdr_columns_note(const struct sdr_data_options *options, bool labels_are_classes,
                                 struct sdr_data *data);

/* ---- recast.c ---- */
/* Adapts data that was read without a schema to a known schema; *data may be replaced. */
enum sdr_status sdr_data_recast(const struct sdr_data_options *options,
                                const struct sdr_schema *known, struct sdr_data **data);

#endif

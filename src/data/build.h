/* Internals of the builder, shared by build.c (adding pieces), build_labels.c, build_entries.c
   (storing entries), layout.c (index width, dense rows, means) and spill.c (data larger than
   --memory). */
#ifndef SDR_DATA_BUILD_H
#define SDR_DATA_BUILD_H

#include "data/data.h"

enum {
    NARROW_FEATURES = 65536, /* most features with uint16 indices */
    DENSE_LANES = 16         /* a stride is a multiple of this many floats */
};

/* Columns spilled to files once data exceeds the memory limit: sparse, with uint32 indices as
   written in the file, because base and width are known only at the end. */
enum spill_column {
    SPILL_START,
    SPILL_INDEX,
    SPILL_VALUE,
    SPILL_LABEL,
    SPILL_WEIGHT,
    SPILL_COLUMNS
};

/* Arrays in memory: dense rows, or start, index and value. When spilled: what is not yet in
   files. */
struct sdr_staged {
    struct sdr_region start, index, value, dense, label, weight;
};
/* Properties of the rows so far. */
struct sdr_met {
    bool has_weights, has_missing, lacks_labels, has_labels;
};

struct sdr_builder {
    const struct sdr_data_options *options;
    const struct sdr_schema *known;
    struct sdr_schema *schema;
    enum sdr_layout_wish wish;
    const char *keep_path, *keep_key; /* borrowed, or NULL */

    struct sdr_staged staged;
    bool begun, is_dense, wide; /* wide: index is uint32, else uint16 */
    uint32_t dense_width;
    uint64_t rows, nonzeros, unseen;

    uint32_t base;    /* index of the first feature in the file */
    bool base_open;   /* base may still become 0 */
    uint32_t width;   /* features so far, by plain indices */
    uint32_t limit;   /* plain features beyond are dropped: the width of a known schema */
    uint32_t numbers; /* first feature of categories */
    struct sdr_met met;

    struct sdr_label_finder label_finder;
    uint32_t *map; /* a piece's category or label numbers → the builder's */
    uint64_t map_room;
    struct sdr_piece rows_piece; /* dense rows being converted to sparse ones */

    bool spilled;
    int spill[SPILL_COLUMNS];
};

/* Subtracted from indices when they are stored. */
static inline uint32_t sdr_builder_shift(const struct sdr_builder *b)
{
    return b->spilled ? 0 : b->base;
}
uint64_t sdr_builder_staged(const struct sdr_builder *b);

/* build_labels.c */
enum sdr_status sdr_labels_add(struct sdr_builder *b, const struct sdr_piece *piece);
/* weight: NULL if the rows have none. */
enum sdr_status sdr_weights_add(struct sdr_builder *b, const float *weight, uint64_t rows);

/* build_entries.c: resolves categories and drops zeros and unknown features, entry by entry. */
enum sdr_status sdr_entries_append(struct sdr_builder *b, const struct sdr_piece *piece);
/* Fast path: all entries are plain known features with non-zero values. */
enum sdr_status sdr_entries_copy(struct sdr_builder *b, const struct sdr_piece *piece);
enum sdr_status sdr_builder_map(struct sdr_builder *b, uint32_t count);

/* layout.c */
enum sdr_status sdr_layout_widen(struct sdr_builder *b); /* uint16 → uint32 indices */
/* Moves all indices up by one when an index 0 shows that the file counts from 0. */
enum sdr_status sdr_layout_shift_up(struct sdr_builder *b);
enum sdr_status sdr_layout_to_dense(struct sdr_builder *b, uint32_t features);
enum sdr_status sdr_layout_to_sparse(struct sdr_builder *b);
enum sdr_status sdr_layout_fill_missing(struct sdr_builder *b);
/* Fails if missing cells need means and the known schema has none. */
enum sdr_status sdr_layout_known_means(const struct sdr_builder *b);
/* Adds entries to the sums and missing counts of their features, in file order. */
void sdr_layout_sum(const uint32_t *index32, const uint16_t *index16, const float *value,
                    uint64_t count, uint32_t shift, double *sum, uint64_t *missing);
enum sdr_status sdr_layout_means(const struct sdr_builder *b, const double *sum,
                                 const uint64_t *missing);
static inline uint64_t sdr_stride(uint32_t features)
{
    return ((uint64_t)features + DENSE_LANES - 1) / DENSE_LANES * DENSE_LANES;
}
static inline bool sdr_is_dense_enough(uint64_t nonzeros, uint64_t rows, uint32_t features)
{
    return rows && features && (double)nonzeros >= 0.3 * (double)rows * (double)features;
}

/* spill.c */
enum sdr_status sdr_spill_start(struct sdr_builder *b);
enum sdr_status sdr_spill_flush(struct sdr_builder *b);
enum sdr_status sdr_spill_finish(struct sdr_builder *b, bool dense, struct sdr_data *data);
void sdr_spill_close(struct sdr_builder *b);

#endif

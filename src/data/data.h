/* The data layer: files → pieces → one data set of rows, with the schema that describes them.

   paths → source (bytes, decompressed) → chunks of whole lines → format.parse, in parallel →
   pieces (rows of one chunk) → builder, in file order → rows (memory or mapped cache)

   Kernels and models see struct sdr_rows (kind/rows.h). This header is shared by the parts of the
   data layer. */
#ifndef SDR_DATA_DATA_H
#define SDR_DATA_DATA_H

#include "base/memory.h"
#include "base/text.h"
#include "kind/format.h"
#include <jansson.h>
#include <stdatomic.h>

/* ---- options ---- */
enum sdr_missing { SDR_MISSING_ERROR, SDR_MISSING_ZERO, SDR_MISSING_MEAN };

/* The data options of a run; every pointer is borrowed for the call. */
struct sdr_data_options {
    const char *format;      /* NULL or "auto": by extension, then by content */
    const char *format_rest; /* the options after the ':' of --format, or "" */
    const char *label;       /* CSV: label column by name; NULL: guessed */
    const char *weight;      /* CSV: weight column by name, or NULL */
    const char *ignore;      /* CSV: columns to drop, comma separated, or NULL */
    const char *categories;  /* CSV: columns forced to be categories, or NULL */
    const char *labels;      /* IDX, NPY, Matrix Market: the label file, or NULL */
    unsigned bits;           /* feature hashing into 2^bits features; 0: off (VW: 18) */
    int base;                /* first index of sparse text: 0, 1, or −1 for auto */
    enum sdr_missing missing;
    const char *cache;   /* folder for cache files, or NULL */
    uint64_t memory;     /* bytes of data in memory; 0: no limit. Larger data streams */
    const char *scratch; /* folder for temporary files of streamed data; NULL: /tmp */
    int threads;
    bool on_demand;              /* rows of a cache file are read and checked when first used */
    bool labels_optional;        /* prediction: rows may lack a label */
    bool by_content;             /* a format certain of the content overrides the extension */
    bool labels_named;           /* the label comes from --label only; names are not guessed */
    const char *model;           /* labels_named: the model that needs no label, for messages */
    sdr_report_function *report; /* may be NULL */
    void *report_context;
};

/* ---- schema ---- */
enum sdr_column_kind {
    SDR_COLUMN_NUMBER,
    SDR_COLUMN_CATEGORY,
    SDR_COLUMN_LABEL,
    SDR_COLUMN_WEIGHT,
    SDR_COLUMN_IGNORED
};
struct sdr_column {
    char *name; /* owned */
    enum sdr_column_kind kind;
    uint32_t feature; /* NUMBER: its feature */
};
/* Distinct texts numbered by first appearance. Zero-initialise. */
struct sdr_dictionary {
    char **text; /* owned */
    uint32_t *length;
    uint32_t count, room;
    uint32_t *slot; /* hash table of number+1, 0: free */
    uint32_t slots;
    char *block; /* owned: the current text block; starts with the previous block */
    size_t block_used, block_room;
};
/* Finds a text, adds it if `add`; UINT32_MAX if absent. SDR_RUNTIME only when out of memory. */
enum sdr_status sdr_dictionary_find(struct sdr_dictionary *dictionary, const char *text,
                                    size_t length, bool add, uint32_t *number);
/* Finds a text; UINT32_MAX if absent. */
uint32_t sdr_dictionary_number(const struct sdr_dictionary *dictionary, const char *text,
                               size_t length);
void sdr_dictionary_clear(struct sdr_dictionary *dictionary); /* keeps the memory */
void sdr_dictionary_free(struct sdr_dictionary *dictionary);

/* Everything needed to read another file the same way; saved as JSON in model and cache files. */
struct sdr_schema {
    char *format;              /* owned: name of the format */
    struct sdr_column *column; /* owned; tables only, in file order */
    uint32_t columns;
    uint32_t features; /* fixed width, kept by models and later files */
    uint32_t numbers;  /* features that are not categories: 0 … numbers−1 */
    /* Categories: feature numbers + i is the i-th text, "column=value" (CSV), "user:ID" or
       "item:ID" (triples). Empty for formats without categories. */
    struct sdr_dictionary category;
    unsigned bits; /* feature hashing, 0: off */
    int base;      /* of sparse text: 0 or 1 */
    enum sdr_missing missing;
    float *mean;      /* owned: `features` means; NULL unless cells were missing with MEAN */
    bool text_labels; /* labels are texts: a row's label is its index in `labels` */
    struct sdr_dictionary labels; /* distinct labels as texts; numeric labels: with label_value */
    float *label_value;           /* owned; numeric labels: the value of labels.text[i] */
    bool many_labels;             /* too many distinct numbers to list (SDR_LABELS_MOST) */
    uint32_t dims[3];             /* IDX, NPY: shape of a row (28, 28, 0); zeros if flat */
};
#define SDR_DIMS(schema)                                                                           \
    {                                                                                              \
        (schema).dims[0], (schema).dims[1], (schema).dims[2]                                       \
    }
enum { SDR_LABELS_MOST = 4096 };
void sdr_schema_free(struct sdr_schema *schema);
enum sdr_status sdr_schema_copy(struct sdr_schema *to, const struct sdr_schema *from);
enum sdr_status sdr_schema_to_json(const struct sdr_schema *schema, json_t **json);
/* Returns SDR_BAD_FILE for anything malformed. */
enum sdr_status sdr_schema_from_json(const json_t *json, struct sdr_schema *schema);

/* A text as JSON, also if it is not UTF-8 (NULL: out of memory), and back (given away). */
json_t *sdr_text_to_json(const char *text, size_t length);
enum sdr_status sdr_text_from_json(const json_t *json, char **text, size_t *length);

/* ---- the data set: the public handle ---- */
struct sdr_data {
    struct sdr_rows rows; /* for training; points into the members below */
    struct sdr_schema schema;
    uint64_t nonzeros;
    uint64_t unseen; /* category values unknown to the model's schema, dropped */
    bool has_labels;
    bool streams;         /* larger than the memory limit: access it block by block */
    uint64_t stream_rows; /* streams: rows of a block */
    char *name;           /* owned: the first path, for messages */
    char *source_key; /* owned: hash of sources and options; names the cache, checked on resume */
    struct sdr_region start, index, value, dense, label, weight; /* owned, or empty */
    const void *map; /* owned mapping of a cache file, or NULL */
    size_t map_bytes;
    char *cache_path;      /* owned: path of the mapped --cache file, or NULL */
    atomic_uchar *checked; /* owned: bit set of rows checked so far (on demand), or NULL */
    double seconds;        /* read time */
};

/* read.c: reads a data set. known: the schema to use, or NULL to derive one. */
enum sdr_status sdr_data_read(const struct sdr_data_options *options, const char *const *paths,
                              size_t count, const struct sdr_schema *known, struct sdr_data **data);
/* Hashes of the row arrays, as in a cache file; 3 × 32 characters and a NUL. */
enum sdr_status sdr_data_sections(const struct sdr_data *data, char text[97]);
/* Checks rows on first use, for data read on demand: SDR_BAD_FILE if one is damaged. */
enum sdr_status sdr_data_demand(const struct sdr_data *data, const uint32_t *row, uint32_t count);
/* streams: tells the kernel that rows [first, end) will be needed, or are no longer needed. */
void sdr_data_will_need(const struct sdr_data *data, uint64_t first, uint64_t end);
void sdr_data_done_with(const struct sdr_data *data, uint64_t first, uint64_t end);

/* ---- distinct numeric labels: labels.text[i] has label_value[i] ---- */
/* Looks up a label's number. Zero-initialise; belongs to one pair (labels, label_value). */
struct sdr_label_finder {
    uint16_t *slot; /* owned: hash table of number+1 by value; NULL while there are few */
    uint32_t last;
};
/* Finds a value, or adds it with its text (NULL: as printed). *number is UINT32_MAX beyond
   SDR_LABELS_MOST values; the list is then invalid. */
enum sdr_status sdr_label_find(struct sdr_label_finder *finder, struct sdr_dictionary *labels,
                               float **label_value, float value, const char *text, size_t length,
                               uint32_t *number);
/* False if the text is an integer that the float cannot represent, such as "16777217": distinct
   classes would become one. */
bool sdr_label_exact(float value, const char *text, size_t length);
void sdr_label_clear(struct sdr_label_finder *finder);
void sdr_label_free(struct sdr_label_finder *finder);

/* ---- pieces: the rows of one parsed chunk ---- */
/* Marks an index into the piece's own category dictionary. The builder maps it to a feature in file
   order, so numbering does not depend on threads. */
#define SDR_CATEGORY_BIT 0x80000000u
enum { SDR_MISSING_ROW_LABEL = -1 };

struct sdr_piece {
    /* Entries: room for at least half the chunk's bytes plus 64, so that text formats need no
       checks. Row r has entries end[r−1] … end[r]−1, with strictly increasing indices unless
       categories. */
    uint32_t *index;
    float *value; /* NaN: missing, replaced by the mean */
    uint64_t entries, entry_room;
    uint64_t *end;
    float *label, *weight; /* weight is valid only if has_weights; 1 if a row has none */
    uint64_t rows, row_room;
    bool has_weights, has_missing, lacks_labels;
    uint32_t features;              /* largest plain index of this piece + 1 */
    bool index_zero;                /* sparse text: index 0 occurred */
    struct sdr_dictionary category; /* texts of indices with SDR_CATEGORY_BIT */
    struct sdr_dictionary labels;   /* distinct labels; text labels: label[] is the index here */
    float *label_value;             /* numeric labels: value of labels.text[i] */
    struct sdr_label_finder label_finder;
    bool text_labels, many_labels;
    uint64_t lines; /* lines of the chunk, for line numbers of the next */
    /* The first error: line within the chunk and column, counted from 1; 0: unknown. */
    enum sdr_status status;
    uint64_t error_line, error_column;
    char error[240];
};
/* Ensures entry_room ≥ entries and row_room ≥ rows (totals); keeps the contents. */
enum sdr_status sdr_piece_reserve(struct sdr_piece *piece, uint64_t entries, uint64_t rows);
void sdr_piece_clear(struct sdr_piece *piece); /* keeps the memory */
void sdr_piece_free(struct sdr_piece *piece);
/* Records the first error and returns SDR_BAD_DATA. */
enum sdr_status sdr_piece_fail(struct sdr_piece *piece, uint64_t line, uint64_t column,
                               const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Registers a label with its text (NULL: as printed). Cheap for repeated values. Fails at line and
   column for an integer that a float cannot represent. */
enum sdr_status sdr_piece_label_number(struct sdr_piece *piece, float value, const char *text,
                                       size_t length);
enum sdr_status sdr_piece_label_text(struct sdr_piece *piece, const char *text, size_t length,
                                     float *label);
/* The tagged index of a category text. */
enum sdr_status sdr_piece_category(struct sdr_piece *piece, const char *text, size_t length,
                                   uint32_t *index);

/* ---- sources: bytes of one path, decompressed by magic bytes ---- */
struct sdr_source;
enum sdr_status sdr_source_open(const char *path, struct sdr_source **source); /* "-": stdin */
/* Reads up to `count` bytes; *got < count only at the end. SDR_BAD_DATA for a broken archive. */
enum sdr_status sdr_source_read(struct sdr_source *source, void *bytes, size_t count, size_t *got);
enum { SDR_HEAD_BYTES = 1 << 16 };
/* The first SDR_HEAD_BYTES, or fewer at the end, without consuming them; borrowed until the next
   read or peek. */
enum sdr_status sdr_source_peek(struct sdr_source *source, const char **bytes, size_t *count);
/* The same with at least `wanted` bytes: *count < wanted only at the end. Only before the first
   read. */
enum sdr_status sdr_source_peek_more(struct sdr_source *source, size_t wanted, const char **bytes,
                                     size_t *count);
const char *sdr_source_name(const struct sdr_source *source); /* "<stdin>" for "-" */
uint64_t sdr_source_taken(const struct sdr_source *source);   /* compressed bytes consumed */
void sdr_source_close(struct sdr_source *source);

/* Reads the rest of a source into a region. */
enum sdr_status sdr_source_rest(struct sdr_source *source, struct sdr_region *bytes);
/* Limits what sdr_source_rest may unpack from a compressed file; 0: no limit. */
void sdr_source_limit(struct sdr_source *source, uint64_t bytes);

/* ---- the context of a format: see struct sdr_format in kind/format.h ---- */
struct sdr_reading {
    const struct sdr_data_options *options;
    const struct sdr_schema *known; /* NULL: derive it */
    struct sdr_schema *schema;      /* the result; open() fills in what the head shows */
    const void *format_options;     /* options struct of the format */
    const char *path;               /* of the current file */
    bool head_cut;                  /* the file continues behind the head passed to open() */
    /* Set by open(): the first line is a header; --categories lists the label. */
    bool header, labels_are_classes;
    struct sdr_builder *builder; /* for formats that read whole files */
};

/* ---- the builder: pieces in file order → rows ---- */
struct sdr_builder;
enum sdr_layout_wish { SDR_LAYOUT_SPARSE, SDR_LAYOUT_BY_DENSITY };
/* schema is borrowed and completed by the builder. Beyond options->memory the data goes to
   files. */
enum sdr_status sdr_builder_create(const struct sdr_data_options *options,
                                   const struct sdr_schema *known, struct sdr_schema *schema,
                                   enum sdr_layout_wish layout, struct sdr_builder **builder);
enum sdr_status sdr_builder_add(struct sdr_builder *builder, struct sdr_piece *piece);
/* For formats with dense rows: count × features floats, and labels (NULL: none). */
enum sdr_status sdr_builder_add_dense(struct sdr_builder *builder, const float *x, uint64_t count,
                                      uint32_t features, const float *label, const float *weight);
/* Path and key of the cache file that streamed data becomes (borrowed until finish). Without them
   the file is temporary and unlinked at once. */
void sdr_builder_keep(struct sdr_builder *builder, const char *path, const char *key);
/* Completes data (means, index width, dense layout). Destroys the builder, also on failure. */
enum sdr_status sdr_builder_finish(struct sdr_builder *builder, struct sdr_data *data);
void sdr_builder_destroy(struct sdr_builder *builder);

/* ---- cache files ---- */
enum sdr_status sdr_cache_write(const struct sdr_data *data, const char *path);
/* Maps a cache file. SDR_BAD_FILE with the reason if it is damaged, of another version, or if key
   is not NULL and differs from the stored one ("is stale"). */
enum sdr_status sdr_cache_map(const char *path, const char *key, struct sdr_data **data);

#endif

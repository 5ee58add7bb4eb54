/* The data layer: files → pieces → one data set of rows, with the schema that explains them.

       paths → source (bytes, decompressed) → chunks of whole lines → format.parse, in parallel
             → pieces (rows of one chunk) → builder, in file order → rows (memory or mapped cache)

   What the kernels and models see is struct sdr_rows (plugin.h). This header is what the parts of
   the data layer share. */
#ifndef SDR_DATA_DATA_H
#define SDR_DATA_DATA_H

#include "base/memory.h"
#include "base/text.h"
#include "kind/format.h"
#include <jansson.h>
#include <stdatomic.h>

/* ---- how to read ---- */
enum sdr_missing { SDR_MISSING_ERROR, SDR_MISSING_ZERO, SDR_MISSING_MEAN };

/* The data options of a run, by value; every pointer is borrowed for the call. */
struct sdr_data_options {
    const char *format;      /* NULL or "auto": by extension, then by content */
    const char *format_rest; /* options behind the ':' of --format, or "" */
    const char *label;       /* CSV: label column by name; NULL: guessed */
    const char *weight;      /* CSV: weight column by name, or NULL */
    const char *ignore;      /* CSV: columns to leave out, comma separated, or NULL */
    const char *categories;  /* CSV: columns that are categories whatever they look like, or NULL */
    const char *labels;      /* IDX, NPY, Matrix Market: the file with the labels, or NULL */
    unsigned bits;           /* feature hashing into 2^bits features; 0: off (VW: 18) */
    int base;                /* first index of sparse text: 0, 1, or −1 for auto */
    enum sdr_missing missing;
    const char *cache;   /* folder for cache files, or NULL */
    uint64_t memory;     /* bytes the data may take; 0: no limit. More than that streams */
    const char *scratch; /* folder for files of data that streams without a cache; NULL: /tmp */
    int threads;
    bool on_demand;       /* rows of a cache file are read, and checked, when they are worked on */
    bool labels_optional; /* prediction: rows may lack a label */
    bool by_content;      /* a format that is certain of the content wins over the extension */
    bool labels_named;    /* the label is taken from --label only; column names are not guessed */
    const char *model;    /* labels_named: the model that needs no label, for sentences */
    sdr_report_function *report; /* may be NULL */
    void *report_context;
};

/* ---- what the columns mean ---- */
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
    uint32_t feature; /* NUMBER: its feature; unused otherwise */
};
/* Distinct texts numbered by first appearance. Zero-initialise. */
struct sdr_dictionary {
    char **text; /* owned */
    uint32_t *length;
    uint32_t count, room;
    uint32_t *slot; /* hash table of number+1, 0: free */
    uint32_t slots;
    char *block; /* owned: where texts are put; begins with the block before it */
    size_t block_used, block_room;
};
/* Finds, or adds if `add`; UINT32_MAX if absent. SDR_RUNTIME only when out of memory. */
enum sdr_status sdr_dictionary_find(struct sdr_dictionary *dictionary, const char *text,
                                    size_t length, bool add, uint32_t *number);
/* The same without adding. */
uint32_t sdr_dictionary_number(const struct sdr_dictionary *dictionary, const char *text,
                               size_t length);
void sdr_dictionary_clear(struct sdr_dictionary *dictionary); /* empty, memory kept */
void sdr_dictionary_free(struct sdr_dictionary *dictionary);

/* Everything needed to read another file the same way: saved in model and cache files as JSON. */
struct sdr_schema {
    char *format;              /* owned: name of the format */
    struct sdr_column *column; /* owned; columnar formats only, in the order of the file */
    uint32_t columns;
    uint32_t features; /* known width: trained models and later files keep it */
    uint32_t numbers;  /* features that are not categories: 0 … numbers−1 */
    /* Categories: feature numbers + i is the i-th text; a text is "column=value" (CSV), "user:ID"
       or "item:ID" (triples). Empty for formats without categories. */
    struct sdr_dictionary category;
    unsigned bits; /* feature hashing, 0: off */
    int base;      /* of sparse text: 0 or 1 */
    enum sdr_missing missing;
    float *mean;      /* owned: `features` means; NULL unless missing is MEAN and some cell was */
    bool text_labels; /* labels are texts: a row's label is its number in `labels` */
    struct sdr_dictionary labels; /* texts of the distinct labels; for numbers, with label_value */
    float *label_value;           /* owned; numeric labels: the value of labels.text[i] */
    bool many_labels; /* more distinct numbers than are worth listing (SDR_LABELS_MOST) */
    uint32_t dims[3]; /* IDX, NPY: shape of one row (28, 28, 0), zeros if flat */
};
enum { SDR_LABELS_MOST = 4096 };
void sdr_schema_free(struct sdr_schema *schema);
enum sdr_status sdr_schema_copy(struct sdr_schema *to, const struct sdr_schema *from);
enum sdr_status sdr_schema_to_json(const struct sdr_schema *schema, json_t **json);
/* Refuses anything malformed with SDR_BAD_FILE. */
enum sdr_status sdr_schema_from_json(const json_t *json, struct sdr_schema *schema);

/* A text as JSON, also where it is not UTF-8; NULL: out of memory. And back: given away. */
json_t *sdr_text_to_json(const char *text, size_t length);
enum sdr_status sdr_text_from_json(const json_t *json, char **text, size_t *length);

/* ---- the data set: the public handle ---- */
struct sdr_data {
    struct sdr_rows rows; /* what training reads; pointers into what follows */
    struct sdr_schema schema;
    uint64_t nonzeros;
    uint64_t unseen; /* category values unknown to the model's schema, left out */
    bool has_labels;
    bool streams;         /* larger than the memory allowed: touch it block by block */
    uint64_t stream_rows; /* streams: rows of one block */
    char *name;           /* owned: the first path, for messages */
    char *source_key; /* owned: hash of what was read and how; names the cache, checked on resume */
    struct sdr_region start, index, value, dense, label, weight; /* owned, or empty */
    const void *map; /* owned mapping of a cache file, or NULL */
    size_t map_bytes;
    char *cache_path;      /* owned: of a file of --cache that is mapped, or NULL */
    atomic_uchar *checked; /* owned: bits of the rows that were, if on demand; or NULL */
    double seconds;        /* spent reading */
};

/* read.c: the whole of reading. known: schema to read with, or NULL to find it out. */
enum sdr_status sdr_data_read(const struct sdr_data_options *options, const char *const *paths,
                              size_t count, const struct sdr_schema *known, struct sdr_data **data);
/* Hashes of the arrays that hold the rows, as a cache file has them; into 3 × 32 characters and an end. */
enum sdr_status sdr_data_sections(const struct sdr_data *data, char text[97]);
/* Reads these rows for the first time, where data is read on demand: SDR_BAD_FILE if one is damaged. */
enum sdr_status sdr_data_demand(const struct sdr_data *data, const uint32_t *row, uint32_t count);
/* streams: tells the kernel that rows [first, end) will be needed, or are no longer. */
void sdr_data_will_need(const struct sdr_data *data, uint64_t first, uint64_t end);
void sdr_data_done_with(const struct sdr_data *data, uint64_t first, uint64_t end);

/* ---- distinct numeric labels: labels.text[i] has label_value[i] ---- */
/* Finds a value's number quickly. Zero-initialise; belongs to one pair (labels, label_value). */
struct sdr_label_finder {
    uint16_t *slot; /* owned: hash table of number+1 by value, NULL while there are few */
    uint32_t last;
};
/* Adds the value with its text (NULL: as it prints) if it is new; *number is UINT32_MAX once there
   are more than SDR_LABELS_MOST, and the list is then of no use. */
enum sdr_status sdr_label_find(struct sdr_label_finder *finder, struct sdr_dictionary *labels,
                               float **label_value, float value, const char *text, size_t length,
                               uint32_t *number);
/* False if the text is a whole number, "16777217", and the float has lost some of it: classes would
   melt into one. */
bool sdr_label_exact(float value, const char *text, size_t length);
void sdr_label_clear(struct sdr_label_finder *finder);
void sdr_label_free(struct sdr_label_finder *finder);

/* ---- pieces: what a format makes of one chunk ---- */
/* An index with this bit is a number in the piece's own category dictionary; the builder resolves
   it to a feature, in file order, so that numbering does not depend on threads. */
#define SDR_CATEGORY_BIT 0x80000000u
enum { SDR_MISSING_ROW_LABEL = -1 };

struct sdr_piece {
    /* Entries: capacity is at least half the chunk's bytes plus 64, so that text formats need not
       check. Row r has entries end[r−1] … end[r]−1, strictly increasing indices unless categories.
     */
    uint32_t *index;
    float *value; /* NaN: missing, to become the mean */
    uint64_t entries, entry_room;
    uint64_t *end;
    float *label, *weight; /* weight is read only if has_weights; set 1 where a row has none */
    uint64_t rows, row_room;
    bool has_weights, has_missing, lacks_labels;
    uint32_t features;              /* largest index + 1 of plain indices in this piece */
    bool index_zero;                /* sparse text: index 0 was seen */
    struct sdr_dictionary category; /* texts behind SDR_CATEGORY_BIT */
    struct sdr_dictionary labels;   /* distinct labels; text labels: label[] is the number here */
    float *label_value;             /* numeric labels: value of labels.text[i] */
    struct sdr_label_finder label_finder;
    bool text_labels, many_labels;
    uint64_t lines; /* lines in the chunk, for the next chunk's line numbers */
    /* The first error: line counts from 1 within the chunk, column from 1; 0: no such place. */
    enum sdr_status status;
    uint64_t error_line, error_column;
    char error[240];
};
/* Makes entry_room ≥ entries and row_room ≥ rows, in all; keeps what is there. */
enum sdr_status sdr_piece_reserve(struct sdr_piece *piece, uint64_t entries, uint64_t rows);
void sdr_piece_clear(struct sdr_piece *piece); /* empty, memory kept */
void sdr_piece_free(struct sdr_piece *piece);
/* Records the first error and returns SDR_BAD_DATA. */
enum sdr_status sdr_piece_fail(struct sdr_piece *piece, uint64_t line, uint64_t column,
                               const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Labels: note the distinct ones with the text they had (NULL: as the number prints). Cheap when
   the value repeats. A whole number that a float cannot hold fails at line and column. */
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
/* Fills up to count bytes; *got < count only at the end. A broken archive is SDR_BAD_DATA. */
enum sdr_status sdr_source_read(struct sdr_source *source, void *bytes, size_t count, size_t *got);
enum { SDR_HEAD_BYTES = 1 << 16 };
/* The first SDR_HEAD_BYTES, or all there are, without taking them; borrowed until the next read or
   peek. */
enum sdr_status sdr_source_peek(struct sdr_source *source, const char **bytes, size_t *count);
/* The same with at least `wanted` bytes: *count < wanted only if the source ends there. Only before
   the first read. */
enum sdr_status sdr_source_peek_more(struct sdr_source *source, size_t wanted, const char **bytes,
                                     size_t *count);
const char *sdr_source_name(const struct sdr_source *source); /* "<stdin>" for "-" */
uint64_t sdr_source_taken(const struct sdr_source *source);   /* compressed bytes so far */
void sdr_source_close(struct sdr_source *source);

/* Reads the rest of a source into a region; refuses nothing but what the source refuses. */
enum sdr_status sdr_source_rest(struct sdr_source *source, struct sdr_region *bytes);
/* The most that sdr_source_rest unpacks of a compressed file; 0: no limit. */
void sdr_source_limit(struct sdr_source *source, uint64_t bytes);

/* ---- a format at work: see struct sdr_format in plugin.h ---- */
struct sdr_reading {
    const struct sdr_data_options *options;
    const struct sdr_schema *known; /* NULL: find it out */
    struct sdr_schema *schema;  /* what was found; open() fills what it can tell from the head */
    const void *format_options; /* the format's own options struct */
    const char *path;           /* of the file at hand */
    bool head_cut;              /* the file goes on behind the head that open() is given */
    /* Set by open(): the first line names the columns and is no row; --categories lists the label. */
    bool header, labels_are_classes;
    struct sdr_builder *builder; /* where whole-file formats put their pieces */
};

/* ---- the builder: pieces in file order → rows ---- */
struct sdr_builder;
enum sdr_layout_wish { SDR_LAYOUT_SPARSE, SDR_LAYOUT_BY_DENSITY };
/* schema is borrowed and completed by the builder. With options->memory the data goes to files. */
enum sdr_status sdr_builder_create(const struct sdr_data_options *options,
                                   const struct sdr_schema *known, struct sdr_schema *schema,
                                   enum sdr_layout_wish layout, struct sdr_builder **builder);
enum sdr_status sdr_builder_add(struct sdr_builder *builder, struct sdr_piece *piece);
/* For formats that have dense rows in hand: count × features floats, and labels (NULL: none). */
enum sdr_status sdr_builder_add_dense(struct sdr_builder *builder, const float *x, uint64_t count,
                                      uint32_t features, const float *label, const float *weight);
/* Data that streams becomes a cache file: under this path and key if they are set (borrowed until
   finish), else under a temporary name, removed at once. */
void sdr_builder_keep(struct sdr_builder *builder, const char *path, const char *key);
/* Completes data (means, index width, dense layout). The builder is destroyed in every case. */
enum sdr_status sdr_builder_finish(struct sdr_builder *builder, struct sdr_data *data);
void sdr_builder_destroy(struct sdr_builder *builder);

/* ---- cache files ---- */
enum sdr_status sdr_cache_write(const struct sdr_data *data, const char *path);
/* Maps a cache file. SDR_BAD_FILE with the reason if it is damaged or of another version;
   if key is not NULL and differs from the stored one, SDR_BAD_FILE "is stale". */
enum sdr_status sdr_cache_map(const char *path, const char *key, struct sdr_data **data);

#endif

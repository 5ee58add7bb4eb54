/* Generated tables: blocks of rows are generated and formatted in parallel, and written in
   order. */
#include "data/generate.h"
#include "base/file.h"
#include "base/thread.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK_ROWS = 512, SLOTS = 16 };
enum output { OUTPUT_LIBSVM, OUTPUT_CSV, OUTPUT_NPY, OUTPUT_TRIPLES };

/* A block in progress. */
struct slot {
    struct sdr_generate_row row;
    struct sdr_region bytes, labels;
};
struct generating {
    const struct sdr_generate_table *table;
    enum output output;
    uint64_t first; /* first row of the wave */
    struct slot slot[SLOTS];
};

static char *put_whole(char *p, uint64_t value)
{
    char digits[24];
    int n = 0;
    do
        digits[n++] = (char)('0' + value % 10);
    while (value /= 10);
    while (n)
        *p++ = digits[--n];
    return p;
}

/* Fixed point with five decimals; numbers too large for that are printed with all digits of a
   float. */
static char *put_number(char *p, double value, bool whole)
{
    if (value < 0) {
        *p++ = '-';
        value = -value;
    }
    if (whole)
        return put_whole(p, (uint64_t)(value + 0.5));
    if (!(value < 1e12))
        return p + sdr_print_double(p, value);
    uint64_t units = (uint64_t)(value * 100000 + 0.5);
    p = put_whole(p, units / 100000);
    *p++ = '.';
    for (uint64_t place = 10000; place; place /= 10)
        *p++ = (char)('0' + units / place % 10);
    return p;
}

static char *put_label(char *p, enum sdr_generate_label kind, float label)
{
    if (kind == SDR_LABEL_NUMBER)
        return put_number(p, label, false);
    if (kind == SDR_LABEL_SIGN)
        *p++ = label > 0 ? '+' : '-';
    return put_whole(p, kind == SDR_LABEL_SIGN ? 1 : (uint64_t)label);
}

static char *put_sparse(char *p, const struct sdr_generate_table *table,
                        const struct sdr_generate_row *row)
{
    bool dense = table->most == 0;
    p = put_label(p, table->labels, row->label);
    for (uint32_t k = 0; k < row->count; k++) {
        *p++ = ' ';
        p = put_whole(p, (dense ? k : row->index[k]) + (uint64_t)1);
        *p++ = ':';
        p = put_number(p, row->value[k], table->whole);
    }
    *p++ = '\n';
    return p;
}

static char *put_cells(char *p, const struct sdr_generate_table *table,
                       const struct sdr_generate_row *row)
{
    bool dense = table->most == 0;
    uint32_t k = 0;
    for (uint32_t j = 0; j < table->features; j++) {
        bool present = k < row->count && (dense || row->index[k] == j);
        p = put_number(p, present ? row->value[k] : 0, table->whole || !present);
        k += present;
        *p++ = ',';
    }
    p = put_label(p, table->labels, row->label);
    *p++ = '\n';
    return p;
}

static char *put_triples(char *p, const struct sdr_generate_table *table, uint64_t number,
                         const struct sdr_generate_row *row)
{
    for (uint32_t k = 0; k < row->count; k++) {
        p = put_whole(p, number + 1);
        *p++ = ' ';
        p = put_whole(p, row->index[k] + (uint64_t)1);
        *p++ = ' ';
        p = put_number(p, row->value[k], table->whole);
        *p++ = '\n';
    }
    return p;
}

/* NPY: the row as in memory (little-endian, as all supported machines). */
static void put_floats(unsigned char *to, const struct sdr_generate_table *table,
                       const struct sdr_generate_row *row)
{
    if (table->most == 0) {
        memcpy(to, row->value, table->features * sizeof(float));
        return;
    }
    memset(to, 0, table->features * sizeof(float));
    for (uint32_t k = 0; k < row->count; k++)
        memcpy(to + row->index[k] * sizeof(float), &row->value[k], sizeof(float));
}

static enum sdr_status make_row(struct generating *work, struct slot *slot, uint64_t number)
{
    enum { NUMBER_MOST = 48 }; /* bytes of " index:value" or of one cell */
    const struct sdr_generate_table *table = work->table;
    bool every = work->output == OUTPUT_CSV || work->output == OUTPUT_NPY; /* zeros too */
    uint64_t cells = table->most && !every ? table->most : table->features;
    SDR_TRY(sdr_region_reserve(&slot->bytes, (cells + 2) * NUMBER_MOST));
    slot->row.count = table->most ? 0 : table->features;
    table->make(table->truth, number, &slot->row);
    char *p = (char *)slot->bytes.bytes + slot->bytes.used, *begin = p;
    switch (work->output) {
    case OUTPUT_LIBSVM: p = put_sparse(p, table, &slot->row); break;
    case OUTPUT_CSV: p = put_cells(p, table, &slot->row); break;
    case OUTPUT_TRIPLES: p = put_triples(p, table, number, &slot->row); break;
    case OUTPUT_NPY:
        put_floats((unsigned char *)p, table, &slot->row);
        p += table->features * sizeof(float);
        SDR_TRY(sdr_region_append(&slot->labels, &slot->row.label, sizeof slot->row.label));
        break;
    }
    slot->bytes.used += (size_t)(p - begin);
    return SDR_OK;
}

static enum sdr_status make_block(void *context, size_t index)
{
    struct generating *work = context;
    struct slot *slot = &work->slot[index];
    uint64_t first = work->first + index * BLOCK_ROWS, end = first + BLOCK_ROWS;
    if (end > work->table->rows)
        end = work->table->rows;
    slot->bytes.used = slot->labels.used = 0;
    for (uint64_t row = first; row < end; row++)
        SDR_TRY(make_row(work, slot, row));
    return SDR_OK;
}

static enum sdr_status prepare_slots(struct generating *work)
{
    const struct sdr_generate_table *table = work->table;
    size_t cells = table->most ? table->most : table->features;
    for (int i = 0; i < SLOTS; i++) {
        struct sdr_generate_row *row = &work->slot[i].row;
        SDR_TRY(sdr_allocate(&row->index, table->most, sizeof *row->index, "a generated row"));
        SDR_TRY(sdr_allocate(&row->value, cells, sizeof *row->value, "a generated row"));
        SDR_TRY(sdr_allocate(&row->scratch, table->scratch, 1, "a generated row"));
    }
    return SDR_OK;
}

static void free_slots(struct generating *work)
{
    for (int i = 0; i < SLOTS; i++) {
        sdr_release(work->slot[i].row.index);
        sdr_release(work->slot[i].row.value);
        sdr_release(work->slot[i].row.scratch);
        sdr_region_free(&work->slot[i].bytes);
        sdr_region_free(&work->slot[i].labels);
    }
}

static enum sdr_status write_npy_head(struct sdr_writer *writer, uint64_t rows, uint32_t columns)
{
    char head[128], *p = head + 10;
    memcpy(head, "\x93NUMPY\1\0\x76\0", 10);
    memset(p, ' ', 117);
    int length = columns ? snprintf(p, 118,
                                    "{'descr': '<f4', 'fortran_order': False, "
                                    "'shape': (%llu, %u), }",
                                    (unsigned long long)rows, columns)
                         : snprintf(p, 118,
                                    "{'descr': '<f4', 'fortran_order': False, "
                                    "'shape': (%llu,), }",
                                    (unsigned long long)rows);
    p[length] = ' ';
    head[127] = '\n';
    return sdr_writer_add(writer, head, sizeof head);
}

static enum sdr_status write_csv_head(struct sdr_writer *writer, uint32_t features)
{
    for (uint32_t j = 1; j <= features; j++) {
        char name[24];
        int length = snprintf(name, sizeof name, "f%u,", j);
        SDR_TRY(sdr_writer_add(writer, name, (size_t)length));
    }
    return sdr_writer_add(writer, "label\n", 6);
}

static enum sdr_status write_rows(struct generating *work, struct sdr_writer *writer,
                                  struct sdr_writer *labels)
{
    const struct sdr_generate_table *table = work->table;
    int threads = sdr_thread_limit();
    if (work->output == OUTPUT_CSV)
        SDR_TRY(write_csv_head(writer, table->features));
    if (work->output == OUTPUT_NPY) {
        SDR_TRY(write_npy_head(writer, table->rows, table->features));
        SDR_TRY(write_npy_head(labels, table->rows, 0));
    }
    for (work->first = 0; work->first < table->rows; work->first += BLOCK_ROWS * SLOTS) {
        uint64_t blocks = (table->rows - work->first + BLOCK_ROWS - 1) / BLOCK_ROWS;
        size_t count = blocks < SLOTS ? (size_t)blocks : SLOTS;
        SDR_TRY(sdr_parallel(threads, count, make_block, work));
        for (size_t i = 0; i < count; i++) {
            struct slot *slot = &work->slot[i];
            SDR_TRY(sdr_writer_add(writer, slot->bytes.bytes, slot->bytes.used));
            if (labels)
                SDR_TRY(sdr_writer_add(labels, slot->labels.bytes, slot->labels.used));
        }
    }
    return SDR_OK;
}

static enum sdr_status find_output(const struct sdr_generate_table *table, const char *path,
                                   enum output *output)
{
    const char *extension = sdr_path_extension(path);
    if (strcmp(extension, "csv") == 0)
        *output = OUTPUT_CSV;
    else if (strcmp(extension, "npy") == 0)
        *output = OUTPUT_NPY;
    else if (strcmp(extension, "txt") == 0 && table->triples)
        *output = OUTPUT_TRIPLES;
    else if (!*extension || strcmp(extension, "svm") == 0 || strcmp(extension, "libsvm") == 0 ||
             strcmp(extension, "txt") == 0)
        *output = OUTPUT_LIBSVM;
    else
        return sdr_fail(SDR_USAGE, "cannot generate '.%s' files (use .svm, .csv or .npy)",
                        extension);
    return SDR_OK;
}

enum sdr_status sdr_generate_table(const struct sdr_generate_table *table, const char *path)
{
    struct sdr_writer *writer = NULL, *labels = NULL;
    struct generating *work = NULL;
    char *labels_path = NULL;
    enum sdr_status status;
    enum output output = OUTPUT_LIBSVM;
    SDR_TRY(find_output(table, path, &output));
    SDR_TRY(sdr_allocate(&work, 1, sizeof *work, "a generator"));
    work->table = table;
    work->output = output;
    SDR_CHECK(prepare_slots(work));
    SDR_CHECK(sdr_writer_open(path, &writer));
    if (output == OUTPUT_NPY) {
        SDR_CHECK(sdr_path_with(path, ".labels.npy", &labels_path));
        SDR_CHECK(sdr_writer_open(labels_path, &labels));
    }
    SDR_CHECK(write_rows(work, writer, labels));
    if (labels) {
        struct sdr_writer *finished = labels;
        labels = NULL; /* commit frees it, also on failure */
        SDR_CHECK(sdr_writer_commit(finished));
    }
    status = sdr_writer_commit(writer);
    writer = NULL;
cleanup:
    sdr_writer_abandon(writer);
    sdr_writer_abandon(labels);
    free_slots(work);
    sdr_release(work);
    sdr_release(labels_path);
    return status;
}

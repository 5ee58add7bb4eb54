#include "data/label_file.h"
#include "data/array.h"
#include "data/token.h"

#include <math.h>
#include <string.h>

static enum sdr_status parse_array(struct sdr_label_file *labels, const struct sdr_array *array,
                                   const unsigned char *bytes, size_t count)
{
    size_t size = sdr_array_size(array->type);
    uint64_t numbers = array->rows * array->width;
    if (numbers != array->rows)
        return sdr_fail(SDR_BAD_DATA, "%s: labels must be one column, not %llu", labels->path,
                        (unsigned long long)array->width);
    if (numbers != (count - array->header) / size || (count - array->header) % size)
        return sdr_fail(
            SDR_BAD_DATA, "%s: %s: its header promises %llu labels, it has %llu", labels->path,
            numbers > (count - array->header) / size ? "truncated" : "damaged",
            (unsigned long long)numbers, (unsigned long long)((count - array->header) / size));
    SDR_TRY(sdr_allocate(&labels->value, numbers, sizeof *labels->value, "the labels"));
    sdr_array_floats(array, bytes + array->header, numbers, labels->value);
    labels->count = numbers;
    for (uint64_t i = 0; i < numbers; i++) {
        float value = labels->value[i];
        int64_t whole;
        if (!isfinite(value))
            return sdr_fail(SDR_BAD_DATA, "%s: label %llu is not finite", labels->path,
                            (unsigned long long)i + 1);
        if (!sdr_array_is_whole(array->type) || fabsf(value) < 0x1p24f)
            continue;
        sdr_array_integers(array, bytes + array->header + i * size, 1, &whole);
        if (fabsf(value) >= 0x1p62f || (int64_t)value != whole)
            return sdr_fail(SDR_BAD_DATA, "%s: label %llu is too large to be kept exactly",
                            labels->path, (unsigned long long)i + 1);
    }
    return SDR_OK;
}

/* A line without surrounding blanks. */
struct line {
    const char *text, *end;
    uint64_t number;
};

static bool next_line(const char **at, const char *end, struct line *line)
{
    while (*at < end) {
        line->text = sdr_skip_blanks(*at, end);
        line->number++;
        *at = sdr_next_line(*at, end);
        line->end = *at;
        while (line->end > line->text &&
               (sdr_is_blank(line->end[-1]) || line->end[-1] == '\n' || line->end[-1] == '\r'))
            line->end--;
        if (line->end > line->text)
            return true;
    }
    return false;
}

static enum sdr_status add_text_label(struct sdr_label_file *labels, const struct line *line,
                                      bool text)
{
    float *value = &labels->value[labels->count++];
    const char *why;
    uint32_t number;
    if (!text) {
        char quote[SDR_QUOTE_BYTES];
        if (sdr_token_float(line->text, line->end, value, &why)) {
            if (sdr_label_exact(*value, line->text, (size_t)(line->end - line->text)))
                return SDR_OK;
            why = "is too large to be kept exactly";
        }
        return sdr_fail(SDR_BAD_DATA, "%s:%llu:1: label '%s' %s", labels->path,
                        (unsigned long long)line->number, sdr_quote(quote, line->text, line->end),
                        why);
    }
    SDR_TRY(sdr_dictionary_find(&labels->texts, line->text, (size_t)(line->end - line->text), true,
                                &number));
    if (number > 1 << 24)
        return sdr_fail(SDR_BAD_DATA, "%s: more than 16777216 different labels", labels->path);
    *value = (float)number;
    return SDR_OK;
}

/* One label per line; texts if the first is not a number or the model's labels are texts. The
   builder reports texts where the model has numbers. */
static enum sdr_status parse_lines(struct sdr_label_file *labels, const struct sdr_schema *known,
                                   const char *at, const char *end)
{
    struct line line = {.number = 0};
    float value;
    const char *why, *first = at;
    uint64_t lines = 1;
    for (const char *p = at; p < end; p++)
        lines += *p == '\n';
    SDR_TRY(sdr_allocate(&labels->value, lines, sizeof *labels->value, "the labels"));
    if (known && known->text_labels)
        labels->is_text = true;
    else if (next_line(&first, end, &line))
        labels->is_text = !sdr_token_float(line.text, line.end, &value, &why);
    line.number = 0;
    while (next_line(&at, end, &line))
        SDR_TRY(add_text_label(labels, &line, labels->is_text));
    return SDR_OK;
}

/* Parses exactly `count` numbers separated by blanks. */
static bool line_numbers(const struct line *line, double *number, int count)
{
    const char *at = line->text;
    for (int i = 0; i < count; i++) {
        at = sdr_scan_double(at, line->end, &number[i]);
        if (!at || !isfinite(number[i]))
            return false;
        at = sdr_skip_blanks(at, line->end);
    }
    return at == line->end;
}

/* A Matrix Market column: "array" has one number per line, "coordinate" has lines "row 1
   number". */
static enum sdr_status parse_matrix(struct sdr_label_file *labels, const char *at, const char *end)
{
    struct line line = {.number = 0};
    double number[3] = {0};
    bool more = next_line(&at, end, &line), sized = false;
    bool coordinate =
        line.end - line.text > 24 && memcmp(line.text + 15, "matrix coordinate", 17) == 0;
    int size = coordinate ? 3 : 2;
    uint64_t seen = 0;
    while (more && (more = next_line(&at, end, &line))) {
        if (*line.text == '%')
            continue;
        if (!line_numbers(&line, number, sized && !coordinate ? 1 : size))
            break;
        if (!sized) {
            if (number[1] != 1 || number[0] < 1 || number[0] > 64.0 * (double)(end - at))
                return sdr_fail(SDR_BAD_DATA, "%s:%llu:1: labels must be one column of numbers",
                                labels->path, (unsigned long long)line.number);
            labels->count = (uint64_t)number[0];
            SDR_TRY(
                sdr_allocate(&labels->value, labels->count, sizeof *labels->value, "the labels"));
            sized = true;
            continue;
        }
        double row = coordinate ? number[0] - 1 : (double)seen;
        double value = coordinate ? number[2] : number[0];
        if (!(row >= 0 && row < (double)labels->count) || (coordinate && number[1] != 1) ||
            !isfinite((float)value) ||
            (fabs(value) >= 0x1p24 && value == floor(value) && value != (double)(float)value))
            break;
        labels->value[(uint64_t)row] = (float)value;
        seen++;
    }
    if (more)
        return sdr_fail(SDR_BAD_DATA, "%s:%llu:1: the line does not fit a column of labels",
                        labels->path, (unsigned long long)line.number);
    if (!sized || (!coordinate && seen != labels->count))
        return sdr_fail(SDR_BAD_DATA, "%s: truncated: %llu labels of %llu", labels->path,
                        (unsigned long long)seen, (unsigned long long)labels->count);
    return SDR_OK;
}

static enum sdr_status parse_bytes(struct sdr_label_file *labels, const struct sdr_schema *known,
                                   const struct sdr_region *region)
{
    const char *bytes = region->used ? (const char *)region->bytes : "";
    size_t count = region->used;
    struct sdr_array array;
    if (sdr_npy_is(bytes, count)) {
        SDR_TRY(sdr_npy_header(labels->path, bytes, count, &array));
        return parse_array(labels, &array, region->bytes, count);
    }
    if (sdr_idx_is(bytes, count)) {
        SDR_TRY(sdr_idx_header(labels->path, bytes, count, &array));
        return parse_array(labels, &array, region->bytes, count);
    }
    if (count && memchr(bytes, 0, count))
        return sdr_fail(SDR_BAD_DATA, "%s: labels must be NPY, IDX or text", labels->path);
    if (count > 16 && memcmp(bytes, "%%MatrixMarket ", 15) == 0)
        return parse_matrix(labels, bytes, bytes + count);
    return parse_lines(labels, known, bytes, bytes + count);
}

enum sdr_status sdr_label_file_parse(const char *name, const struct sdr_schema *known,
                                     const struct sdr_region *bytes, struct sdr_label_file *labels)
{
    *labels = (struct sdr_label_file){0};
    enum sdr_status status = sdr_copy_string(&labels->path, name);
    if (status == SDR_OK)
        status = parse_bytes(labels, known, bytes);
    if (status != SDR_OK)
        sdr_label_file_free(labels);
    return status;
}

enum sdr_status sdr_label_file_read(const struct sdr_data_options *options,
                                    const struct sdr_schema *known, struct sdr_label_file *labels)
{
    struct sdr_source *source = NULL;
    struct sdr_region bytes = {0};
    enum sdr_status status;
    *labels = (struct sdr_label_file){0};
    if (!options->labels)
        return SDR_OK;
    SDR_CHECK(sdr_source_open(options->labels, &source));
    sdr_source_limit(source, options->memory);
    SDR_CHECK(sdr_source_rest(source, &bytes));
    status = sdr_label_file_parse(options->labels, known, &bytes, labels);
cleanup:
    sdr_source_close(source);
    sdr_region_free(&bytes);
    return status;
}

void sdr_label_file_free(struct sdr_label_file *labels)
{
    sdr_release(labels->path);
    sdr_release(labels->value);
    sdr_dictionary_free(&labels->texts);
    *labels = (struct sdr_label_file){0};
}

enum sdr_status sdr_label_file_check(struct sdr_label_file *labels, const char *name, uint64_t rows)
{
    if (!labels->path)
        return SDR_OK;
    if (labels->used)
        return sdr_fail(SDR_USAGE, "--labels belongs to one data file, '%s' is another", name);
    if (labels->count != rows)
        return sdr_fail(SDR_BAD_DATA, "%s: it has %llu labels, but %s has %llu rows", labels->path,
                        (unsigned long long)labels->count, name, (unsigned long long)rows);
    labels->used = rows;
    return SDR_OK;
}

enum sdr_status sdr_label_file_put(const struct sdr_label_file *labels, uint64_t row,
                                   struct sdr_piece *piece, uint64_t at)
{
    if (row >= labels->count) {
        piece->label[at] = (float)SDR_MISSING_ROW_LABEL;
        piece->lacks_labels = true;
        return SDR_OK;
    }
    if (labels->is_text) {
        uint32_t number = (uint32_t)labels->value[row];
        return sdr_piece_label_text(piece, labels->texts.text[number], labels->texts.length[number],
                                    &piece->label[at]);
    }
    piece->label[at] = labels->value[row];
    return sdr_piece_label_number(piece, labels->value[row], NULL, 0);
}

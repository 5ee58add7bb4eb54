/* Finds columns of a table that are rarely meant as features:

   constant     one value in every row
   counting     a column of numbers that counts the rows from 0 or 1: 1, 2, 3 …; in regression only if
                it does not correlate with the label (|r| <= 0.5): it may be the time
   leak         a column that determines the label: each of its values occurs with one label only

   One pass over the rows, which ends when no column is suspect any more: in ordinary data after a
   few rows. Of streamed data only the first block is checked.

   A column may determine the label by chance. Then every row with a repeated value has the label of
   the earlier row, with probability at most 1/2 for any label but the most frequent. With r such
   rows the chance is below 2^-r per column; r >= 10 + log2(columns) is required, so fewer than one
   table in a thousand gets a note by chance. */
#include "data/column_notes.h"

#include <math.h>
#include <string.h>

enum {
    VALUES_MOST = 32,     /* distinct numbers of a column that may determine the label */
    TABLE_MOST = 1 << 21, /* entries of the tables of numbers, over all columns */
    REPEATS_LEAST = 10,
    BLOCK = 256 /* rows between two updates of the list of suspects */
};
static const uint32_t none = UINT32_MAX;

/* A number of a column with its label. */
struct value {
    float x;
    uint32_t class;
};

struct search {
    struct sdr_data *data;
    uint64_t rows;               /* rows to check */
    struct sdr_suspect *suspect; /* one per column of the schema */
    uint32_t *column;            /* feature → column, or none */
    uint32_t *text_class;        /* category → class of its label; none: not seen yet */
    struct value *value;         /* value_most per column */
    uint32_t value_most;
    uint32_t *live; /* features of columns still suspect */
    uint32_t live_count;
    struct sdr_label_finder finder;
    uint32_t classes; /* 0: labels are not listed */
    uint64_t *class_rows;
    uint64_t label_sum, label_squares, labels_not_zero;
};

static bool is_suspect(const struct sdr_suspect *s)
{
    return s->constant || s->counts || s->copies || s->determines;
}

/* ---- preparation ---- */

/* The column of a category text "column=value"; the name itself may contain '='. */
static uint32_t column_of_text(const struct sdr_dictionary *names, const uint32_t *column_of_name,
                               const char *text, size_t length)
{
    for (const char *p = text; (p = memchr(p, '=', length - (size_t)(p - text))); p++) {
        uint32_t name = sdr_dictionary_number(names, text, (size_t)(p - text));
        if (name != UINT32_MAX)
            return column_of_name[name];
    }
    return none;
}

static enum sdr_status map_texts(struct search *n)
{
    const struct sdr_schema *schema = &n->data->schema;
    struct sdr_dictionary names = {0};
    uint32_t *column_of_name, number;
    enum sdr_status status;
    SDR_TRY(sdr_allocate(&column_of_name, schema->columns, sizeof *column_of_name, "the columns"));
    for (uint32_t i = 0; i < schema->columns; i++) {
        const struct sdr_column *column = &schema->column[i];
        if (column->kind != SDR_COLUMN_CATEGORY)
            continue;
        SDR_CHECK(sdr_dictionary_find(&names, column->name, strlen(column->name), true, &number));
        column_of_name[number] = i;
    }
    for (uint32_t k = 0; k < schema->category.count; k++) {
        uint32_t column = column_of_text(&names, column_of_name, schema->category.text[k],
                                         schema->category.length[k]);
        n->column[schema->numbers + k] = column;
        n->text_class[k] = none;
        if (column == none)
            continue;
        n->suspect[column].values++;
        n->suspect[column].text = k;
    }
    status = SDR_OK;
cleanup:
    sdr_dictionary_free(&names);
    sdr_release(column_of_name);
    return status;
}

/* Returns `none` only if memory ran out, which the first pass over the labels detects. */
static uint32_t class_of(struct search *n, float label)
{
    struct sdr_schema *schema = &n->data->schema;
    uint32_t number;
    if (!n->classes)
        return 0;
    if (schema->text_labels)
        return label >= 0 && label < (float)n->classes ? (uint32_t)label : 0;
    if (sdr_label_find(&n->finder, &schema->labels, &schema->label_value, label, NULL, 0,
                       &number) != SDR_OK)
        return none;
    return number < n->classes ? number : 0;
}

static enum sdr_status count_labels(struct search *n)
{
    const struct sdr_schema *schema = &n->data->schema;
    const float *label = n->data->rows.label;
    if (!label)
        return SDR_OK;
    n->classes = schema->many_labels ? 0 : schema->labels.count;
    SDR_TRY(sdr_allocate(&n->class_rows, n->classes, sizeof *n->class_rows, "the labels"));
    for (uint64_t r = 0; r < n->rows; r++) {
        uint64_t class = class_of(n, label[r]);
        if (class == none)
            return SDR_RUNTIME;
        n->labels_not_zero += label[r] != 0;
        n->label_sum += class;
        n->label_squares += class * class;
        if (n->classes)
            n->class_rows[class]++;
    }
    return SDR_OK;
}

static void suspect_columns(struct search *n)
{
    const struct sdr_schema *schema = &n->data->schema;
    bool classes = n->classes >= 2, numbers = n->data->rows.label && !schema->text_labels;
    for (uint32_t i = 0; i < schema->columns; i++) {
        struct sdr_suspect *s = &n->suspect[i];
        s->category = schema->column[i].kind == SDR_COLUMN_CATEGORY;
        if (schema->column[i].kind == SDR_COLUMN_NUMBER) {
            n->column[schema->column[i].feature] = i;
            s->constant = s->counts = true;
            s->determines = classes && n->classes <= n->value_most;
            s->copies = numbers && n->classes != 1 && !s->determines;
        } else if (s->category) {
            s->constant = s->values == 1;
            s->determines = classes && s->values > 1 && s->values + REPEATS_LEAST < n->rows;
        }
    }
}

static enum sdr_status prepare(struct search *n)
{
    const struct sdr_schema *schema = &n->data->schema;
    uint32_t most = TABLE_MOST / schema->columns;
    n->value_most = most > VALUES_MOST ? VALUES_MOST : most < 4 ? 4 : most;
    SDR_TRY(sdr_allocate(&n->column, schema->features, sizeof *n->column, "the columns"));
    SDR_TRY(sdr_allocate(&n->live, schema->features, sizeof *n->live, "the columns"));
    SDR_TRY(
        sdr_allocate(&n->text_class, schema->category.count, sizeof *n->text_class, "the columns"));
    memset(n->column, 0xFF, schema->features * sizeof *n->column);
    SDR_TRY(map_texts(n));
    SDR_TRY(count_labels(n));
    suspect_columns(n);
    if (n->classes >= 2 && n->classes <= n->value_most)
        SDR_TRY(sdr_allocate(&n->value, (size_t)schema->columns * n->value_most, sizeof *n->value,
                             "the columns"));
    return SDR_OK;
}

/* ---- the pass ---- */

/* Whether the number has occurred with this label only. */
static bool agrees(const struct search *n, struct sdr_suspect *s, float x, uint32_t class)
{
    struct value *value = n->value + (size_t)(s - n->suspect) * n->value_most;
    for (uint32_t i = 0; i < s->values; i++)
        if (value[i].x == x)
            return value[i].class == class;
    if (s->values == n->value_most)
        return false;
    value[s->values++] = (struct value){x, class};
    return true;
}

static void see_number(const struct search *n, struct sdr_suspect *s, float x, uint64_t row,
                       float label, uint32_t class)
{
    if (s->present == 0) {
        s->first = x;
        s->start = (double)x - (double)row;
        s->counts &= s->start == 0 || s->start == 1;
    }
    s->constant &= s->present == row && x == s->first; /* false if an earlier row had a zero */
    s->counts &= x == (float)(s->start + (double)row) && s->present + (s->start == 0) == row;
    s->copies &= x == label;
    if (s->determines)
        s->determines = agrees(n, s, x, class);
}

static void see(struct search *n, uint32_t feature, float x, uint64_t row, float label,
                uint32_t class)
{
    struct sdr_suspect *s = &n->suspect[n->column[feature]];
    if (s->category) {
        uint32_t *of_text = &n->text_class[feature - n->data->schema.numbers];
        *of_text = *of_text == none ? class : *of_text;
        s->determines &= *of_text == class;
    } else {
        see_number(n, s, x, row, label, class);
    }
    s->present++;
    s->sum += class;
    s->squares += (uint64_t) class * class;
}

static void list_live(struct search *n)
{
    n->live_count = 0;
    for (uint32_t i = 0; i < n->data->schema.features; i++) {
        if (n->column[i] != none && !is_suspect(&n->suspect[n->column[i]]))
            n->column[i] = none;
        if (n->column[i] != none)
            n->live[n->live_count++] = i;
    }
}

static void pass(struct search *n)
{
    const struct sdr_rows *rows = &n->data->rows;
    for (uint64_t r = 0; r < n->rows; r++) {
        if (r % BLOCK == 0)
            list_live(n);
        if (n->live_count == 0)
            return;
        float label = rows->label ? rows->label[r] : 0;
        uint32_t class = rows->label ? class_of(n, label) : 0;
        const float *dense = rows->dense ? sdr_dense_row(rows, r) : NULL;
        for (uint32_t i = 0; dense && i < n->live_count; i++)
            if (dense[n->live[i]] != 0)
                see(n, n->live[i], dense[n->live[i]], r, label, class);
        struct sdr_sparse_row sparse = {0};
        if (!dense)
            sparse = sdr_sparse_row(rows, r);
        for (uint32_t i = 0; i < sparse.n; i++) {
            uint32_t feature = sdr_row_index(&sparse, i);
            if (n->column[feature] != none)
                see(n, feature, sparse.x[i], r, label, class);
        }
    }
}

/* ---- the verdict ---- */

/* Rows without an entry have the value 0, which must occur with one label only too. */
static bool zeros_agree(const struct search *n, struct sdr_suspect *s, uint32_t major)
{
    uint64_t zeros = n->rows - s->present;
    if (zeros == 0)
        return true;
    uint64_t sum = n->label_sum - s->sum, squares = n->label_squares - s->squares;
    uint64_t class = sum / zeros;
    s->minor += class != major;
    return sum % zeros == 0 && squares == class * class * zeros;
}

static void judge_leaks(struct search *n)
{
    const struct sdr_schema *schema = &n->data->schema;
    uint32_t major = 0;
    for (uint32_t k = 1; k < n->classes; k++)
        major = n->class_rows[k] > n->class_rows[major] ? k : major;
    for (uint32_t k = 0; k < schema->category.count; k++) {
        uint32_t column = n->column[schema->numbers + k];
        if (column != none && n->text_class[k] != none)
            n->suspect[column].minor += n->text_class[k] != major;
    }
    for (uint32_t i = 0; i < schema->columns; i++) {
        struct sdr_suspect *s = &n->suspect[i];
        const struct value *value = n->value + (size_t)i * n->value_most;
        if (!s->determines)
            continue;
        for (uint32_t k = 0; !s->category && k < s->values; k++)
            s->minor += value[k].class != major;
        uint64_t repeats = n->rows - n->class_rows[major];
        s->determines = (s->category ? s->present == n->rows : zeros_agree(n, s, major)) &&
                        repeats >= s->minor + REPEATS_LEAST + log2((double)schema->columns);
    }
}

/* Whether the labels are numbers to predict rather than classes: the rule of problem.c, except for
   its number of rows per class. */
static bool is_regression(const struct search *n)
{
    enum { CLASSES_MOST = 30 };
    const struct sdr_schema *schema = &n->data->schema;
    bool whole = true;
    if (!n->data->rows.label || schema->text_labels)
        return false;
    if (!n->classes || n->classes > CLASSES_MOST)
        return true;
    for (uint32_t k = 0; k < n->classes; k++)
        whole &= schema->label_value[k] == rintf(schema->label_value[k]);
    return n->classes > 2 && !whole;
}

/* Squared correlation of labels and row numbers. */
static double trend(const struct search *n)
{
    const float *label = n->data->rows.label;
    double middle = ((double)n->rows - 1) / 2, mean = 0, both = 0, labels = 0, places = 0;
    for (uint64_t r = 0; r < n->rows; r++)
        mean += label[r] / (double)n->rows;
    for (uint64_t r = 0; r < n->rows; r++) {
        double y = label[r] - mean, place = (double)r - middle;
        both += y * place;
        labels += y * y;
        places += place * place;
    }
    return labels > 0 ? both * both / labels / places : 0;
}

static void judge_counting(struct search *n)
{
    const double most = 0.5;
    bool any = false;
    for (uint32_t i = 0; i < n->data->schema.columns; i++) {
        struct sdr_suspect *s = &n->suspect[i];
        s->counts &= s->present && s->present + (s->start == 0) == n->rows;
        any |= s->counts;
    }
    if (any && is_regression(n) && trend(n) > most * most)
        for (uint32_t i = 0; i < n->data->schema.columns; i++)
            n->suspect[i].counts = false;
}

static void judge(struct search *n)
{
    judge_counting(n);
    if (n->classes >= 2)
        judge_leaks(n);
    for (uint32_t i = 0; i < n->data->schema.columns; i++) {
        struct sdr_suspect *s = &n->suspect[i];
        bool full = s->present == n->rows;
        s->constant &= n->rows == n->data->rows.count && (full || (!s->category && !s->present));
        s->copies &= s->present == n->labels_not_zero && !s->constant;
        s->determines |= s->copies;
    }
}

enum sdr_status sdr_suspects_find(struct sdr_data *data, struct sdr_suspect *suspect)
{
    struct search n = {.data = data, .suspect = suspect, .rows = data->rows.count};
    if (data->streams && data->stream_rows < n.rows)
        n.rows = data->stream_rows;
    enum sdr_status status = prepare(&n);
    if (status == SDR_OK) {
        pass(&n);
        judge(&n);
    }
    if (data->streams)
        sdr_data_done_with(data, 0, n.rows);
    sdr_release(n.column);
    sdr_release(n.text_class);
    sdr_release(n.value);
    sdr_release(n.live);
    sdr_release(n.class_rows);
    sdr_label_free(&n.finder);
    return status;
}

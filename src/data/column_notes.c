/* Notes about the columns of a new table that are rarely meant as features:

       constant     one value in every row
       id           a text column with (nearly) a text of its own for every row, or a column of
                    numbers that counts the rows
       leak         a column that determines the label: every value of it has one label only

   One pass over the rows as they were built, which ends as soon as no column is suspect any more:
   in ordinary data after a few rows. Of data that streams only the first block is looked at.

   A column with v values can determine the label by chance. Rows that repeat a value have the label
   of its first row with a probability of at most a half, if only values without the most frequent
   label are counted; so `repeats` of such rows are evidence of 2^-repeats against chance, and 10 +
   log2(columns) of them are asked for. */
#include "data/csv.h"
#include "data/read.h"

#include <math.h>
#include <string.h>

enum {
    ROWS_LEAST = 20,      /* fewer rows prove nothing */
    VALUES_MOST = 32,     /* different numbers of a column that may determine the label */
    TABLE_MOST = 1 << 21, /* entries of the tables of these numbers, all columns together */
    REPEATS_LEAST = 10,
    BLOCK = 256, /* rows between two looks at which columns are still suspect */
    LISTED_MOST = 5
};
static const uint32_t none = UINT32_MAX;

/* A number of a column, and the label that goes with it. */
struct value {
    float x;
    uint32_t class;
};

struct suspect {
    bool constant, counts, copies, determines; /* not yet disproved */
    bool category;
    uint64_t present;      /* rows with a number other than 0, or with a text */
    uint64_t sum, squares; /* of the class numbers of these rows */
    float first;           /* constant: the value */
    double start;          /* counts: the number of row 0 */
    uint32_t values;       /* number: in its table; category: different texts */
    uint32_t minor;        /* values whose label is not the most frequent one */
    uint32_t text;         /* category: one of its texts */
};

struct notes {
    const struct sdr_data_options *options;
    struct sdr_data *data;
    uint64_t rows;           /* looked at */
    struct suspect *suspect; /* one a column of the schema */
    uint32_t *column;        /* feature → column, or none */
    uint32_t *text_class;    /* category → its label's number, none: not seen */
    struct value *value;     /* value_most for every column */
    uint32_t value_most;
    uint32_t *live; /* features of columns that are still suspect */
    uint32_t live_count;
    struct sdr_label_finder finder;
    uint32_t classes; /* 0: labels are not listed */
    uint64_t *class_rows;
    uint64_t label_sum, label_squares, labels_not_zero;
};

static bool is_suspect(const struct suspect *s)
{
    return s->constant || s->counts || s->copies || s->determines;
}

/* ---- preparing ---- */

/* The column of a category text "column=value"; a name may have a '=' itself. */
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

static enum sdr_status map_texts(struct notes *n)
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

static uint32_t class_of(struct notes *n, float label)
{
    struct sdr_schema *schema = &n->data->schema;
    uint32_t number;
    if (!n->classes)
        return 0;
    if (schema->text_labels)
        return label >= 0 && label < (float)n->classes ? (uint32_t)label : 0;
    if (sdr_label_find(&n->finder, &schema->labels, &schema->label_value, label, NULL, 0,
                       &number) != SDR_OK)
        return 0;
    return number < n->classes ? number : 0;
}

static enum sdr_status count_labels(struct notes *n)
{
    const struct sdr_schema *schema = &n->data->schema;
    const float *label = n->data->rows.label;
    if (!label)
        return SDR_OK;
    n->classes = schema->many_labels ? 0 : schema->labels.count;
    SDR_TRY(sdr_allocate(&n->class_rows, n->classes, sizeof *n->class_rows, "the labels"));
    for (uint64_t r = 0; r < n->rows; r++) {
        uint64_t class = class_of(n, label[r]);
        n->labels_not_zero += label[r] != 0;
        n->label_sum += class;
        n->label_squares += class * class;
        if (n->classes)
            n->class_rows[class]++;
    }
    return SDR_OK;
}

static void suspect_columns(struct notes *n)
{
    const struct sdr_schema *schema = &n->data->schema;
    bool classes = n->classes >= 2, numbers = n->data->rows.label && !schema->text_labels;
    for (uint32_t i = 0; i < schema->columns; i++) {
        struct suspect *s = &n->suspect[i];
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

static enum sdr_status prepare(struct notes *n)
{
    const struct sdr_schema *schema = &n->data->schema;
    uint32_t most = TABLE_MOST / schema->columns;
    n->value_most = most > VALUES_MOST ? VALUES_MOST : most < 4 ? 4 : most;
    SDR_TRY(sdr_allocate(&n->suspect, schema->columns, sizeof *n->suspect, "the columns"));
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

/* Whether the number has had this label so far. */
static bool agrees(const struct notes *n, struct suspect *s, float x, uint32_t class)
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

static void see_number(const struct notes *n, struct suspect *s, float x, uint64_t row, float label,
                       uint32_t class)
{
    if (s->present == 0) {
        s->first = x;
        s->start = (double)x - (double)row;
        s->counts &= s->start >= 0 && s->start == floor(s->start);
    }
    s->constant &= s->present == row && x == s->first; /* else a row before it had a zero */
    s->counts &= x == (float)(s->start + (double)row) && s->present + (s->start == 0) == row;
    s->copies &= x == label;
    if (s->determines)
        s->determines = agrees(n, s, x, class);
}

static void see(struct notes *n, uint32_t feature, float x, uint64_t row, float label,
                uint32_t class)
{
    struct suspect *s = &n->suspect[n->column[feature]];
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

static void list_live(struct notes *n)
{
    n->live_count = 0;
    for (uint32_t i = 0; i < n->data->schema.features; i++) {
        if (n->column[i] != none && !is_suspect(&n->suspect[n->column[i]]))
            n->column[i] = none;
        if (n->column[i] != none)
            n->live[n->live_count++] = i;
    }
}

static void pass(struct notes *n)
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

/* Rows without an entry hold 0: they must have one label too. */
static bool zeros_agree(const struct notes *n, struct suspect *s, uint32_t major)
{
    uint64_t zeros = n->rows - s->present;
    if (zeros == 0)
        return true;
    uint64_t sum = n->label_sum - s->sum, squares = n->label_squares - s->squares;
    uint64_t class = sum / zeros;
    s->minor += class != major;
    return sum % zeros == 0 && squares == class * class * zeros;
}

static void judge_leaks(struct notes *n)
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
        struct suspect *s = &n->suspect[i];
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

static void judge(struct notes *n)
{
    if (n->classes >= 2)
        judge_leaks(n);
    for (uint32_t i = 0; i < n->data->schema.columns; i++) {
        struct suspect *s = &n->suspect[i];
        bool full = s->present == n->rows;
        s->constant &= n->rows == n->data->rows.count && (full || (!s->category && !s->present));
        s->counts &= s->present && s->present + (s->start == 0) == n->rows;
        s->copies &= s->present == n->labels_not_zero && !s->constant;
        s->determines |= s->copies;
    }
}

/* ---- the sentences ---- */

/* A name as one writes it behind --ignore in a shell. */
static void add_option_name(struct sdr_text *text, const char *name)
{
    bool listed = strpbrk(name, ",\""), quoted = strpbrk(name, " ,\"$&|;<>()*?[]#~!`\\{}");
    sdr_text_add(text, "%s%s", quoted ? "'" : "", listed ? "\"" : "");
    for (const char *p = name; *p; p++)
        sdr_text_add(text, *p == '"' ? "\"\"" : "%c", *p);
    sdr_text_add(text, "%s%s", listed ? "\"" : "", quoted ? "'" : "");
}

static bool is_constant(const struct notes *n, const struct suspect *s)
{
    (void)n;
    return s->constant;
}

static bool counts_rows(const struct notes *n, const struct suspect *s)
{
    (void)n;
    return s->counts;
}

static bool determines_label(const struct notes *n, const struct suspect *s)
{
    (void)n;
    return s->determines;
}

static bool is_text_id(const struct notes *n, const struct suspect *s)
{
    return s->category && (double)s->values >= 0.9 * (double)n->data->rows.count;
}

/* Columns to be named in one note. */
struct list {
    struct sdr_text names, option; /* "'a', 'b' and 3 more"; "a,b,..." as for --ignore */
    uint32_t count, last;
};

/* False if there are none. Free the list in every case. */
static bool list_columns(const struct notes *n,
                         bool (*is)(const struct notes *n, const struct suspect *s),
                         struct list *list)
{
    const struct sdr_schema *schema = &n->data->schema;
    *list = (struct list){0};
    for (uint32_t i = 0; i < schema->columns; i++) {
        if (!is(n, &n->suspect[i]) || ++list->count > LISTED_MOST)
            continue;
        const char *name = schema->column[i].name;
        list->last = i;
        sdr_text_add(&list->names, "%s'%.60s'", list->count > 1 ? ", " : "", name);
        sdr_text_add(&list->option, "%s", list->count > 1 ? "," : "");
        add_option_name(&list->option, name);
    }
    if (list->count > LISTED_MOST) {
        sdr_text_add(&list->names, " and %u more", list->count - LISTED_MOST);
        sdr_text_add(&list->option, ",...");
    }
    return list->count && !list->names.failed && !list->option.failed;
}

static void free_list(struct list *list)
{
    sdr_text_free(&list->names);
    sdr_text_free(&list->option);
}

static void tell_constant(const struct notes *n)
{
    struct list list;
    if (list_columns(n, is_constant, &list))
        sdr_read_note(n->options, "constant column%s: %s", list.count > 1 ? "s" : "",
                      list.names.bytes);
    free_list(&list);
}

static void tell_text_ids(const struct notes *n)
{
    struct list list;
    bool any = list_columns(n, is_text_id, &list);
    if (any && list.count > 1)
        sdr_read_note(n->options,
                      "columns %s: (nearly) as many different texts as rows; --ignore %s",
                      list.names.bytes, list.option.bytes);
    if (any && list.count == 1) {
        const struct suspect *s = &n->suspect[list.last];
        const char *text = n->data->schema.category.text[s->text];
        text += strlen(n->data->schema.column[list.last].name) + 1;
        bool number = sdr_csv_is_decorated(text, strlen(text));
        sdr_read_note(n->options, "column %s: %u different texts%s%.40s%s in %llu rows; %s%s",
                      list.names.bytes, s->values, number ? " such as '" : "", number ? text : "",
                      number ? "'" : "", (unsigned long long)n->data->rows.count,
                      number ? "write plain numbers, or --ignore " : "--ignore ",
                      list.option.bytes);
    }
    free_list(&list);
}

static void tell_counting(const struct notes *n)
{
    struct list list;
    if (list_columns(n, counts_rows, &list))
        sdr_read_note(n->options, "column%s %s count%s the rows; --ignore %s",
                      list.count > 1 ? "s" : "", list.names.bytes, list.count > 1 ? "" : "s",
                      list.option.bytes);
    free_list(&list);
}

static void tell_leaks(const struct notes *n)
{
    struct list list;
    bool any = list_columns(n, determines_label, &list), several = list.count > 1;
    if (any)
        sdr_read_note(n->options,
                      "column%s %s%s the label; --ignore %s if %s would not be known when "
                      "predicting",
                      several ? "s" : "", list.names.bytes,
                      several ? " each determine" : " determines", list.option.bytes,
                      several ? "they" : "it");
    free_list(&list);
}

/* Labels that are prices would become a class each. */
static enum sdr_status check_labels(const struct sdr_data *data)
{
    const struct sdr_schema *schema = &data->schema;
    const struct sdr_dictionary *labels = &schema->labels;
    const char *name = "", *example = "";
    uint32_t count = labels->count, decorated = 0;
    if (!schema->text_labels || count < 3 || 2 * (uint64_t)count <= data->rows.count)
        return SDR_OK;
    for (uint32_t i = 0; i < count; i++)
        if (sdr_csv_is_decorated(labels->text[i], labels->length[i])) {
            decorated++;
            example = labels->text[i];
        }
    if (10 * (uint64_t)decorated < 9 * (uint64_t)count)
        return SDR_OK;
    for (uint32_t i = 0; i < schema->columns; i++)
        if (schema->column[i].kind == SDR_COLUMN_LABEL)
            name = schema->column[i].name;
    return sdr_fail(SDR_BAD_DATA,
                    "%s: the label column '%.60s' has %u different texts such as '%.40s': numbers "
                    "with signs or units are not read; write plain numbers (or use --categories "
                    "%.60s to take each text as a class)",
                    data->name, name, count, example, name);
}

enum sdr_status sdr_columns_note(const struct sdr_data_options *options, bool labels_are_classes,
                                 struct sdr_data *data)
{
    struct notes n = {.options = options, .data = data, .rows = data->rows.count};
    if (!data->schema.columns || !data->schema.features)
        return SDR_OK;
    if (!labels_are_classes && data->rows.label)
        SDR_TRY(check_labels(data));
    if (!options->report || n.rows < ROWS_LEAST)
        return SDR_OK;
    if (data->streams && data->stream_rows < n.rows)
        n.rows = data->stream_rows;
    enum sdr_status status = prepare(&n);
    if (status == SDR_OK) {
        pass(&n);
        judge(&n);
        tell_constant(&n);
        tell_text_ids(&n);
        tell_counting(&n);
        tell_leaks(&n);
    }
    if (data->streams)
        sdr_data_done_with(data, 0, n.rows);
    sdr_release(n.suspect);
    sdr_release(n.column);
    sdr_release(n.text_class);
    sdr_release(n.value);
    sdr_release(n.live);
    sdr_release(n.class_rows);
    sdr_label_free(&n.finder);
    return status;
}

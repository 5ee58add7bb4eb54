/* Notes about columns of a new table that are rarely meant as features: constant columns, ids, and
   columns that determine the label. Columns of one kind share a note. */
#include "data/column_notes.h"
#include "data/csv.h"
#include "data/read.h"

#include <string.h>

enum { ROWS_LEAST = 20, LISTED_MOST = 5 }; /* minimum of rows for a note; names listed in a note */

struct notes {
    const struct sdr_data_options *options;
    const struct sdr_data *data;
    struct sdr_suspect *suspect; /* owned: one per column */
};

/* A column name quoted for --ignore in a shell. */
static void add_option_name(struct sdr_text *text, const char *name)
{
    bool listed = strpbrk(name, ",\""), quoted = strpbrk(name, " ,\"'$&|;<>()*?[]#~!`\\{}");
    sdr_text_add(text, "%s%s", quoted ? "'" : "", listed ? "\"" : "");
    for (const char *p = name; *p; p++)
        if (*p == '\'')
            sdr_text_add(text, "'\\''"); /* closes the quotes, escapes one, reopens them */
        else
            sdr_text_add(text, *p == '"' ? "\"\"" : "%c", *p);
    sdr_text_add(text, "%s%s", listed ? "\"" : "", quoted ? "'" : "");
}

static bool is_constant(const struct notes *n, const struct sdr_suspect *s)
{
    (void)n;
    return s->constant;
}

static bool counts_rows(const struct notes *n, const struct sdr_suspect *s)
{
    (void)n;
    return s->counts;
}

static bool determines_label(const struct notes *n, const struct sdr_suspect *s)
{
    (void)n;
    return s->determines;
}

static bool is_text_id(const struct notes *n, const struct sdr_suspect *s)
{
    return s->category && (double)s->values >= 0.9 * (double)n->data->rows.count;
}

/* Columns named in one note. */
struct list {
    struct sdr_text names, option; /* "'a', 'b' and 3 more"; "a,b,..." for --ignore */
    uint32_t count, last;
};

/* The caller frees the list, also after a failure. */
static enum sdr_status list_columns(const struct notes *n,
                                    bool (*is)(const struct notes *n, const struct sdr_suspect *s),
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
    if (list->names.failed || list->option.failed)
        return sdr_fail(SDR_RUNTIME, "out of memory: the notes about columns");
    return SDR_OK;
}

static void free_list(struct list *list)
{
    sdr_text_free(&list->names);
    sdr_text_free(&list->option);
}

static enum sdr_status note_constant(const struct notes *n)
{
    struct list list;
    enum sdr_status status = list_columns(n, is_constant, &list);
    if (status == SDR_OK && list.count)
        sdr_read_note(n->options, "constant column%s: %s", list.count > 1 ? "s" : "",
                      list.names.bytes);
    free_list(&list);
    return status;
}

static enum sdr_status note_text_ids(const struct notes *n)
{
    struct list list;
    enum sdr_status status = list_columns(n, is_text_id, &list);
    if (status == SDR_OK && list.count > 1)
        sdr_read_note(n->options,
                      "columns %s: almost every row has its own text; probably ids: --ignore %s",
                      list.names.bytes, list.option.bytes);
    if (status == SDR_OK && list.count == 1) {
        const struct sdr_suspect *s = &n->suspect[list.last];
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
    return status;
}

static enum sdr_status note_counting(const struct notes *n)
{
    struct list list;
    enum sdr_status status = list_columns(n, counts_rows, &list);
    bool several = list.count > 1;
    if (status == SDR_OK && list.count)
        sdr_read_note(n->options, "column%s %s count%s the rows; --ignore %s if %s",
                      several ? "s" : "", list.names.bytes, several ? "" : "s", list.option.bytes,
                      several ? "they are row numbers" : "it is a row number");
    free_list(&list);
    return status;
}

static enum sdr_status note_leaks(const struct notes *n)
{
    struct list list;
    enum sdr_status status = list_columns(n, determines_label, &list);
    bool several = list.count > 1;
    if (status == SDR_OK && list.count)
        sdr_read_note(n->options,
                      "column%s %s%s the label; --ignore %s if %s would not be known when "
                      "predicting",
                      several ? "s" : "", list.names.bytes,
                      several ? " each determine" : " determines", list.option.bytes,
                      several ? "they" : "it");
    free_list(&list);
    return status;
}

/* Refuses labels such as prices, each of which would become a class. */
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
    struct notes n = {.options = options, .data = data};
    if (!data->schema.columns || !data->schema.features)
        return SDR_OK;
    if (!labels_are_classes && data->rows.label)
        SDR_TRY(check_labels(data));
    if (!options->report || data->rows.count < ROWS_LEAST)
        return SDR_OK;
    SDR_TRY(sdr_allocate(&n.suspect, data->schema.columns, sizeof *n.suspect, "the columns"));
    enum sdr_status status;
    SDR_CHECK(sdr_suspects_find(data, n.suspect));
    SDR_CHECK(note_constant(&n));
    SDR_CHECK(note_text_ids(&n));
    SDR_CHECK(note_counting(&n));
    SDR_CHECK(note_leaks(&n));
cleanup:
    sdr_release(n.suspect);
    return status;
}

/* The role of each column of a CSV file: by options and the head of the first file; or, with the
   schema of a model or an earlier file, by finding that schema's columns. */
#include "data/csv.h"
#include "data/token.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static void note(const struct sdr_reading *reading, const char *sentence)
{
    struct sdr_report report = {.kind = SDR_REPORT_NOTE, .note = sentence};
    if (reading->options->report)
        reading->options->report(reading->options->report_context, &report);
}

/* The column with this name, or at the position "7" or "c7"; UINT32_MAX if there is none. */
static uint32_t find_column(const struct sdr_csv_head *head, const char *name)
{
    uint32_t column = sdr_dictionary_number(&head->names, name, strlen(name));
    uint64_t place;
    if (column == UINT32_MAX && sdr_parse_u64(name + (*name == 'c'), &place) && place >= 1 &&
        place <= head->columns)
        column = (uint32_t)place - 1;
    return column;
}

/* The columns with the names nearest to `name`, nearest first; returns their number. A short list
   has all columns in file order. */
enum { NAMES_MOST = 20 };
static uint32_t nearest_columns(const struct sdr_csv_head *head, const char *name,
                                uint32_t nearest[NAMES_MOST])
{
    size_t distance[NAMES_MOST];
    uint32_t count = 0;
    for (uint32_t i = 0; i < head->columns; i++) {
        size_t d = head->columns > NAMES_MOST ? sdr_edit_distance(name, head->name[i]) : 0;
        uint32_t at = count < NAMES_MOST ? count++ : NAMES_MOST;
        for (; at > 0 && distance[at - 1] > d; at--)
            if (at < NAMES_MOST) {
                distance[at] = distance[at - 1];
                nearest[at] = nearest[at - 1];
            }
        if (at < NAMES_MOST) {
            distance[at] = d;
            nearest[at] = i;
        }
    }
    return count;
}

static enum sdr_status no_column(const struct sdr_reading *reading, const struct sdr_csv_head *head,
                                 const char *option, const char *name)
{
    const char *nearest = NULL;
    size_t least = strlen(name) / 2 + 1;
    for (uint32_t i = 0; i < head->columns; i++) {
        size_t distance = sdr_edit_distance(name, head->name[i]);
        if (distance < least || strcasecmp(name, head->name[i]) == 0) {
            least = distance;
            nearest = head->name[i];
        }
    }
    if (nearest)
        return sdr_fail(SDR_USAGE, "%s: no column '%s' for --%s (did you mean '%s'?)",
                        reading->path, name, option, nearest);
    uint32_t listed[NAMES_MOST], count = nearest_columns(head, name, listed);
    struct sdr_text names = {0};
    for (uint32_t i = 0; i < count; i++)
        sdr_text_add(&names, "%s'%.40s'", i ? ", " : "", head->name[listed[i]]);
    sdr_fail(SDR_USAGE, "%s: no column '%.80s' for --%s; %s%u columns are %s", reading->path, name,
             option, count < head->columns ? "the nearest of its " : "its ", head->columns,
             names.bytes && !names.failed ? names.bytes : "not listed");
    sdr_text_free(&names);
    return SDR_USAGE;
}

static enum sdr_status mark_name(const struct sdr_reading *reading, const struct sdr_csv_head *head,
                                 const char *option, const struct sdr_csv_cell *cell, bool *mark)
{
    char *name;
    SDR_TRY(sdr_copy_bytes(&name, cell->text, cell->length));
    name[sdr_csv_unquote(cell, name)] = 0;
    uint32_t column = find_column(head, name);
    enum sdr_status status = column == UINT32_MAX ? no_column(reading, head, option, name) : SDR_OK;
    if (status == SDR_OK)
        mark[column] = true;
    sdr_release(name);
    return status;
}

/* Marks the columns of a list, itself a CSV record: names with commas are quoted. A list that
   equals a column name means that column. */
static enum sdr_status mark_list(const struct sdr_reading *reading, const struct sdr_csv_head *head,
                                 const char *option, const char *list, bool *mark)
{
    if (!list)
        return SDR_OK;
    const char *end = list + strlen(list);
    uint32_t column = sdr_dictionary_number(&head->names, list, (size_t)(end - list));
    struct sdr_csv_cell cell = {.next = list, .more = column == UINT32_MAX};
    if (!cell.more)
        mark[column] = true;
    while (cell.more) {
        sdr_csv_cell_read(cell.next, end, ',', &cell);
        if (cell.open || cell.dirty)
            return sdr_fail(SDR_USAGE,
                            "--%s: a quote in '%.200s' is not closed, or not at the end "
                            "of a name",
                            option, list);
        if (cell.length)
            SDR_TRY(mark_name(reading, head, option, &cell, mark));
    }
    return SDR_OK;
}

/* By --label, by a usual name, else the last column; UINT32_MAX: not wanted or not needed. */
static enum sdr_status find_label(const struct sdr_reading *reading,
                                  const struct sdr_csv_head *head, const bool *ignored,
                                  uint32_t *label)
{
    static const char *const usual[] = {"label", "target", "class", "y"};
    const char *name = reading->options->label;
    char sentence[300];
    if (name) {
        *label = find_column(head, name);
        if (*label == UINT32_MAX && strcmp(name, "none") != 0)
            return no_column(reading, head, "label", name);
        return SDR_OK;
    }
    for (size_t k = 0; k < sizeof usual / sizeof *usual; k++)
        for (uint32_t i = 0; i < head->columns; i++)
            if (!ignored[i] && strcasecmp(head->name[i], usual[k]) == 0) {
                *label = reading->options->labels_named ? UINT32_MAX : i;
                if (reading->options->labels_named)
                    snprintf(sentence, sizeof sentence,
                             "column '%.90s' is used as a feature (%s needs no label); --label "
                             "%.90s excludes it",
                             head->name[i], reading->options->model, head->name[i]);
                else
                    snprintf(sentence, sizeof sentence, "label: column '%.200s'", head->name[i]);
                note(reading, sentence);
                return SDR_OK;
            }
    if (reading->options->labels_named) {
        *label = UINT32_MAX;
        return SDR_OK;
    }
    for (*label = head->columns - 1; *label > 0 && ignored[*label]; --*label)
        ;
    snprintf(sentence, sizeof sentence, "label: column '%.200s' (the last)", head->name[*label]);
    note(reading, sentence);
    return SDR_OK;
}

static enum sdr_status add_column(struct sdr_csv *csv, uint32_t i, const char *name,
                                  enum sdr_column_kind kind, uint32_t feature)
{
    struct sdr_csv_column *column = &csv->column[i];
    struct sdr_text prefix = {0};
    column->kind = kind;
    column->feature = feature;
    csv->has_labels |= kind == SDR_COLUMN_LABEL;
    csv->has_weights |= kind == SDR_COLUMN_WEIGHT;
    SDR_TRY(sdr_copy_string(&column->name, name));
    sdr_text_add(&prefix, "%s=", name);
    column->prefix_length = prefix.length;
    return sdr_text_take(&prefix, &column->prefix);
}

/* Refuses numbers with commas: "1,5" may mean one and a half or fifteen. */
static enum sdr_status refuse_commas(const struct sdr_reading *reading,
                                     const struct sdr_csv_head *head, uint32_t column)
{
    const struct sdr_csv_text *example = &head->example[column];
    char cell[SDR_QUOTE_BYTES], whole[SDR_QUOTE_BYTES], *to = whole;
    sdr_quote(cell, example->text, example->text + example->length);
    for (const char *p = cell; *p; p++)
        if (*p != ',')
            *to++ = *p;
    *to = 0;
    /* In files separated by commas, commas in numbers can only group thousands. */
    bool sure =
        head->separator == ',' || strchr(cell, '.') || strchr(cell, ',') != strrchr(cell, ',');
    const char *name = head->name[column];
    if (head->type[column] == SDR_CSV_DECIMAL_COMMAS)
        return sdr_fail(SDR_BAD_DATA,
                        "%s: column '%s' has decimal commas ('%s'); write decimal points (or use "
                        "--categories %s, --ignore %s)",
                        reading->path, name, cell, name, name);
    return sdr_fail(SDR_BAD_DATA,
                    "%s: column '%s', \"%s\": thousands separators%s are not read; write %s%s (or "
                    "use --categories %s, --ignore %s)",
                    reading->path, name, cell, sure ? "" : " or decimal commas", whole,
                    sure ? "" : " or a decimal point", name, name);
}

/* Without a known schema: derives it from this file. */
static enum sdr_status find_out(struct sdr_csv *csv, struct sdr_reading *reading,
                                const struct sdr_csv_head *head, bool *ignored, bool *category)
{
    const struct sdr_data_options *options = reading->options;
    uint32_t label, weight = UINT32_MAX;
    SDR_TRY(mark_list(reading, head, "ignore", options->ignore, ignored));
    SDR_TRY(mark_list(reading, head, "categories", options->categories, category));
    if (options->weight) {
        weight = find_column(head, options->weight);
        if (weight == UINT32_MAX)
            return no_column(reading, head, "weight", options->weight);
        ignored[weight] = true; /* so that it is not guessed as the label */
    }
    SDR_TRY(find_label(reading, head, ignored, &label));
    if (label == weight && label != UINT32_MAX)
        return sdr_fail(SDR_USAGE, "column '%s' cannot be both label and weight",
                        head->name[label]);
    csv->ordered = true;
    for (uint32_t i = 0; i < head->columns; i++) {
        enum sdr_column_kind kind = i == label    ? SDR_COLUMN_LABEL
                                    : i == weight ? SDR_COLUMN_WEIGHT
                                    : ignored[i]  ? SDR_COLUMN_IGNORED
                                    : category[i] || head->type[i] != SDR_CSV_NUMBERS
                                        ? SDR_COLUMN_CATEGORY
                                        : SDR_COLUMN_NUMBER;
        if (kind != SDR_COLUMN_IGNORED && !category[i] &&
            (head->type[i] == SDR_CSV_DECIMAL_COMMAS || head->type[i] == SDR_CSV_THOUSANDS))
            return refuse_commas(reading, head, i);
        uint32_t feature = kind == SDR_COLUMN_NUMBER ? csv->numbers++ : 0;
        SDR_TRY(add_column(csv, i, head->name[i], kind, feature));
    }
    reading->labels_are_classes = label != UINT32_MAX && category[label];
    csv->text_labels =
        label != UINT32_MAX && (category[label] || head->type[label] != SDR_CSV_NUMBERS);
    return SDR_OK;
}

static enum sdr_status fill_schema(const struct sdr_csv *csv, struct sdr_schema *schema)
{
    SDR_TRY(sdr_allocate(&schema->column, csv->columns, sizeof *schema->column, "the columns"));
    schema->columns = csv->columns;
    for (uint32_t i = 0; i < csv->columns; i++) {
        schema->column[i].kind = csv->column[i].kind;
        schema->column[i].feature = csv->column[i].feature;
        SDR_TRY(sdr_copy_string(&schema->column[i].name, csv->column[i].name));
    }
    schema->numbers = schema->features = csv->numbers;
    schema->text_labels = csv->text_labels;
    schema->missing = csv->missing;
    return SDR_OK;
}

/* False for a schema of a file without a header: its names are c1, c2 … in order. */
static bool named(const struct sdr_schema *schema)
{
    for (uint32_t i = 0; i < schema->columns; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%u", i + 1);
        if (strcmp(schema->column[i].name, name) != 0)
            return true;
    }
    return false;
}

/* The name of a schema's column in this file. */
static const char *wanted_name(const struct sdr_data_options *options,
                               const struct sdr_column *column)
{
    if (column->kind == SDR_COLUMN_LABEL && options->label && strcmp(options->label, "none") != 0)
        return options->label;
    if (column->kind == SDR_COLUMN_WEIGHT && options->weight)
        return options->weight;
    return column->name;
}

static enum sdr_status note_extra(const struct sdr_reading *reading,
                                  const struct sdr_csv_head *head, const bool *taken)
{
    struct sdr_text text = {0};
    char *sentence;
    uint32_t extra = 0;
    for (uint32_t i = 0; i < head->columns; i++)
        if (!taken[i] && ++extra <= 5)
            sdr_text_add(&text, "%s'%.60s'",
                         extra > 1 ? ", " : "ignored, not in the model: column ", head->name[i]);
    if (extra > 5)
        sdr_text_add(&text, " and %u more", extra - 5);
    if (!extra)
        return SDR_OK;
    SDR_TRY(sdr_text_take(&text, &sentence));
    note(reading, sentence);
    sdr_release(sentence);
    return SDR_OK;
}

/* Columns given by name must exist and be part of the schema. */
static enum sdr_status check_named(const struct sdr_reading *reading,
                                   const struct sdr_csv_head *head)
{
    const char *label = reading->options->label, *weight = reading->options->weight;
    const struct sdr_schema *known = reading->known;
    bool weighted = false;
    for (uint32_t k = 0; k < known->columns; k++)
        weighted |= known->column[k].kind == SDR_COLUMN_WEIGHT;
    if (label && strcmp(label, "none") != 0 && find_column(head, label) == UINT32_MAX)
        return no_column(reading, head, "label", label);
    if (weight && find_column(head, weight) == UINT32_MAX)
        return no_column(reading, head, "weight", weight);
    if (weight && !weighted)
        return sdr_fail(SDR_USAGE, "--weight: the model was trained without weights");
    return SDR_OK;
}

/* Both have headers: finds the schema's columns by name, in any order. */
static enum sdr_status match_names(struct sdr_csv *csv, const struct sdr_reading *reading,
                                   const struct sdr_csv_head *head, bool *taken)
{
    const struct sdr_schema *known = reading->known;
    SDR_TRY(check_named(reading, head));
    for (uint32_t k = 0; k < known->columns; k++) {
        const struct sdr_column *column = &known->column[k];
        const char *name = wanted_name(reading->options, column);
        uint32_t i = name == column->name ? sdr_dictionary_number(&head->names, name, strlen(name))
                                          : find_column(head, name);
        if (i != UINT32_MAX && !csv->column[i].name) {
            taken[i] = true;
            SDR_TRY(add_column(csv, i, column->name, column->kind, column->feature));
        } else if (column->kind == SDR_COLUMN_NUMBER || column->kind == SDR_COLUMN_CATEGORY ||
                   (column->kind != SDR_COLUMN_IGNORED && !csv->labels_optional)) {
            return sdr_fail(SDR_BAD_DATA, "%s:1: the column '%s' is missing", reading->path, name);
        }
    }
    uint32_t last = 0;
    csv->ordered = true;
    for (uint32_t i = 0; i < csv->columns; i++) {
        if (!csv->column[i].name)
            SDR_TRY(add_column(csv, i, head->name[i], SDR_COLUMN_IGNORED, 0));
        if (csv->column[i].kind != SDR_COLUMN_NUMBER)
            continue;
        csv->ordered &= csv->column[i].feature >= last;
        last = csv->column[i].feature;
    }
    return note_extra(reading, head, taken);
}

/* Without names, the columns must equal the schema's in order; the label may be missing. */
static enum sdr_status match_places(struct sdr_csv *csv, const struct sdr_reading *reading)
{
    const struct sdr_schema *known = reading->known;
    bool label_known = false,
         leave_out = csv->labels_optional && csv->columns + 1 == known->columns;
    uint32_t i = 0;
    for (uint32_t k = 0; k < known->columns; k++)
        label_known |= known->column[k].kind == SDR_COLUMN_LABEL;
    leave_out &= label_known;
    if (csv->columns != known->columns && !leave_out)
        return sdr_fail(
            SDR_BAD_DATA, "%s:1: the line has %u cells, the model was trained with %u%s",
            reading->path, csv->columns, known->columns, label_known ? " (label included)" : "");
    if (named(known))
        note(reading, "no header line: the columns are taken in the order of training");
    csv->ordered = true;
    for (uint32_t k = 0; k < known->columns; k++) {
        const struct sdr_column *column = &known->column[k];
        if (!leave_out || column->kind != SDR_COLUMN_LABEL)
            SDR_TRY(add_column(csv, i++, column->name, column->kind, column->feature));
    }
    return SDR_OK;
}

enum sdr_status sdr_csv_columns_find(struct sdr_csv *csv, struct sdr_reading *reading,
                                     const struct sdr_csv_head *head)
{
    const struct sdr_schema *known = reading->known;
    bool *mark;
    reading->schema->base = 0;
    csv->columns = head->columns;
    SDR_TRY(sdr_allocate(&csv->column, head->columns, sizeof *csv->column, "the columns"));
    if (known && !known->column)
        return sdr_fail(SDR_BAD_DATA, "%s: the model was trained on '%s' data, this is CSV",
                        reading->path, known->format ? known->format : "other");
    if (head->twice)
        return sdr_fail(SDR_BAD_DATA, "%s:1: two columns are called '%s'", reading->path,
                        head->twice);
    SDR_TRY(sdr_allocate(&mark, head->columns, 2, "the columns"));
    enum sdr_status status;
    if (!known) {
        csv->missing = reading->options->missing;
        status = find_out(csv, reading, head, mark, mark + head->columns);
        if (status == SDR_OK)
            status = fill_schema(csv, reading->schema);
    } else {
        csv->missing =
            known->missing != SDR_MISSING_ERROR ? known->missing : reading->options->missing;
        csv->known = true;
        csv->text_labels = known->text_labels;
        csv->numbers = known->numbers;
        status = head->header && named(known) ? match_names(csv, reading, head, mark)
                                              : match_places(csv, reading);
    }
    sdr_release(mark);
    return status;
}

/* sounder predict: one line per row of the data, in order. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct predictions {
    size_t rows, columns;
    float *value;   /* rows: class numbers or values; owned */
    float *numbers; /* rows × columns: probabilities or scores; NULL if not requested; owned */
};

static enum sdr_status predict_into(const struct sdr_model *model, const struct sdr_data *data,
                                    enum sdr_prediction what, size_t columns, float **out)
{
    size_t rows = sdr_data_rows(data);
    if (columns && rows > SIZE_MAX / sizeof **out / columns)
        return cli_fail(SDR_RUNTIME, "out of memory for %zu x %zu predictions", rows, columns);
    *out = malloc(rows && columns ? rows * columns * sizeof **out : 1);
    if (!*out)
        return cli_fail(SDR_RUNTIME, "out of memory for %zu x %zu predictions", rows, columns);
    return sdr_model_predict(model, data, what, *out);
}

static enum sdr_status predict_all(const struct cli_arguments *arguments,
                                   const struct sdr_model *model, const struct sdr_data *data,
                                   struct predictions *predictions)
{
    bool proba = arguments->given & CLI_PROBA, scores = arguments->given & CLI_SCORES;
    predictions->rows = sdr_data_rows(data);
    CLI_TRY(predict_into(model, data, SDR_PREDICT_VALUE, 1, &predictions->value));
    if (!proba && !scores)
        return SDR_OK;
    predictions->columns = proba ? sdr_model_classes(model) : sdr_model_outputs(model);
    return predict_into(model, data, proba ? SDR_PREDICT_PROBA : SDR_PREDICT_SCORE,
                        predictions->columns, &predictions->numbers);
}

/* The field separator: a space, or a tab for CSV, whose labels may contain spaces. */
static char separator(const struct sdr_model *model)
{
    for (size_t i = 0; i < sdr_model_classes(model); i++) {
        if (strchr(sdr_model_label(model, i), ' '))
            return '\t';
    }
    return ' ';
}

/* Labels that would break the lines, or look like a quoted label, are printed as JSON strings. */
static void put_label(FILE *stream, const char *label)
{
    bool plain = label[0] != '"';
    for (const char *p = label; *p && plain; p++)
        plain = (unsigned char)*p >= ' ' && *p != 0x7F;
    if (plain) {
        fputs(label, stream);
        return;
    }
    putc('"', stream);
    for (const char *p = label; *p; p++) {
        const char *letter = strchr("\nn\tt\rr", *p);
        if (*p == '"' || *p == '\\')
            fprintf(stream, "\\%c", *p);
        else if (letter && (unsigned char)*p < ' ')
            fprintf(stream, "\\%c", letter[1]);
        else if ((unsigned char)*p < ' ' || *p == 0x7F)
            fprintf(stream, "\\u%04x", (unsigned)(unsigned char)*p);
        else
            putc(*p, stream);
    }
    putc('"', stream);
}

static enum sdr_status write_lines(FILE *stream, const struct sdr_model *model,
                                   const struct predictions *predictions)
{
    size_t classes = sdr_model_classes(model), columns = predictions->columns;
    char gap = separator(model), text[CLI_NUMBER_TEXT];
    if (predictions->numbers) {
        fputs(classes ? "labels" : columns > 1 ? "cluster" : "value score", stream);
        for (size_t i = 0; !classes && columns > 1 && i < columns; i++)
            fprintf(stream, "%c%zu", gap, i);
        for (size_t i = 0; i < classes; i++) {
            putc(gap, stream);
            put_label(stream, sdr_model_label(model, i));
        }
        putc('\n', stream);
    }
    for (size_t row = 0; row < predictions->rows; row++) {
        float value = predictions->value[row];
        if (classes && !(value >= 0 && value < (float)classes))
            return cli_fail(SDR_RUNTIME, "the model gave row %zu no class", row + 1);
        if (classes)
            put_label(stream, sdr_model_label(model, (size_t)value));
        else
            fputs(cli_float_text(text, value), stream);
        for (size_t i = 0; predictions->numbers && i < columns; i++) {
            putc(gap, stream);
            fputs(cli_float_text(text, predictions->numbers[row * columns + i]), stream);
        }
        /* Checked here, while errno is still valid. */
        if (putc('\n', stream) == EOF || ferror(stream))
            return cli_stdout_failed("the predictions", errno);
    }
    return SDR_OK;
}

/* ---- recommendations ---- */
static void write_top(void *context, const char *user, size_t count, const char *const *item,
                      const float *score)
{
    FILE *stream = context;
    char text[CLI_NUMBER_TEXT];
    for (size_t i = 0; i < count; i++) {
        put_label(stream, user);
        putc('\t', stream);
        put_label(stream, item[i]);
        fprintf(stream, "\t%s\n", cli_float_text(text, score[i]));
    }
}

static enum sdr_status recommend(const struct sdr_model *model, const struct sdr_data *data,
                                 const char *top, const char *out)
{
    char *end;
    unsigned long long count = strtoull(top, &end, 10);
    struct cli_output output;
    if (*end || *top < '0' || *top > '9' || count == 0)
        return cli_fail(SDR_USAGE, "--top takes a number of items, not '%s'", top);
    CLI_TRY(cli_output_open(&output, out));
    enum sdr_status status = sdr_model_top(model, data, (size_t)count, write_top, output.stream);
    if (status == SDR_OK && ferror(output.stream))
        status = cli_stdout_failed("the recommendations", errno);
    return cli_output_close(&output, status);
}

static enum sdr_status run(struct cli_arguments *arguments)
{
    const char *out = arguments->out;
    bool to_file = out && strcmp(out, "-") != 0;
    struct sdr_model *model = NULL;
    struct sdr_data *data = NULL;
    struct predictions predictions = {0};
    enum sdr_status status = SDR_OK;
    if ((arguments->given & CLI_PROBA) && (arguments->given & CLI_SCORES))
        return cli_fail(SDR_USAGE, "--proba and --scores exclude each other");
    if (arguments->top && (arguments->given & (CLI_PROBA | CLI_SCORES)))
        return cli_fail(SDR_USAGE, "--top writes scores of its own: not with --proba or --scores");
    if (to_file)
        CLI_TRY(cli_output_check_all("--out", out, arguments, arguments->path_count, false));
    cli_progress_start(arguments);
    cli_signals_start();
    CLI_CHECK(cli_model_load(arguments, &model));
    if ((arguments->given & CLI_PROBA) && sdr_model_classes(model) == 0)
        CLI_CHECK(cli_fail(SDR_USAGE, "--proba needs a model of classes; '%s' predicts a number",
                           arguments->paths[0]));
    CLI_CHECK(sdr_data_open(arguments->options, arguments->paths + 1, arguments->path_count - 1,
                            model, &data));
    if (arguments->top) {
        CLI_CHECK(recommend(model, data, arguments->top, out));
        goto cleanup;
    }
    CLI_CHECK(predict_all(arguments, model, data, &predictions));
    cli_progress_clear();
    struct cli_output output;
    CLI_CHECK(cli_output_open(&output, out));
    CLI_CHECK(cli_output_close(&output, write_lines(output.stream, model, &predictions)));
    if (to_file) {
        printf("wrote ");
        cli_print_clean(stdout, out);
        printf(": %zu predictions\n", predictions.rows);
    }
cleanup:
    free(predictions.value);
    free(predictions.numbers);
    sdr_data_destroy(data);
    sdr_model_destroy(model);
    return status;
}

const struct cli_command cli_predict = {
    .name = "predict",
    .positional = "MODEL DATA...",
    .summary = "write the label or value that a model gives every row",
    .description =
        "Reads DATA the way MODEL was trained (columns, categories, labels) and writes one line a\n"
        "row: the label as it stood in the training data, or the value. Labels in DATA are not\n"
        "needed and change nothing; where a line of text begins with one it must be a number.\n"
        "A table with a header and no rows gives no predictions.\n"
        "With --proba or --scores a first line 'labels A B ...' names the classes, and the\n"
        "numbers follow every label in that order; a model of two classes has one score, positive\n"
        "for the second. Fields are set apart by a space, or by a tab if a label holds spaces. A\n"
        "label with tabs, line breaks or other control characters, or with a quote in front, is\n"
        "written as a JSON string: \"two\\nlines\".\n"
        "With --top N and a model of ratings: lines 'user item score', tabs between, the best N "
        "items\n"
        "for every user in DATA that DATA does not list for the user.\n",
    .example = "  sounder predict a9a.model a9a.t --proba --out probabilities.txt\n"
               "  cat new.csv | sounder predict house.model - --format csv\n",
    .out_help = "write the predictions here instead of standard output",
    .least = 2,
    .most = SIZE_MAX,
    .takes = CLI_HELP | CLI_QUIET | CLI_CONFIG | CLI_PRINT_CONFIG | CLI_OUT | CLI_PROBA |
             CLI_SCORES | CLI_TOP,
    .run = run,
};

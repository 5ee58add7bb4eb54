/* sounder convert: data files to a cache file, which loads many times faster. */
#include "cli.h"

#include <string.h>

static enum sdr_status print_written(const struct cli_arguments *arguments, const char *path,
                                     const struct sdr_data *data)
{
    size_t rows = sdr_data_rows(data), features = sdr_data_features(data);
    unsigned long long nonzeros = sdr_data_nonzeros(data), bytes = cli_file_bytes(path);
    char size[CLI_NUMBER_TEXT];
    if (!(arguments->given & CLI_JSON)) {
        printf("wrote ");
        cli_print_clean(stdout, path);
        printf(": %zu rows, %zu features, %llu nonzeros, %s\n", rows, features, nonzeros,
               cli_bytes_text(size, (double)bytes));
        return SDR_OK;
    }
    json_t *object = json_pack("{s:o, s:I, s:I, s:I, s:I}", "path", cli_json_text(path), "rows",
                               (json_int_t)rows, "features", (json_int_t)features, "nonzeros",
                               (json_int_t)nonzeros, "bytes", (json_int_t)bytes);
    return cli_print_object(object);
}

static enum sdr_status run(struct cli_arguments *arguments)
{
    static const char extension[] = ".sdc";
    size_t inputs = arguments->path_count - 1;
    const char *path = arguments->paths[inputs];
    size_t length = strlen(path), tail = sizeof extension - 1;
    /* "sounder convert a.svm b.svm" most likely forgot OUT; b.svm must not be overwritten. */
    if (length <= tail || strcmp(path + length - tail, extension) != 0)
        return cli_fail(SDR_USAGE,
                        "the last argument of sounder convert must end in .sdc, not '%s'", path);
    CLI_TRY(cli_output_check_all("OUT", path, arguments, inputs, true));
    cli_progress_start(arguments);
    cli_signals_start();
    struct sdr_data *data = NULL;
    CLI_TRY(sdr_data_open(arguments->options, arguments->paths, inputs, NULL, &data));
    enum sdr_status status = sdr_data_convert(arguments->options, data, path);
    cli_progress_clear();
    if (status == SDR_OK)
        status = print_written(arguments, path, data);
    sdr_data_destroy(data);
    return status;
}

const struct cli_command cli_convert = {
    .name = "convert",
    .positional = "DATA... OUT.sdc",
    .summary = "turn data into a file that is read many times faster",
    .description =
        "Reads DATA as 'sounder train' does and writes it as one binary file, with its schema and\n"
        "labels, that every command takes as DATA.\n",
    .example = "  sounder convert 'part-*.svm.gz' all.sdc\n"
               "  sounder train all.sdc --out model\n",
    .least = 2,
    .most = SIZE_MAX,
    .takes = CLI_HELP | CLI_JSON | CLI_QUIET | CLI_CONFIG | CLI_PRINT_CONFIG,
    .run = run,
};

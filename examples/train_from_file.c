/* Trains on a file and saves the model, with progress on standard error.

      train_from_file [DATA MODEL]

   DATA may have any format that 'sounder list format' names. Without arguments the example
   generates data. */
#include <sounder/sounder.h>

#include <stdio.h>

/* 1 000 rows of LIBSVM text, "label column:value ...": spam has the words 1 to 3, ham 4 to 6, and
   all mail has some of the words 7 to 20. */
static int write_data(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return 1;
    for (int i = 0; i < 1000; i++) {
        int spam = i % 3 == 0;
        fprintf(file, "%s %d:1 %d:0.5\n", spam ? "+1" : "-1", (spam ? 1 : 4) + i % 2,
                7 + i * 31 % 14);
    }
    return fclose(file) != 0;
}

/* The library never prints; this function receives its reports. */
static void on_report(void *context, const struct sdr_report *report)
{
    FILE *stream = context;
    if (report->kind == SDR_REPORT_NOTE)
        fprintf(stream, "note: %s\n", report->note);
    if (report->kind == SDR_REPORT_EPOCH)
        fprintf(stream, "epoch %llu: loss %g, held out %g\n", (unsigned long long)report->epoch,
                report->running_loss, report->valid_loss);
}

/* Runs a step unless an earlier one failed, so that the code below is a list of steps. */
#define STEP(call)                                                                                 \
    do {                                                                                           \
        if (status == SDR_OK)                                                                      \
            status = (call);                                                                       \
    } while (0)

int main(int count, char **texts)
{
    const char *path = count > 1 ? texts[1] : "example.svm";
    const char *model_path = count > 2 ? texts[2] : "example.model";
    struct sdr_options *options = NULL;
    struct sdr_data *data = NULL;
    struct sdr_run *run = NULL;
    struct sdr_model *model = NULL;
    char *summary = NULL;
    if (count == 1 && write_data(path) != 0) {
        fprintf(stderr, "cannot write %s\n", path);
        return 1;
    }

    enum sdr_status status = sdr_options_create(&options);
    STEP(sdr_options_set(options, "epochs", "5"));
    STEP(sdr_options_set(options, "valid-fraction", "0.2")); /* hold out a fifth of the rows */
    if (status == SDR_OK)
        sdr_options_report(options, on_report, stderr);
    STEP(sdr_data_open(options, &path, 1, NULL, &data)); /* NULL: no model determines the columns */
    STEP(sdr_run_create(options, data, NULL, &run));     /* NULL: no validation file */
    STEP(sdr_run_train(run));
    STEP(sdr_run_summary(run, &summary));
    STEP(sdr_run_model(run, &model));
    STEP(sdr_model_save(model, model_path));

    if (status == SDR_OK)
        printf("%s\n", summary);
    else
        fprintf(stderr, "%s\n", sdr_error());
    sdr_string_free(summary);
    sdr_model_destroy(model);
    sdr_run_destroy(run);
    sdr_data_destroy(data);
    sdr_options_destroy(options);
    return (int)status; /* the statuses are exit codes */
}

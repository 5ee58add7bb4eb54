/* Trains on arrays that are already in memory: once dense, once as compressed sparse rows (CSR).

   The library borrows the arrays; nothing is copied to a file. Build it against an installed
   library with:  cc train_from_arrays.c $(pkg-config --cflags --libs sounder) */
#include <sounder/sounder.h>

#include <stdio.h>

enum { ROWS = 400, FEATURES = 2 };

/* Every call that can fail returns a status; sdr_error() is the message. */
static int failed(enum sdr_status status, const char *where)
{
    if (status == SDR_OK)
        return 0;
    fprintf(stderr, "%s: %s\n", where, sdr_error());
    return 1;
}

/* Trains a model on data and evaluates it on the same data. Returns 0 on success. */
static int train_and_evaluate(struct sdr_data *data)
{
    struct sdr_options *options = NULL;
    struct sdr_run *run = NULL;
    struct sdr_model *model = NULL;
    char *json = NULL;
    float weight[FEATURES];
    size_t count = 0;
    int bad = 1;

    /* Options are the flags of 'sounder train' without the dashes; 'sounder train --help all' lists
     * them. */
    if (failed(sdr_options_create(&options), "options") ||
        failed(sdr_options_set(options, "epochs", "20"), "epochs") ||
        failed(sdr_options_set(options, "seed", "7"), "seed"))
        goto cleanup;
    if (failed(sdr_run_create(options, data, NULL, &run), "run") ||
        failed(sdr_run_train(run), "train") || failed(sdr_run_model(run, &model), "model"))
        goto cleanup;

    /* The data has two labels, so the model has two classes. */
    if (failed(sdr_model_evaluate(model, data, &json), "evaluate"))
        goto cleanup;
    printf("%s\n", json);

    /* Parameters are named blocks; NULL asks only for their size. */
    if (failed(sdr_model_block(model, "weight", NULL, &count), "weight"))
        goto cleanup;
    if (count == FEATURES && !failed(sdr_model_block(model, "weight", weight, &count), "weight")) {
        printf("weights %g %g\n", (double)weight[0], (double)weight[1]);
        bad = !(weight[0] > 0); /* the label depends on the first feature, see below */
    }

cleanup: /* destroying NULL is allowed */
    sdr_string_free(json);
    sdr_model_destroy(model);
    sdr_run_destroy(run);
    sdr_options_destroy(options);
    return bad;
}

int main(void)
{
    static float x[ROWS * FEATURES], label[ROWS], value[ROWS * FEATURES];
    static uint64_t start[ROWS + 1];
    static uint32_t column[ROWS * FEATURES];
    struct sdr_data *dense = NULL, *sparse = NULL;

    /* The label is the sign of the first feature; the second is noise. The same numbers as CSR: row
       i has the entries start[i] to start[i + 1] of column and value, columns increasing. */
    for (int i = 0; i < ROWS; i++) {
        label[i] = i % 2 ? 1 : 0;
        x[i * FEATURES] = (label[i] > 0 ? 1.0f : -1.0f) * (1 + (float)(i % 7) / 7);
        x[i * FEATURES + 1] = (float)(i * 37 % 101) / 50 - 1;
        start[i + 1] = (uint64_t)(i + 1) * FEATURES;
        for (int j = 0; j < FEATURES; j++) {
            column[i * FEATURES + j] = (uint32_t)j;
            value[i * FEATURES + j] = x[i * FEATURES + j];
        }
    }

    /* Row i starts at x[i * stride]; the stride is larger than FEATURES if rows are padded. */
    int bad = failed(sdr_data_dense(x, ROWS, FEATURES, FEATURES, label, NULL, &dense), "dense") ||
              train_and_evaluate(dense);
    bad |= failed(sdr_data_csr(start, column, value, ROWS, FEATURES, label, NULL, &sparse),
                  "sparse") ||
           train_and_evaluate(sparse);
    sdr_data_destroy(sparse);
    sdr_data_destroy(dense);
    return bad;
}

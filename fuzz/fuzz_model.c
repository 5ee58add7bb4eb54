/* Model files: any bytes, or parts with the checksum put right (tensors.h). What loads must
   predict, explain itself, read data by its schema, and come back the same when saved. */
#include "tensors.h"

#include "trained/model.h"

static const char svm[] = "1 1:0.5 3:2\n-1 2:1\n2 1:1 4:-3\n";
static const char pairs[] = "1 1:1 3:1\n0.5 2:1 4:1\n3 3:1\n";
static const char ratings[] = "u1 i2 3\nu2 i1 4\nnobody i0 1\n";
static const char csv[] = "a,b,colour,label\n1,2,red,x\n3,,blue,y\n-1,0.5,red,x\n";

static void read_by_schema(const struct sdr_options *options, const struct sdr_model *model,
                           const char *text, size_t count)
{
    char path[64], *json;
    const char *paths[] = {path};
    int file = fuzz_file(text, count, path);
    struct sdr_data *data;
    if (sdr_data_open(options, paths, 1, model, &data) == SDR_OK) {
        float *out =
            malloc((sdr_data_rows(data) * (sdr_model_outputs(model) + 2) + 1) * sizeof *out);
        FUZZ_CHECK(out != NULL);
        fuzz_check_rows(&data->rows);
        if (sdr_model_predict(model, data, SDR_PREDICT_SCORE, out) == SDR_OK &&
            sdr_model_evaluate(model, data, &json) == SDR_OK)
            sdr_string_free(json);
        free(out);
    }
    sdr_data_destroy(data);
    close(file);
}

static void predict_zeros(const struct sdr_model *model)
{
    enum { ROWS = 3 };
    uint32_t features = model->schema.features;
    size_t width = sdr_model_outputs(model) + sdr_model_classes(model) + 1;
    float *x = calloc((size_t)features * ROWS + 1, sizeof *x);
    float *out = calloc(ROWS * width, sizeof *out);
    struct sdr_data *data;
    FUZZ_CHECK(x && out);
    if (features && sdr_data_dense(x, ROWS, features, features, NULL, NULL, &data) == SDR_OK) {
        enum sdr_status status = sdr_model_predict(model, data, SDR_PREDICT_VALUE, out);
        FUZZ_CHECK(status == (model->kind->check ? SDR_BAD_DATA : SDR_OK));
        for (int i = 0; i < ROWS && sdr_model_classes(model); i++)
            FUZZ_CHECK(out[i] >= 0 && out[i] < (float)sdr_model_classes(model));
        FUZZ_CHECK(sdr_model_predict(model, data, SDR_PREDICT_SCORE, out) == status);
        if (sdr_model_predict(model, data, SDR_PREDICT_PROBA, out) == SDR_OK)
            for (size_t i = 0; i < ROWS * sdr_model_classes(model); i++)
                FUZZ_CHECK(out[i] >= 0 && out[i] <= 1);
        sdr_data_destroy(data);
    }
    free(x);
    free(out);
}

static void save_and_load(const struct sdr_model *model)
{
    char path[64];
    struct sdr_model *again;
    snprintf(path, sizeof path, "/dev/shm/sounder-fuzz-%ld", (long)getpid());
    FUZZ_CHECK(sdr_model_save(model, path) == SDR_OK);
    FUZZ_CHECK(sdr_model_load(path, &again) == SDR_OK);
    FUZZ_CHECK(strcmp(model->hash, again->hash) == 0);
    sdr_model_destroy(again);
    remove(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char path[64], *json;
    size_t made;
    uint8_t *content = fuzz_tensors(bytes, count, NULL, NULL, &made);
    int file = fuzz_file(content, made, path);
    struct sdr_model *model;
    struct sdr_options *options;
    enum sdr_status status = sdr_model_load(path, &model);
    FUZZ_CHECK(status == SDR_OK || (status == SDR_BAD_FILE && !model && *sdr_error()));
    if (status == SDR_OK) {
        FUZZ_CHECK(sdr_options_create(&options) == SDR_OK);
        FUZZ_CHECK(sdr_options_set(options, "threads", "1") == SDR_OK);
        for (size_t k = 0; k < sdr_model_classes(model); k++)
            FUZZ_CHECK(sdr_model_label(model, k) != NULL);
        if (sdr_model_inspect(model, &json) == SDR_OK)
            sdr_string_free(json);
        if (model->schema.features < 1 << 16)
            predict_zeros(model);
        read_by_schema(options, model, svm, sizeof svm - 1);
        read_by_schema(options, model, csv, sizeof csv - 1);
        read_by_schema(options, model, pairs, sizeof pairs - 1);
        read_by_schema(options, model, ratings, sizeof ratings - 1);
        save_and_load(model);
        sdr_options_destroy(options);
        sdr_model_destroy(model);
    }
    close(file);
    free(content);
    return 0;
}

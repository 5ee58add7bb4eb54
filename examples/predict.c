/* Loads a model and prints the most probable label of the first rows of a file.

       predict MODEL DATA

   Run train_from_file first: it writes a model and data. */
#include <sounder/sounder.h>

#include <stdio.h>
#include <stdlib.h>

enum { SHOWN = 5 };

/* Class numbers are 0, 1, …; the model remembers how each was written in the training data. */
static void print_row(const struct sdr_model *model, float value, const float *probability)
{
    size_t class_number = (size_t)value;
    printf("%s with probability %.3f\n", sdr_model_label(model, class_number),
           (double)probability[class_number]);
}

static enum sdr_status predict(const struct sdr_model *model, const struct sdr_data *data)
{
    size_t rows = sdr_data_rows(data), classes = sdr_model_classes(model);
    float *value = calloc(rows, sizeof *value);
    float *probability = calloc(rows * classes, sizeof *probability);
    enum sdr_status status = SDR_RUNTIME;
    if (value && probability)
        status = sdr_model_predict(model, data, SDR_PREDICT_VALUE, value);
    if (status == SDR_OK)
        status = sdr_model_predict(model, data, SDR_PREDICT_PROBA, probability);
    for (size_t row = 0; status == SDR_OK && row < rows && row < SHOWN; row++)
        print_row(model, value[row], probability + row * classes);
    free(probability);
    free(value);
    return status;
}

int main(int count, char **texts)
{
    struct sdr_options *options = NULL;
    struct sdr_model *model = NULL;
    struct sdr_data *data = NULL;
    if (count != 3) {
        fprintf(stderr, "usage: predict MODEL DATA\n");
        return SDR_USAGE;
    }
    const char *path = texts[2];
    enum sdr_status status = sdr_options_create(&options);
    if (status == SDR_OK)
        status = sdr_model_load(texts[1], &model);
    /* Opened with the model, the file is read the way the training data was; labels may be absent.
     */
    if (status == SDR_OK)
        status = sdr_data_open(options, &path, 1, model, &data);
    if (status == SDR_OK)
        status = predict(model, data);
    if (status != SDR_OK)
        fprintf(stderr, "%s\n", sdr_error());
    sdr_data_destroy(data);
    sdr_model_destroy(model);
    sdr_options_destroy(options);
    return (int)status;
}

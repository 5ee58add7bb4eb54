/* Helpers of all generators: checks of options, the truth file, the alias method. */
#include "base/file.h"
#include "data/generate.h"

#include <string.h>

enum sdr_status sdr_generate_complete(const struct sdr_generate_options *given, uint64_t features,
                                      uint64_t nnz, uint64_t most,
                                      struct sdr_generate_options *options)
{
    *options = *given;
    if (options->features == 0)
        options->features = features;
    if (options->nnz == 0)
        options->nnz = nnz;
    if (options->rows < 1 || options->rows > SDR_TRIAL_STREAM - 1)
        return sdr_fail(SDR_USAGE, "--rows must be at least 1");
    if (options->features < 1 || options->features > most)
        return sdr_fail(SDR_USAGE, "--features must be from 1 to %llu here, not %llu",
                        (unsigned long long)most, (unsigned long long)options->features);
    if (!(options->noise >= 0 && options->noise < 1e6))
        return sdr_fail(SDR_USAGE, "--noise must not be negative");
    return SDR_OK;
}

enum sdr_status sdr_generate_share(const struct sdr_generate_options *options)
{
    if (options->noise <= 1)
        return SDR_OK;
    return sdr_fail(SDR_USAGE, "--noise must be a share from 0 to 1 of the labels here, not %g",
                    options->noise);
}

const char *sdr_path_extension(const char *path)
{
    const char *base = sdr_path_base(path), *dot = strrchr(base, '.');
    return dot && dot != base ? dot + 1 : "";
}

enum sdr_status sdr_path_with(const char *path, const char *ending, char **result)
{
    struct sdr_text text = {0};
    sdr_text_add(&text, "%s%s", path, ending);
    return sdr_text_take(&text, result);
}

void sdr_truth_begin(struct sdr_text *text, const char *kind,
                     const struct sdr_generate_options *options)
{
    char noise[SDR_NUMBER_TEXT];
    noise[sdr_print_double(noise, options->noise)] = 0;
    sdr_text_add(text,
                 "{\"kind\": \"%s\", \"rows\": %llu, \"features\": %llu, \"nnz\": %llu, "
                 "\"classes\": %llu, \"seed\": %llu, \"noise\": %s",
                 kind, (unsigned long long)options->rows, (unsigned long long)options->features,
                 (unsigned long long)options->nnz, (unsigned long long)options->classes,
                 (unsigned long long)options->seed, noise);
}

void sdr_truth_number(struct sdr_text *text, const char *key, double value)
{
    char number[SDR_NUMBER_TEXT];
    number[sdr_print_double(number, value)] = 0;
    sdr_text_add(text, ",\n \"%s\": %s", key, number);
}

void sdr_truth_weights(struct sdr_text *text, const char *key, const float *weight, size_t count,
                       const uint32_t *place)
{
    enum { MOST = 100000 };
    size_t nonzeros = 0;
    for (size_t i = 0; i < count; i++)
        nonzeros += weight[i] != 0;
    if (nonzeros > MOST)
        return;
    sdr_text_add(text, ",\n \"%s\": [", key);
    const char *comma = "";
    for (size_t i = 0; i < count; i++) {
        char number[SDR_NUMBER_TEXT];
        if (weight[i] == 0)
            continue;
        number[sdr_print_float(number, weight[i])] = 0;
        sdr_text_add(text, "%s[%llu, %s]", comma, (unsigned long long)(place ? place[i] : i),
                     number);
        comma = ", ";
    }
    sdr_text_add(text, "]");
}

enum sdr_status sdr_truth_write(struct sdr_text *text, const char *path)
{
    char *name = NULL, *json = NULL;
    sdr_text_add(text, "}\n");
    size_t length = text->length;
    enum sdr_status status = sdr_text_take(text, &json);
    if (status == SDR_OK)
        status = sdr_path_with(path, ".truth.json", &name);
    if (status == SDR_OK)
        status = sdr_file_write(name, json, length);
    sdr_release(name);
    sdr_release(json);
    return status;
}

enum sdr_status sdr_alias_build(struct sdr_alias *alias, const double *weight, uint32_t count)
{
    double *scaled = NULL, sum = 0;
    uint32_t *stack = NULL; /* small columns from the front, large ones from the back */
    enum sdr_status status;
    *alias = (struct sdr_alias){.count = count};
    SDR_CHECK(sdr_allocate(&alias->other, count, sizeof *alias->other, "an alias table"));
    SDR_CHECK(sdr_allocate(&alias->chance, count, sizeof *alias->chance, "an alias table"));
    SDR_CHECK(sdr_allocate(&scaled, count, sizeof *scaled, "an alias table"));
    SDR_CHECK(sdr_allocate(&stack, count, sizeof *stack, "an alias table"));
    for (uint32_t i = 0; i < count; i++)
        sum += weight[i];
    uint32_t small = 0, large = count;
    for (uint32_t i = 0; i < count; i++) {
        scaled[i] = weight[i] * count / sum;
        if (scaled[i] < 1)
            stack[small++] = i;
        else
            stack[--large] = i;
        alias->other[i] = i; /* columns left over by rounding have probability 1 */
        alias->chance[i] = UINT32_MAX;
    }
    while (small > 0 && large < count) {
        uint32_t less = stack[--small], more = stack[large];
        alias->chance[less] = (uint32_t)(scaled[less] * 0x1p32);
        alias->other[less] = more;
        scaled[more] -= 1 - scaled[less];
        if (scaled[more] < 1) {
            large++;
            stack[small++] = more;
        }
    }
cleanup:
    sdr_release(scaled);
    sdr_release(stack);
    if (status != SDR_OK)
        sdr_alias_free(alias);
    return status;
}

void sdr_alias_free(struct sdr_alias *alias)
{
    sdr_release(alias->other);
    sdr_release(alias->chance);
    *alias = (struct sdr_alias){0};
}

/* Checkpoints: any bytes, or parts with fingerprint and checksum put right (tensors.h), as the
   checkpoint of a run that goes on from it. Whatever the numbers and arrays are, the run ends in
   time, within its memory, and with a status; what it writes is readable. */
#include "tensors.h"

#include "run/run.h"

#include <sys/stat.h>

enum { ROWS = 40, FEATURES = 3 };

/* One strategy steps through rows, the other keeps arrays of its own. */
static const char *const configurations[][12] = {
    {"model", "logistic", "optimizer", "adam", "average", "0", "early-stop", "2", "valid-fraction",
     "0.25"},
    {"model", "logistic", "sync", "batch"},
};

static struct sdr_data *make_data(void)
{
    static float x[ROWS * FEATURES], label[ROWS];
    struct sdr_data *data;
    for (int i = 0; i < ROWS; i++) {
        label[i] = (float)(i % 2);
        for (int j = 0; j < FEATURES; j++)
            x[i * FEATURES + j] = (float)((i * 7 + j * 5) % 11) / 11 + (float)(i % 2) * (float)j;
    }
    FUZZ_CHECK(sdr_data_dense(x, ROWS, FEATURES, FEATURES, label, NULL, &data) == SDR_OK);
    return data;
}

static struct sdr_run *make_run(const char *const *option, const char *folder,
                                struct sdr_data *data)
{
    struct sdr_options *options;
    struct sdr_run *run;
    FUZZ_CHECK(sdr_options_create(&options) == SDR_OK);
    FUZZ_CHECK(sdr_options_set(options, "threads", "1") == SDR_OK);
    FUZZ_CHECK(sdr_options_set(options, "epochs", "3") == SDR_OK);
    FUZZ_CHECK(sdr_options_set(options, "run", folder) == SDR_OK);
    FUZZ_CHECK(sdr_options_set(options, "checkpoint-every", "7u") == SDR_OK);
    FUZZ_CHECK(sdr_options_set(options, "resume", "yes") == SDR_OK);
    for (; *option; option += 2)
        FUZZ_CHECK(sdr_options_set(options, option[0], option[1]) == SDR_OK);
    struct sdr_data *valid;
    FUZZ_CHECK(sdr_data_open_valid(options, data, &valid) == SDR_OK);
    FUZZ_CHECK(sdr_run_create(options, data, valid, &run) == SDR_OK);
    sdr_options_destroy(options);
    return run;
}

static void put_file(const char *path, const uint8_t *bytes, size_t count)
{
    FILE *file = fopen(path, "w");
    FUZZ_CHECK(file && fwrite(bytes, 1, count, file) == count && fclose(file) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static struct sdr_data *data;
    char folder[64], path[160], command[96];
    if (!data)
        data = make_data();
    snprintf(folder, sizeof folder, "/dev/shm/sounder-fuzz-run-%ld", (long)getpid());
    snprintf(path, sizeof path, "%s/checkpoint-%020d.safetensors", folder, 1);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    for (size_t i = 0; i < sizeof configurations / sizeof *configurations; i++) {
        struct sdr_run *run = make_run(configurations[i], folder, data);
        size_t made;
        uint8_t *content = fuzz_tensors(bytes, count, "fingerprint", run->log.fingerprint, &made);
        char *summary;
        mkdir(folder, 0777);
        put_file(path, content, made);
        free(content);
        enum sdr_status status = sdr_run_train(run);
        FUZZ_CHECK(status == SDR_OK || status == SDR_BAD_FILE || status == SDR_USAGE ||
                   status == SDR_DIVERGED);
        FUZZ_CHECK(status == SDR_OK || *sdr_error());
        if (status == SDR_OK) {
            FUZZ_CHECK(sdr_run_summary(run, &summary) == SDR_OK);
            sdr_string_free(summary);
        }
        sdr_run_destroy(run);
        if (status != SDR_BAD_FILE && status != SDR_USAGE)
            FUZZ_CHECK(system(command) == 0); /* what the run itself wrote */
        else
            remove(path);
    }
    return 0;
}

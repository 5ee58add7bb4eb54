/* Laws of failing: a whole run through the public interface, again and again, with the n-th
   allocation, read or write failing, for n = 1, 2, 3 … until nothing is struck. Every time:
     the status is right and the sentence one line; no file is half-written and no temporary left;
     if the call succeeded all the same, the model is the very model;
     what was checkpointed before the failure resumes to the very model.
   Leaks and wrong accesses are the sanitizers' to find: run this under ASan too. Allocations of the
   libraries beneath are failed by cli/test_allocations.py. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/tensors.h"
#include "sounder/sounder.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

/* What is trained, and on which file. Options come in pairs. */
struct scenario {
    bool drifts; /* resumed, it computes again what was in flight, and ends with other bits */
    const char *data;
    const char *option[24];
};
static const struct scenario sparse = {
    false,
    "data.svm",
    {"model", "logistic", "optimizer", "adagrad", "l2", "0.001", "epochs", "3", "batch", "4",
     "checkpoint-every", "30u", "valid-fraction", "0.2", "early-stop", "3", "average", "1"}};
static const struct scenario columns = {false,
                                        "data.csv",
                                        {"optimizer", "adam:beta1=0.8", "l1", "0.0001", "epochs",
                                         "3", "checkpoint-every", "80u", "class-weight", "balanced",
                                         "valid", "valid.csv", "label", "kind"}};
static const struct scenario all_rows = {
    false,
    "data.svm",
    {"model", "logistic", "sync", "batch", "l1", "0.001", "epochs", "6", "checkpoint-every", "2u"}};
static const struct scenario cached = {
    false,
    "data.svm",
    {"cache", "cache", "model", "squared-hinge", "optimizer", "sgd", "epochs", "2"}};

static const struct scenario teams[] = {
    {false,
     "data.svm",
     {"sync", "hogwild:exchange=7,lanes=3", "deterministic", "yes", "workers", "3", "l2", "0.001",
      "epochs", "3", "checkpoint-every", "40u"}},
    {false,
     "data.svm",
     {"sync", "cyclades", "workers", "2", "l1", "0.001", "epochs", "3", "checkpoint-every", "40u"}},
    {false,
     "data.svm",
     {"sync", "bsp", "deterministic", "yes", "workers", "3", "batch", "8", "epochs", "3",
      "checkpoint-every", "4u"}},
    {false,
     "data.csv",
     {"sync", "average", "workers", "2", "epochs", "3", "checkpoint-every", "40u", "label",
      "kind"}}};

/* Nodes that exchange messages; in virtual time a run is the same every time. */
#define SIM "transport", "sim:latency=0.3", "compute", "exp:rate=1"
static const struct scenario networks[] = {
    {false,
     "data.svm",
     {"sync", "bsp", "deterministic", "yes", "workers", "2", "servers", "2", "batch", "8", "epochs",
      "2", "checkpoint-every", "10u"}},
    {false,
     "data.svm",
     {SIM, "sync", "bsp", "workers", "3", "servers", "2", "batch", "4", "l2", "0.001", "epochs",
      "2", "checkpoint-every", "5u"}},
    {true,
     "data.svm",
     {SIM, "sync", "k-sync:2", "workers", "3", "servers", "2", "batch", "4", "epochs", "2",
      "checkpoint-every", "5u"}},
    {true,
     "data.svm",
     {SIM, "sync", "async", "workers", "3", "batch", "4", "optimizer", "adam", "epochs", "2",
      "checkpoint-every", "20u"}},
    {true,
     "data.svm",
     {SIM, "sync", "async:push=2,fetch=4", "workers", "2", "batch", "4", "epochs", "2",
      "checkpoint-every", "10u"}},
    {true,
     "data.svm",
     {SIM, "sync", "ssp:1", "workers", "3", "servers", "2", "batch", "4", "epochs", "2",
      "checkpoint-every", "20u"}},
    {true,
     "data.svm",
     {SIM, "sync", "essp:staleness=2,budget=400", "workers", "3", "batch", "4", "epochs", "2",
      "checkpoint-every", "20u"}},
    {true,
     "ratings.triples",
     {SIM, "model", "mf:rank=3", "sync", "k-async:2", "workers", "3", "servers", "2", "batch", "4",
      "epochs", "2", "checkpoint-every", "10u"}},
    {true,
     "data.svm",
     {SIM, "model", "kmeans:3", "sync", "k-batch-async:2", "workers", "3", "batch", "4", "epochs",
      "2", "checkpoint-every", "10u"}}};
static const struct scenario statistics[] = {
    {false,
     "ratings.triples",
     {"model", "mf:rank=3", "sync", "rotation", "workers", "2", "epochs", "2", "checkpoint-every",
      "60u"}},
    {false,
     "data.svm",
     {"model", "kmeans:3", "batch", "8", "epochs", "2", "checkpoint-every", "10u"}}};
static const struct scenario recorded = {false,
                                         "data.svm",
                                         {"sync", "hogwild:exchange=7", "workers", "2", "record",
                                          "record", "epochs", "2"}},
                             replayed = {
                                 false,
                                 "data.svm",
                                 {"sync", "hogwild:exchange=7", "replay", "record", "epochs", "2"}};

/* ---- files ---- */
static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts;
    (void)kind;
    (void)place;
    return remove(path);
}

static void remove_all(const char *path)
{
    nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void write_svm(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 150; i++)
        fprintf(file, "%d %d:0.%d %d:1.5 20:1\n", i % 2 ? 1 : -1, i % 7 + 1, i % 9 + 1,
                i % 2 ? 10 + i % 3 : 13 + i % 4);
    fclose(file);
}

static void write_csv(const char *path, int rows)
{
    static const char *const colour[] = {"red", "green", "blue"}, *const kind[] = {"a", "b", "ü"};
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "size,colour,weight of it,kind\n");
    for (int i = 0; i < rows; i++)
        fprintf(file, "%d,%s,%g,%s\n", i % 11, colour[i * 7 % 3], i % 13 * 0.25, kind[i * 7 % 3]);
    fclose(file);
}

static void write_ratings(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 120; i++)
        fprintf(file, "u%d i%d %d\n", i * 5 % 11, i * 3 % 7, i % 5 + 1);
    fclose(file);
}

static int enter(void **state)
{
    (void)state;
    bool memory = access("/dev/shm", W_OK) == 0; /* fsync costs nothing there */
    snprintf(folder, sizeof folder, "%s/sounder-faults-XXXXXX", memory ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return -1;
    write_svm("data.svm");
    write_ratings("ratings.triples");
    write_csv("data.csv", 120);
    write_csv("valid.csv", 30);
    return 0;
}

static int leave(void **state)
{
    (void)state;
    if (chdir("/") != 0)
        return -1;
    remove_all(folder);
    return 0;
}

/* Every file in the folder is whole. */
static void expect_whole_files(const char *path)
{
    DIR *directory = opendir(path);
    struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        char name[512];
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (strstr(entry->d_name, ".tmp-"))
            fail_msg("%s was left behind", name);
        if (strstr(entry->d_name, ".safetensors")) {
            struct sdr_tensors file;
            if (sdr_tensors_read(name, &file) != SDR_OK)
                fail_msg("%s", sdr_error());
            sdr_tensors_free(&file);
        }
        if (strcmp(entry->d_name, "status.json") == 0 ||
            strcmp(entry->d_name, "metrics.jsonl") == 0) {
            char *bytes, *rest;
            size_t count;
            assert_int_equal(sdr_file_load(name, 1 << 20, &bytes, &count), SDR_OK);
            assert_true(count == 0 || bytes[count - 1] == '\n');
            for (char *line = strtok_r(bytes, "\n", &rest); line;
                 line = strtok_r(NULL, "\n", &rest)) {
                json_t *json = json_loads(line, 0, NULL);
                if (!json || !json_object_get(json, "updates"))
                    fail_msg("%s has a line that says nothing: %s", name, line);
                json_decref(json);
            }
            sdr_release(bytes);
        }
    }
    if (directory)
        closedir(directory);
}

static bool has_checkpoint(void)
{
    bool found = false;
    DIR *directory = opendir("run");
    struct dirent *entry;
    while (directory && (entry = readdir(directory)))
        found |= strncmp(entry->d_name, "checkpoint-", 11) == 0;
    if (directory)
        closedir(directory);
    return found;
}

/* ---- a whole run ---- */
struct outcome {
    char hash[33], file[33]; /* of the weights, of the bytes of the model file */
    uint64_t updates;
    float score[512], proba[512];
    size_t scores, probas;
};

static enum sdr_status set_options(struct sdr_options *options, const struct scenario *scenario,
                                   bool resume)
{
    SDR_TRY(sdr_options_set(options, "threads", "1"));
    SDR_TRY(sdr_options_set(options, "run", "run"));
    for (int i = 0; scenario->option[i]; i += 2)
        SDR_TRY(sdr_options_set(options, scenario->option[i], scenario->option[i + 1]));
    return resume ? sdr_options_set(options, "resume", "yes") : SDR_OK;
}

static enum sdr_status find_facts(const char *summary, struct outcome *outcome)
{
    json_t *json = json_loads(summary, 0, NULL);
    const char *text = json_string_value(json_object_get(json, "model_hash"));
    snprintf(outcome->hash, 33, "%s", text ? text : "missing");
    outcome->updates = (uint64_t)json_integer_value(json_object_get(json, "updates"));
    json_decref(json);
    return SDR_OK;
}

static enum sdr_status hash_file(const char *path, char hash[33])
{
    char *bytes;
    size_t count;
    SDR_TRY(sdr_file_load(path, 1 << 24, &bytes, &count));
    sdr_hash_text(bytes, count, hash);
    sdr_release(bytes);
    return SDR_OK;
}

static enum sdr_status use_model(const struct sdr_options *options, const struct scenario *scenario,
                                 struct outcome *outcome)
{
    struct sdr_model *model = NULL;
    struct sdr_data *data = NULL;
    char *text = NULL;
    enum sdr_status status;
    SDR_CHECK(sdr_model_load("model.safetensors", &model));
    SDR_CHECK(sdr_data_open(options, &scenario->data, 1, model, &data));
    outcome->scores = sdr_data_rows(data) * sdr_model_outputs(model);
    assert_true(outcome->scores <= 512);
    SDR_CHECK(sdr_model_predict(model, data, SDR_PREDICT_SCORE, outcome->score));
    status = sdr_model_predict(model, data, SDR_PREDICT_PROBA, outcome->proba);
    if (status == SDR_OK)
        outcome->probas = sdr_data_rows(data) * sdr_model_classes(model);
    else if (status != SDR_USAGE) /* a hinge has none */
        goto cleanup;
    SDR_CHECK(sdr_model_evaluate(model, data, &text));
    sdr_string_free(text);
    text = NULL;
    SDR_CHECK(sdr_model_inspect(model, &text));
cleanup:
    sdr_string_free(text);
    sdr_data_destroy(data);
    sdr_model_destroy(model);
    return status;
}

static enum sdr_status whole_run(const struct scenario *scenario, bool resume,
                                 struct outcome *outcome)
{
    struct sdr_options *options = NULL;
    struct sdr_data *data = NULL, *valid = NULL;
    struct sdr_run *run = NULL;
    struct sdr_model *model = NULL;
    char *text = NULL;
    enum sdr_status status;
    memset(outcome, 0, sizeof *outcome);
    SDR_CHECK(sdr_options_create(&options));
    SDR_CHECK(set_options(options, scenario, resume));
    SDR_CHECK(sdr_data_open(options, &scenario->data, 1, NULL, &data));
    SDR_CHECK(sdr_data_open_valid(options, data, &valid));
    SDR_CHECK(sdr_run_create(options, data, valid, &run));
    SDR_CHECK(sdr_run_train(run));
    SDR_CHECK(sdr_run_summary(run, &text));
    SDR_CHECK(find_facts(text, outcome));
    SDR_CHECK(sdr_run_model(run, &model));
    SDR_CHECK(sdr_model_save(model, "model.safetensors"));
    SDR_CHECK(hash_file("model.safetensors", outcome->file));
    SDR_CHECK(use_model(options, scenario, outcome));
cleanup:
    sdr_string_free(text);
    sdr_model_destroy(model);
    sdr_run_destroy(run);
    sdr_data_destroy(valid);
    sdr_data_destroy(data);
    sdr_options_destroy(options);
    return status;
}

/* ---- faults ---- */
static void clear_files(void)
{
    remove_all("run");
    remove_all("cache");
    remove("record");
    remove("model.safetensors");
    assert_int_equal(sdr_file_write("model.safetensors", "old", 3), SDR_OK);
}

/* After a failure: the old model or the whole new one, and whole files. */
static void expect_sound_files(void)
{
    char *bytes;
    size_t count;
    assert_int_equal(sdr_file_load("model.safetensors", 1 << 24, &bytes, &count), SDR_OK);
    if (count == 3)
        remove("model.safetensors");
    sdr_release(bytes);
    expect_whole_files(".");
    expect_whole_files("run");
    expect_whole_files("cache");
}

/* And a run that can go on. */
static void expect_sound_ruins(const struct scenario *scenario, const struct outcome *truth)
{
    struct outcome outcome;
    expect_sound_files();
    if (!has_checkpoint())
        return;
    if (whole_run(scenario, true, &outcome) != SDR_OK)
        fail_msg("what was left does not resume: %s", sdr_error());
    assert_int_equal(outcome.scores, truth->scores);
    assert_int_equal(outcome.updates, truth->updates);
    if (scenario->drifts)
        return;
    assert_string_equal(outcome.hash, truth->hash);
    assert_memory_equal(&outcome, truth, sizeof outcome);
}

static void sweep(const struct scenario *scenario, enum sdr_fault kind)
{
    struct outcome truth, outcome;
    uint64_t tolerated = 0;
    clear_files();
    if (whole_run(scenario, false, &truth) != SDR_OK)
        fail_msg("%s", sdr_error());
    assert_int_equal(strlen(truth.hash), 32);
    for (uint64_t nth = 1;; nth++) {
        clear_files();
        sdr_fault_arm(kind, nth);
        enum sdr_status status = whole_run(scenario, false, &outcome);
        bool struck = sdr_fault_count(kind) >= nth;
        sdr_fault_arm(kind, 0);
        if (status == SDR_OK) {
            if (memcmp(&outcome, &truth, sizeof truth) != 0)
                fail_msg("fault %d, operation %llu: no failure, but another model", kind,
                         (unsigned long long)nth);
            tolerated += struck;
        } else {
            const char *sentence = sdr_error();
            if (status != SDR_RUNTIME || !*sentence || strpbrk(sentence, "\n\r"))
                fail_msg("fault %d, operation %llu: status %d, %s", kind, (unsigned long long)nth,
                         status, sentence);
        }
        expect_sound_ruins(scenario, &truth);
        if (!struck) {
            print_message("%s, fault %d: %llu operations, %llu failures did no harm\n",
                          scenario->data, kind, (unsigned long long)nth - 1,
                          (unsigned long long)tolerated);
            return;
        }
    }
}

static void sparse_run_survives_every_failed_allocation(void **state)
{
    (void)state;
    sweep(&sparse, SDR_FAULT_ALLOCATE);
}

static void sparse_run_survives_every_failed_read(void **state)
{
    (void)state;
    sweep(&sparse, SDR_FAULT_READ);
}

static void sparse_run_survives_every_failed_write(void **state)
{
    (void)state;
    sweep(&sparse, SDR_FAULT_WRITE);
}

static void csv_run_survives_every_failed_allocation(void **state)
{
    (void)state;
    sweep(&columns, SDR_FAULT_ALLOCATE);
}

static void csv_run_survives_every_failed_read_and_write(void **state)
{
    (void)state;
    sweep(&columns, SDR_FAULT_READ);
    sweep(&columns, SDR_FAULT_WRITE);
}

static void batch_run_survives_every_failure(void **state)
{
    (void)state;
    sweep(&all_rows, SDR_FAULT_ALLOCATE);
    sweep(&all_rows, SDR_FAULT_WRITE);
}

static void teams_survive_every_failure(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof teams / sizeof *teams; i++) {
        sweep(&teams[i], SDR_FAULT_ALLOCATE);
        sweep(&teams[i], SDR_FAULT_WRITE);
    }
}

static void nodes_survive_every_failure(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        sweep(&networks[i], SDR_FAULT_ALLOCATE);
        sweep(&networks[i], SDR_FAULT_WRITE);
    }
}

static void pairs_and_clusters_survive_every_failure(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof statistics / sizeof *statistics; i++) {
        sweep(&statistics[i], SDR_FAULT_ALLOCATE);
        sweep(&statistics[i], SDR_FAULT_WRITE);
    }
}

/* Workers race: every run is another one. A record that is there is whole, and of the model that is
   there. */
static void sweep_records(enum sdr_fault kind)
{
    struct outcome outcome, again;
    bool struck = true;
    for (uint64_t nth = 1; struck; nth++) {
        clear_files();
        sdr_fault_arm(kind, nth);
        enum sdr_status status = whole_run(&recorded, false, &outcome);
        struck = sdr_fault_count(kind) >= nth;
        sdr_fault_arm(kind, 0);
        if (status != SDR_OK && (status != SDR_RUNTIME || strpbrk(sdr_error(), "\n\r")))
            fail_msg("fault %d, operation %llu: status %d, %s", kind, (unsigned long long)nth,
                     status, sdr_error());
        expect_sound_files();
        bool written = access("record", F_OK) == 0;
        assert_true(written || status != SDR_OK);
        remove_all("run");
        if (written && whole_run(&replayed, false, &again) != SDR_OK)
            fail_msg("fault %d, operation %llu: the record that is there is none: %s", kind,
                     (unsigned long long)nth, sdr_error());
        if (status == SDR_OK)
            assert_string_equal(again.hash, outcome.hash);
    }
}

static void recorded_run_survives_every_failure(void **state)
{
    (void)state;
    sweep_records(SDR_FAULT_ALLOCATE);
    sweep_records(SDR_FAULT_WRITE);
}

static void cached_run_survives_every_failure(void **state)
{
    (void)state;
    sweep(&cached, SDR_FAULT_ALLOCATE);
    sweep(&cached, SDR_FAULT_READ);
    sweep(&cached, SDR_FAULT_WRITE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sparse_run_survives_every_failed_allocation),
        cmocka_unit_test(sparse_run_survives_every_failed_read),
        cmocka_unit_test(sparse_run_survives_every_failed_write),
        cmocka_unit_test(csv_run_survives_every_failed_allocation),
        cmocka_unit_test(csv_run_survives_every_failed_read_and_write),
        cmocka_unit_test(batch_run_survives_every_failure),
        cmocka_unit_test(teams_survive_every_failure),
        cmocka_unit_test(nodes_survive_every_failure),
        cmocka_unit_test(pairs_and_clusters_survive_every_failure),
        cmocka_unit_test(recorded_run_survives_every_failure),
        cmocka_unit_test(cached_run_survives_every_failure),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}

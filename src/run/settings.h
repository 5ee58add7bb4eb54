/* The options of a run: typed, with one table for parsing, help, config files and printing. */
#ifndef SDR_SETTINGS_H
#define SDR_SETTINGS_H

#include "base/option.h"
#include "data/data.h"
#include "plugin.h"

enum sdr_command {
    SDR_TRAIN = 1,
    SDR_PREDICT = 2,
    SDR_EVAL = 4,
    SDR_INSPECT = 8,
    SDR_CONVERT = 16,
    SDR_GENERATE = 32,
    SDR_COMPARE = 64
};
/* More bits of a row's `commands`: its group in the help, and whether the short help has it. */
enum {
    SDR_GROUP_DATA = 1 << 8,
    SDR_GROUP_MODEL = 1 << 9,
    SDR_GROUP_OPTIMISATION = 1 << 10,
    SDR_GROUP_PARALLEL = 1 << 11,
    SDR_GROUP_SIMULATION = 1 << 12,
    SDR_GROUP_OUTPUT = 1 << 13,
    SDR_COMMON = 1 << 14
};
struct sdr_option_group {
    unsigned bit;
    const char *title;
};
enum sdr_scale_choice { SDR_SCALE_AUTO, SDR_SCALE_NONE, SDR_SCALE_FEATURE };
enum sdr_shuffle_choice {
    SDR_SHUFFLE_AUTO,
    SDR_SHUFFLE_ROWS,
    SDR_SHUFFLE_CHUNKS,
    SDR_SHUFFLE_BLOCKS,
    SDR_SHUFFLE_NONE
};

struct sdr_settings {
    /* data */
    char *format, *label, *labels, *weight, *ignore, *categories, *cache, *scratch;
    uint64_t bits, memory, threads;
    int base, missing, cpu;
    /* model and training */
    char *model, *optimizer, *schedule, *sync, *class_weight, *average;
    char *transport, *compute, *delay, *slow, *codec, *aggregate;
    double lr, l1, l2, group_lasso;
    int penalty_on, scale, shuffle, pin;
    bool standardize, intercept, deterministic, dedicated_servers;
    uint64_t batch, lr_batch, epochs, updates, seed, workers, servers;
    /* validation, logs, checkpoints */
    char *valid, *valid_labels, *run, *checkpoint_every, *evaluate_every, *target, *record, *replay;
    double valid_fraction;
    uint64_t early_stop, restarts;
    bool resume;
    /* generate */
    uint64_t rows, features, nnz, classes;
    double noise;
};

/* The options set by the user, and the report function. The public handle. */
struct sdr_options {
    struct sdr_settings settings;
    uint64_t *was_set; /* owned: the rows of the table that were set (base/bits.h) */
    sdr_report_function *report;
    void *report_context;
};

/* options_table.c */
extern const struct sdr_option sdr_settings_table[];
extern const struct sdr_option_group sdr_settings_groups[]; /* ends with bit 0 */

/* Fills a zeroed handle with the values and the report function of another. Release it in every
   case. */
enum sdr_status sdr_options_copy(const struct sdr_options *from, struct sdr_options *to);
/* Frees the members of the handle, not the handle. */
void sdr_options_release(struct sdr_options *options);
bool sdr_options_given(const struct sdr_options *options, const char *name);
/* The value in force, whole, for JSON; NULL: out of memory. */
json_t *sdr_option_json(const struct sdr_options *options, const char *name);
/* Makes --cpu the level of the process (base/cpu.h). */
enum sdr_status sdr_settings_cpu(const struct sdr_options *options);
/* The data options of a run, after sdr_settings_cpu(); *format_name is given away and must outlive
   them. */
enum sdr_status sdr_settings_data(const struct sdr_options *options, struct sdr_data_options *data,
                                  char **format_name);

/* "60s" or "1000u" (--checkpoint-every). */
bool sdr_parse_every(const char *text, double *seconds, uint64_t *updates);

/* Finds a plug-in of a NULL-terminated table by the name in "name:options", or fails naming the
   nearest; parses its options into *parsed (allocated with the defaults; given away; NULL if it has
   none). */
enum sdr_status sdr_plugin_choose(const char *kind, const void *table, const char *spec,
                                  const struct sdr_plugin **plugin, void **parsed);
/* Frees the options of a plug-in, with their texts; NULL options are fine. */
void sdr_plugin_free(const void *plugin, void *parsed);
/* The optimizers compiled for the CPU level in use. */
const void *sdr_optimizers(void);
/* The same optimizer with the loops that step cells: those of AVX2 at the level AVX-512 too, whose
   wider vectors take longer to turn. Measured, an epoch of 800 000 rows of 84 entries: 1.12 times
   as fast on Sapphire Rapids. */
struct sdr_optimizer;
const struct sdr_optimizer *sdr_cell_optimizer(const struct sdr_optimizer *optimizer);

void sdr_note(const struct sdr_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif

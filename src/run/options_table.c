/* The table of run options: their keys, types, defaults, ranges and help, the commands that take
   them, and the group of the help they belong to. A help line says what the option does, in which
   unit, and what its default means; the default itself is printed behind it. */
#include "run/settings.h"

enum {
    TRAINS = SDR_TRAIN | SDR_COMPARE,
    READS = TRAINS | SDR_PREDICT | SDR_EVAL | SDR_INSPECT | SDR_CONVERT,
    DEFINES = TRAINS | SDR_INSPECT | SDR_CONVERT, /* what columns mean; later the model says it */
    SEEDED = TRAINS | SDR_GENERATE,
    DATA = SDR_GROUP_DATA,
    MODEL = SDR_GROUP_MODEL,
    OPTIMISATION = SDR_GROUP_OPTIMISATION,
    PARALLEL = SDR_GROUP_PARALLEL,
    SIMULATION = SDR_GROUP_SIMULATION,
    OUTPUT = SDR_GROUP_OUTPUT,
    COMMON = SDR_COMMON
};
#define AT(member) offsetof(struct sdr_settings, member)

const struct sdr_option_group sdr_settings_groups[] = {
    {SDR_GROUP_DATA, "data"},
    {SDR_GROUP_MODEL, "model"},
    {SDR_GROUP_OPTIMISATION, "optimisation"},
    {SDR_GROUP_PARALLEL, "parallel training"},
    {SDR_GROUP_SIMULATION, "simulated clusters, and delays"},
    {SDR_GROUP_OUTPUT, "run and output"},
    {0}};

const struct sdr_option sdr_settings_table[] = {
    /* data */
    {"format", SDR_TEXT, "auto", "NAME", 0, 0,
     "file format ('sounder list format'); auto: by extension, then by content", AT(format),
     READS | DATA},
    {"label", SDR_TEXT, NULL, "COLUMN", 0, 0,
     "CSV: label column, by name or position (3 or c3); none: no label; default: the column label, "
     "target, class or y, else the last",
     AT(label), READS | DATA | COMMON},
    {"labels", SDR_TEXT, NULL, "FILE", 0, 0, "IDX, NPY, NPZ, Matrix Market: file with the labels",
     AT(labels), READS | DATA},
    {"weight", SDR_TEXT, NULL, "COLUMN", 0, 0, "CSV: column with sample weights; default: all 1",
     AT(weight), READS | DATA},
    {"ignore", SDR_TEXT, NULL, "COLUMNS", 0, 0,
     "CSV: columns to drop, separated by commas: a,b,\"name, with comma\"", AT(ignore),
     DEFINES | DATA},
    {"categories", SDR_TEXT, NULL, "COLUMNS", 0, 0,
     "CSV: columns to treat as categories although they hold numbers; a list as in --ignore",
     AT(categories), DEFINES | DATA},
    {"bits", SDR_INTEGER, "0", "N", 0, 30,
     "hash features into 2^N buckets; 0: no hashing (VW text: 18)", AT(bits), DEFINES | DATA},
    {"base", SDR_CHOICE, "auto", "auto|0|1", 0, 0,
     "index of the first feature in sparse text; auto: 0 if that index occurs, else 1", AT(base),
     DEFINES | DATA},
    {"missing", SDR_CHOICE, "error", "error|zero|mean", 0, 0,
     "a missing cell is an error, 0, or the mean of its column", AT(missing), READS | DATA},
    {"cache", SDR_TEXT, NULL, "DIR", 0, 0,
     "folder for cache files of parsed data; later runs load them many times faster", AT(cache),
     READS | DATA},
    {"memory", SDR_SIZE, "0", "SIZE", 0, 0,
     "memory limit for the data in bytes, such as 2G; larger data streams from disk; 0: no limit",
     AT(memory), READS | DATA},
    {"scratch", SDR_TEXT, "/tmp", "DIR", 0, 0,
     "folder for temporary files of streamed data, unless --cache is given", AT(scratch),
     READS | DATA},
    {"threads", SDR_INTEGER, "0", "N", 0, 1024,
     "threads for reading, evaluation and --sync batch (other training: --workers); 0: all cores",
     AT(threads), READS | PARALLEL},
    {"cpu", SDR_CHOICE, "auto", "auto|portable|avx2|avx512", 0, 0,
     "instruction set of the kernels; portable: SSE2 or NEON; auto: the best this CPU supports; "
     "results are identical",
     AT(cpu), READS | PARALLEL},
    /* model */
    {"model", SDR_TEXT, "auto", "NAME", 0, 0,
     "model to train ('sounder list model'); auto, by the labels: logistic for 2 distinct values, "
     "softmax for text or up to 30 distinct integers, squared for other numbers, mf for ratings",
     AT(model), TRAINS | MODEL | COMMON},
    {"intercept", SDR_FLAG, "yes", NULL, 0, 0, "fit an intercept (off: --no-intercept)",
     AT(intercept), TRAINS | MODEL},
    {"class-weight", SDR_TEXT, "none", "W", 0, 0,
     "weight of classes in the loss: none, balanced (by inverse frequency), or LABEL=W,LABEL=W",
     AT(class_weight), TRAINS | MODEL},
    {"l1", SDR_NUMBER, "0", "X", 0, 1e30,
     "L1 penalty X·Σ|w|; for weights of exactly 0 use --optimizer ftrl or --sync batch", AT(l1),
     TRAINS | MODEL},
    {"l2", SDR_NUMBER, "0", "X", 0, 1e30,
     "L2 penalty X/2·Σw², applied after each step (docs/models.md)", AT(l2),
     TRAINS | MODEL | COMMON},
    {"group-lasso", SDR_NUMBER, "0", "X", 0, 1e30,
     "softmax: penalty X·Σ‖w‖, with w the weights of a feature over all classes", AT(group_lasso),
     TRAINS | MODEL},
    {"penalty-on", SDR_CHOICE, "mean", "mean|sum", 0, 0,
     "add penalties to the mean loss, Σ wᵢ·lossᵢ / Σ wᵢ with weights, or to the sum Σ wᵢ·lossᵢ "
     "(liblinear's convention: X = 1/C)",
     AT(penalty_on), TRAINS | MODEL},
    {"standardize", SDR_FLAG, "no", NULL, 0, 0,
     "apply --l1 and --l2 as if every feature had unit variance; the data is not changed",
     AT(standardize), TRAINS | MODEL},
    {"scale", SDR_CHOICE, "auto", "auto|none|feature", 0, 0,
     "feature: divide each feature by its size internally, so that --lr does not depend on its "
     "unit; none: use the data as they are; auto: feature, except for mf, graph-cut and ftrl with "
     "penalties",
     AT(scale), TRAINS | MODEL},
    /* training */
    {"optimizer", SDR_TEXT, "auto", "NAME", 0, 0,
     "update rule ('sounder list optimizer'); auto: the model's default if it has one, else "
     "adagrad",
     AT(optimizer), TRAINS | OPTIMISATION | COMMON},
    {"lr", SDR_NUMBER, "0", "X", 0, 1e30,
     "learning rate (step size), in units of the scaled features (--scale); 0: chosen from the "
     "data",
     AT(lr), TRAINS | OPTIMISATION | COMMON},
    {"lr-batch", SDR_INTEGER, "0", "N", 0, 4e9,
     "--lr is the step for updates of N rows; for B rows, of all workers whose gradients are "
     "averaged, it is multiplied by B/N (linear scaling rule); 0: --lr as it is",
     AT(lr_batch), TRAINS | OPTIMISATION},
    {"schedule", SDR_TEXT, "auto", "NAME", 0, 0,
     "how the learning rate changes ('sounder list schedule'); auto: linear to 0, constant for "
     "ftrl, recent for kmeans",
     AT(schedule), TRAINS | OPTIMISATION},
    {"average", SDR_TEXT, "auto", "N", 0, 0,
     "average the weights from the end of epoch N on, sampled every k updates (docs/models.md); 0: "
     "from the start; auto and no: no averaging",
     AT(average), TRAINS | OPTIMISATION},
    {"batch", SDR_INTEGER, "0", "N", 0, 16777216,
     "rows per gradient and worker; 0: chosen by model and strategy, mostly 1 (docs/models.md)",
     AT(batch), TRAINS | OPTIMISATION | COMMON},
    {"epochs", SDR_INTEGER, "0", "N", 0, 1e9,
     "passes over the data; 0: 2 to 20 (batches: 32), fewer for more rows; with --sync batch until "
     "it has converged",
     AT(epochs), TRAINS | OPTIMISATION | COMMON},
    {"updates", SDR_INTEGER, "0", "N", 0, 1e18, "stop after N updates of the model; 0: no limit",
     AT(updates), TRAINS | OPTIMISATION},
    {"shuffle", SDR_CHOICE, "auto", "auto|rows|chunks|blocks|none", 0, 0,
     "unit that is shuffled in each epoch: rows, chunks (16 or 32 adjacent rows) or blocks (of "
     "streamed data); none: file order; auto: rows, chunks for large data, blocks for streamed "
     "data",
     AT(shuffle), TRAINS | OPTIMISATION},
    {"sync", SDR_TEXT, "auto", "NAME", 0, 0,
     "parallel strategy ('sounder list sync'); serial: one worker; auto: all cores, the same model "
     "for any number of them, or one worker where that ends at a lower loss (a note says why)",
     AT(sync), SDR_TRAIN | PARALLEL | COMMON},
    {"transport", SDR_TEXT, "threads", "NAME", 0, 0,
     "how servers and workers exchange messages ('sounder list transport'), for strategies with a "
     "server",
     AT(transport), TRAINS | PARALLEL},
    {"codec", SDR_TEXT, "none", "NAME", 0, 0,
     "encoding of gradients in messages ('sounder list codec'), for strategies with a server",
     AT(codec), TRAINS | PARALLEL},
    {"aggregate", SDR_TEXT, "mean", "NAME", 0, 0,
     "how the gradients of several workers become one ('sounder list aggregate')", AT(aggregate),
     TRAINS | PARALLEL},
    {"servers", SDR_INTEGER, "1", "N", 1, 64,
     "parameter servers, each with a part of the parameters, for strategies with a server; mpi: "
     "spread over the processes, each of which holds its part alone",
     AT(servers), TRAINS | PARALLEL},
    {"dedicated-servers", SDR_FLAG, "no", NULL, 0, 0,
     "--transport mpi: servers get processes without workers", AT(dedicated_servers),
     TRAINS | PARALLEL},
    {"compute", SDR_TEXT, NULL, "TIMES", 0, 0,
     "--transport sim: compute time of a gradient in virtual seconds, such as "
     "const:1+exp:rate=0.5; "
     "default: const:1",
     AT(compute), TRAINS | SIMULATION},
    {"delay", SDR_TEXT, NULL, "TIMES", 0, 0,
     "delay added to every gradient in seconds, to emulate stragglers, such as exp:mean=0.01; "
     "default: none",
     AT(delay), TRAINS | SIMULATION},
    {"slow", SDR_TEXT, NULL, "W:Fx", 0, 0,
     "make worker W (from 0) F times slower, such as 2:3x or 2:3x,5:10x", AT(slow),
     TRAINS | SIMULATION},
    {"workers", SDR_INTEGER, "0", "N", 0, 100000,
     "workers that train; 0: all cores (mpi: all processes); not for serial and batch, which have "
     "one",
     AT(workers), TRAINS | PARALLEL | COMMON},
    {"pin", SDR_CHOICE, "auto", "auto|yes|no", 0, 0,
     "pin every worker to a core; auto: on machines with several NUMA nodes", AT(pin),
     TRAINS | PARALLEL},
    {"deterministic", SDR_FLAG, "no", NULL, 0, 0,
     "same model, bit for bit, for any number of workers; refused for strategies that cannot "
     "guarantee it",
     AT(deterministic), TRAINS | PARALLEL},
    {"seed", SDR_INTEGER, "1", "N", 0, 0, "seed of all random numbers", AT(seed),
     SEEDED | OPTIMISATION | COMMON},
    /* watching */
    {"valid", SDR_TEXT, NULL, "FILE", 0, 0, "validation data, evaluated after every epoch",
     AT(valid), TRAINS | DATA | COMMON},
    {"valid-labels", SDR_TEXT, NULL, "FILE", 0, 0,
     "labels of --valid, for formats that need --labels", AT(valid_labels), TRAINS | DATA},
    {"valid-fraction", SDR_NUMBER, "0", "F", 0, 0.99,
     "hold out this fraction of the rows for validation, the same ones in every run; 0: none",
     AT(valid_fraction), TRAINS | DATA | COMMON},
    {"early-stop", SDR_INTEGER, "0", "N", 0, 1e9,
     "stop after N epochs without a lower validation loss, and keep the best model; 0: off",
     AT(early_stop), TRAINS | OPTIMISATION},
    {"restarts", SDR_INTEGER, "0", "N", 0, 1000,
     "when the loss diverges, restore the last good weights and halve the step, at most N times; "
     "0: never",
     AT(restarts), TRAINS | OPTIMISATION},
    {"target", SDR_TEXT, NULL, "LOSS", 0, 0,
     "stop once the validation loss or, without validation data, the training objective is at most "
     "LOSS",
     AT(target), SDR_TRAIN | OPTIMISATION},
    {"evaluate-every", SDR_TEXT, "no", "N", 0, 0,
     "report the objective (of 20 000 rows at most) and the validation loss every N updates; 0: "
     "after every epoch; auto: about 100 times, more often at first; no: never",
     AT(evaluate_every), TRAINS | OUTPUT},
    {"run", SDR_TEXT, NULL, "DIR", 0, 0, "folder for metrics, status and checkpoints", AT(run),
     SDR_TRAIN | OUTPUT | COMMON},
    {"checkpoint-every", SDR_TEXT, "60s", "T", 0, 0,
     "write a checkpoint every T seconds (60s) or updates (100000u); needs --run",
     AT(checkpoint_every), SDR_TRAIN | OUTPUT},
    {"resume", SDR_FLAG, "no", NULL, 0, 0, "continue from the newest checkpoint in --run",
     AT(resume), SDR_TRAIN | OUTPUT},
    {"record", SDR_TEXT, NULL, "FILE", 0, 0,
     "record the order in which racing workers (--sync hogwild) change the model", AT(record),
     SDR_TRAIN | OUTPUT},
    {"replay", SDR_TEXT, NULL, "FILE", 0, 0,
     "replay a recorded run with one worker, and report the loss caused by its races", AT(replay),
     SDR_TRAIN | OUTPUT},
    /* generate */
    {"rows", SDR_INTEGER, "10000", "N", 1, 4e9, "number of rows", AT(rows), SDR_GENERATE | DATA},
    {"features", SDR_INTEGER, "0", "N", 0, 2e9, "number of features; 0: the generator's default",
     AT(features), SDR_GENERATE | DATA},
    {"nnz", SDR_INTEGER, "0", "N", 0, 1e6, "mean non-zeros per row; 0: the generator's default",
     AT(nnz), SDR_GENERATE | DATA},
    {"classes", SDR_INTEGER, "2", "N", 2, 1e6, "classes, clusters or topics", AT(classes),
     SDR_GENERATE | DATA},
    {"noise", SDR_NUMBER, "0.1", "X", 0, 1e9,
     "fraction of labels flipped, or standard deviation of the noise", AT(noise),
     SDR_GENERATE | DATA},
    {0}};

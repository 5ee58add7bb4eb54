/* sounder compare: several strategies or other options on one problem, with several seeds each. The
   library reports their curves point by point: error against time and against updates. */
#include "compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SEEDS = 10, SEEDS_MOST = 10000 };

/* ---- options ---- */
static enum sdr_status parse_seeds(struct cli_comparison *c)
{
    const char *text = c->arguments->seeds;
    char *end = NULL;
    c->seeds = SEEDS;
    if (text) {
        unsigned long long seeds = strtoull(text, &end, 10);
        if (*end || text[0] < '0' || text[0] > '9' || seeds < 1 || seeds > SEEDS_MOST)
            return cli_fail(SDR_USAGE, "--seeds is a number from 1 to %d, not '%s'", SEEDS_MOST,
                            text);
        c->seeds = (size_t)seeds;
    }
    c->first_seed = strtoull(sdr_options_get(c->arguments->options, "seed"), NULL, 10);
    return SDR_OK;
}

static enum sdr_status parse_target(struct cli_comparison *c)
{
    const char *text = c->arguments->target;
    char *end = NULL;
    c->target = NAN;
    if (!text)
        return SDR_OK;
    c->target = strtod(text, &end);
    if (*end || end == text || !isfinite(c->target))
        return cli_fail(SDR_USAGE, "--target takes a loss, not '%s'", text);
    return SDR_OK;
}

static enum sdr_status parse_axes(struct cli_comparison *c)
{
    static const char *const axes[] = {
        [CLI_BY_TIME] = "seconds", [CLI_BY_UPDATES] = "updates", [CLI_BY_ROWS] = "rows"};
    const struct cli_arguments *arguments = c->arguments;
    const char *x = arguments->chart_x, *y = arguments->chart_y;
    if ((x || y) && !arguments->chart)
        return cli_fail(SDR_USAGE, "--chart-%c needs --chart FILE", x ? 'x' : 'y');
    while (x && c->chart_x <= CLI_BY_ROWS && strcmp(x, axes[c->chart_x]) != 0)
        c->chart_x++;
    if (c->chart_x > CLI_BY_ROWS)
        return cli_fail(SDR_USAGE, "--chart-x is seconds, updates or rows, not '%s'", x);
    c->chart_error = y && strcmp(y, "error") == 0;
    if (y && !c->chart_error && strcmp(y, "loss") != 0)
        return cli_fail(SDR_USAGE, "--chart-y is loss or error, not '%s'", y);
    if (c->chart_error && !*sdr_options_get(arguments->options, "valid") &&
        strcmp(sdr_options_get(arguments->options, "valid-fraction"), "0") == 0)
        return cli_fail(SDR_USAGE, "--chart-y error needs --valid or --valid-fraction");
    return SDR_OK;
}

static enum sdr_status parse_options(struct cli_comparison *c)
{
    const struct cli_arguments *arguments = c->arguments;
    CLI_TRY(cli_arguments_check_input(arguments));
    CLI_TRY(parse_seeds(c));
    CLI_TRY(parse_target(c));
    CLI_TRY(parse_axes(c));
    if (strcmp(sdr_options_get(arguments->options, "evaluate-every"), "no") == 0)
        CLI_TRY(sdr_options_set(arguments->options, "evaluate-every", "auto"));
    CLI_TRY(cli_contenders_make(c));
    if (arguments->report)
        CLI_TRY(cli_output_check_all("--report", arguments->report, arguments,
                                     arguments->path_count, true));
    if (arguments->chart)
        CLI_TRY(cli_output_check_all("--chart", arguments->chart, arguments, arguments->path_count,
                                     true));
    if (arguments->report && arguments->chart && strcmp(arguments->report, arguments->chart) == 0)
        return cli_fail(SDR_USAGE, "--report and --chart are the same file");
    return SDR_OK;
}

/* ---- a run ---- */
struct listener {
    struct cli_comparison *comparison;
    struct cli_trial *trial;
};

static void on_report(void *context, const struct sdr_report *report)
{
    struct listener *listener = context;
    struct cli_trial *trial = listener->trial;
    if (report->kind != SDR_REPORT_POINT)
        return;
    if (trial->points == trial->room) {
        size_t room = trial->room ? 2 * trial->room : 128;
        struct cli_point *more = realloc(trial->point, room * sizeof *more);
        trial->failed |= !more;
        if (!more)
            return;
        trial->point = more;
        trial->room = room;
    }
    if (report->metric)
        listener->comparison->metric = strcmp(report->metric, "r2") == 0 ? "r2" : "accuracy";
    trial->point[trial->points++] = (struct cli_point){
        report->seconds,   (double)report->updates, (double)report->rows,
        report->objective, report->valid_loss,      report->metric ? report->valid_metric : NAN};
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Drops measurements of this machine: equal runs have equal summaries. */
static enum sdr_status keep_summary(struct cli_trial *trial, const struct sdr_run *run)
{
    static const char *const passing[] = {"seconds_read", "seconds_total", "peak_rss_bytes"};
    char *text = NULL;
    CLI_TRY(sdr_run_summary(run, &text));
    enum sdr_status status = cli_json_parse(text, &trial->summary);
    sdr_string_free(text);
    CLI_TRY(status);
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        json_object_del(trial->summary, passing[i]);
    return SDR_OK;
}

static enum sdr_status create_run(struct cli_comparison *c, size_t contender, size_t seed,
                                  struct sdr_data *train, struct sdr_data *valid,
                                  struct sdr_run **run)
{
    char number[32];
    struct sdr_options *options = c->contender[contender].options;
    snprintf(number, sizeof number, "%llu", (unsigned long long)(c->first_seed + seed));
    CLI_TRY(sdr_options_set(options, "seed", number));
    enum sdr_status status = sdr_run_create(options, train, valid, run);
    return cli_contender_failed(&c->contender[contender], status);
}

static enum sdr_status run_trial(struct cli_comparison *c, size_t contender, size_t seed,
                                 struct sdr_data *train, struct sdr_data *valid)
{
    struct cli_trial *trial = &c->contender[contender].trial[seed];
    struct listener listener = {c, trial};
    struct sdr_run *run = NULL;
    double started = now();
    sdr_options_report(c->contender[contender].options, on_report, &listener);
    enum sdr_status status = create_run(c, contender, seed, train, valid, &run);
    if (status == SDR_OK) {
        cli_signals_run(run);
        status = sdr_run_train(run);
        cli_signals_run(NULL);
    }
    bool diverged = status == SDR_DIVERGED;
    if (diverged)
        status = SDR_OK;
    if (status == SDR_OK && cli_process == 0)
        status = keep_summary(trial, run);
    if (status == SDR_OK && trial->failed)
        status = cli_fail(SDR_RUNTIME, "out of memory");
    if (status == SDR_OK)
        trial->outcome = diverged ? CLI_DIVERGED : CLI_TRAINED;
    trial->wall = now() - started;
    sdr_run_destroy(run);
    return status;
}

/* "[3/40] async seed 1: objective 0.123, 45.2 s, ETA 3:20" */
static void tell(const struct cli_comparison *c, size_t contender, size_t seed, size_t done,
                 double spent)
{
    const struct cli_trial *trial = &c->contender[contender].trial[seed];
    char text[CLI_NUMBER_TEXT];
    size_t all = c->count * c->seeds;
    if (c->arguments->given & CLI_QUIET)
        return;
    cli_progress_clear();
    fprintf(stderr, "[%zu/%zu] ", done, all);
    cli_print_clean(stderr, c->contender[contender].label);
    fprintf(stderr, " seed %llu: ", (unsigned long long)(c->first_seed + seed));
    if (trial->outcome == CLI_DIVERGED)
        fputs("diverged", stderr);
    else
        fprintf(stderr, "objective %.4g", cli_summary_number(trial, "objective"));
    fprintf(stderr, ", %.4g %ss", cli_summary_number(trial, "seconds_train"),
            c->simulated ? "virtual " : "");
    if (done < all)
        fprintf(stderr, ", ETA %s",
                cli_duration_text(text, spent / (double)done * (double)(all - done)));
    putc('\n', stderr);
    fflush(stderr);
}

/* Labels decide whether there is an error to draw: known with the first point of a curve. */
static enum sdr_status check_metric(const struct cli_comparison *c, const struct cli_trial *trial)
{
    bool classes = c->metric && strcmp(c->metric, "accuracy") == 0;
    if (!c->chart_error || classes || cli_process > 0 || trial->points == 0)
        return SDR_OK;
    return cli_fail(SDR_USAGE, "--chart-y error needs a model of classes");
}

/* All processes of a job execute the same runs in the same order. */
static enum sdr_status run_all(struct cli_comparison *c, struct sdr_data *train,
                               struct sdr_data *valid)
{
    double started = now();
    size_t done = 0;
    for (size_t i = 0; i < c->count; i++) { /* refuse impossible combinations before training */
        struct sdr_run *run = NULL;
        sdr_options_report(c->contender[i].options, NULL, NULL);
        CLI_TRY(create_run(c, i, 0, train, valid, &run));
        sdr_run_destroy(run);
    }
    for (size_t s = 0; s < c->seeds; s++)
        for (size_t i = 0; i < c->count; i++) {
            enum sdr_status status = run_trial(c, i, s, train, valid);
            if (cli_signals_stopped())
                return cli_fail(SDR_RUNTIME, "stopped on request after %zu of %zu runs", done,
                                c->count * c->seeds);
            CLI_TRY(status);
            CLI_TRY(check_metric(c, &c->contender[i].trial[s]));
            tell(c, i, s, ++done, now() - started);
        }
    return SDR_OK;
}

static enum sdr_status show(const struct cli_comparison *c)
{
    if (cli_process > 0)
        return SDR_OK;
    if (c->arguments->report)
        CLI_TRY(cli_report_write(c, c->arguments->report));
    if (c->arguments->chart)
        CLI_TRY(cli_chart_write(c, c->arguments->chart));
    return c->arguments->given & CLI_JSON ? cli_print_object(cli_comparison_json(c))
                                          : cli_print_comparison(c);
}

static enum sdr_status compare(struct cli_arguments *arguments)
{
    struct cli_comparison c = {.arguments = arguments};
    struct sdr_data *train = NULL, *valid = NULL;
    enum sdr_status status;
    CLI_CHECK(parse_options(&c));
    CLI_CHECK(cli_job_start(arguments));
    CLI_CHECK(
        sdr_data_open(arguments->options, arguments->paths, arguments->path_count, NULL, &train));
    CLI_CHECK(sdr_data_open_valid(arguments->options, train, &valid));
    status = run_all(&c, train, valid);
    if (status == SDR_OK || (cli_signals_stopped() && c.contender[0].trial[0].summary)) {
        enum sdr_status shown = show(&c); /* partial results if it was stopped */
        status = status == SDR_OK ? shown : status;
    }
cleanup:
    cli_signals_stop();
    sdr_data_destroy(valid);
    sdr_data_destroy(train);
    cli_contenders_release(&c);
    return status;
}

const struct cli_command cli_compare = {
    .name = "compare",
    .positional = "DATA...",
    .summary = "train with several strategies, options and seeds, and show what they differ in",
    .description =
        "Trains on DATA with every strategy of --sync or every --variant of the options, and "
        "several\n"
        "seeds, all else being equal, and prints a line for each. Strategies are separated by "
        "commas;\n"
        "KEY=VALUE behind a comma is an option of the strategy before, as in\n"
        "--sync bsp,k-async:k=4,async. A variant is a text of options, separated by blanks, on top "
        "of\n"
        "the common ones; options of the data are common. With both, every strategy trains with "
        "every\n"
        "variant. Without --sync a variant may set it, or has that of 'sounder train'.\n"
        "--transport sim compares in virtual time: --compute says what a gradient takes, and the\n"
        "machine at hand does not matter. --lr X --schedule constant shows the floor of the error "
        "that\n"
        "each strategy gets down to; without --lr the step is chosen as for 'sounder train'.\n"
        "Curves have a hundred points unless --evaluate-every says how many updates lie between "
        "two;\n"
        "the clock stands still while they are evaluated. Runs do not stop at --target: the table\n"
        "tells when they got there. A run that diverges is counted, and the others go on.\n"
        "Under mpirun, with --transport mpi, the first process prints and writes.\n",
    .example =
        "  sounder compare rcv1.svm --sync bsp,k-async:k=4,async --transport sim --workers 8 \\\n"
        "      --compute const:1+exp:rate=0.5 --batch 32 --lr 0.5 --schedule constant --epochs 5 "
        "\\\n"
        "      --seeds 5 --target 0.2 --report rcv1.html\n"
        "  sounder compare rcv1.svm --variant \"--optimizer adam\" --variant \"--optimizer sgd "
        "--lr "
        "0.5\"\n",
    .least = 1,
    .most = SIZE_MAX,
    .takes = CLI_HELP | CLI_JSON | CLI_QUIET | CLI_SYNC | CLI_SEEDS | CLI_TARGET | CLI_REPORT |
             CLI_CHART | CLI_CHART_X | CLI_CHART_Y | CLI_VARIANT,
    .run = compare,
};

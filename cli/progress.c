/* Progress on standard error: one refreshed line on a terminal, plain lines elsewhere. Reports come
   from the thread that called the library, so the state needs no lock. */
#include "cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static struct {
    bool quiet, terminal, started;
    bool line_shown;     /* a progress line is on the terminal */
    double last;         /* time of the last progress, in seconds */
    double valid_metric; /* of the last epoch; NaN if unknown */
    int epochs_shown, points_shown;
} state = {.valid_metric = NAN};

static const double plain_interval = 1.0, terminal_interval = 0.1;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static size_t terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

void cli_progress_clear(void)
{
    if (state.line_shown)
        fputs("\r\033[K", stderr);
    state.line_shown = false;
    fflush(stderr);
}

void cli_note(const char *format, ...)
{
    char text[1024];
    if (state.quiet)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cli_progress_clear();
    fputs("sounder: note: ", stderr);
    cli_print_clean(stderr, text);
    putc('\n', stderr);
    fflush(stderr);
}

/* A line of fields two spaces apart; a field that does not fit is omitted. */
struct line {
    char text[256];
    size_t length, room;
};

static void add_field(struct line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_field(struct line *line, const char *format, ...)
{
    char field[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(field, sizeof field, format, arguments);
    va_end(arguments);
    size_t gap = line->length ? 2 : 0, length = strlen(field);
    if (line->length + gap + length > line->room)
        return;
    memset(line->text + line->length, ' ', gap);
    memcpy(line->text + line->length + gap, field, length + 1);
    line->length += gap + length;
}

static void begin_line(struct line *line)
{
    /* The last column stays free: some terminals wrap when it is written. */
    size_t width = state.terminal ? terminal_width() - 1 : sizeof line->text - 1;
    line->length = 0;
    line->text[0] = '\0';
    line->room = width < sizeof line->text - 1 ? width : sizeof line->text - 1;
}

static void show(const struct line *line)
{
    if (state.terminal)
        fprintf(stderr, "\r%s\033[K", line->text);
    else
        fprintf(stderr, "%s\n", line->text);
    state.line_shown = state.terminal;
    fflush(stderr);
}

/* Whether it is time for the next progress line. */
static bool due(void)
{
    double time = now();
    if (time - state.last < (state.terminal ? terminal_interval : plain_interval))
        return false;
    state.last = time;
    return true;
}

static void add_share(struct line *line, const struct sdr_report *report)
{
    if (report->total > 0)
        add_field(line, "%2.0f%%", 100.0 * (double)report->done / (double)report->total);
}

static void add_eta(struct line *line, const struct sdr_report *report)
{
    char text[CLI_NUMBER_TEXT];
    if (report->eta >= 0 && isfinite(report->eta))
        add_field(line, "ETA %s", cli_duration_text(text, report->eta));
}

static void add_epoch(struct line *line, uint64_t epoch, uint64_t epochs)
{
    if (epochs > 0)
        add_field(line, "epoch %llu/%llu", (unsigned long long)epoch, (unsigned long long)epochs);
    else
        add_field(line, "epoch %llu", (unsigned long long)epoch);
}

static void add_loss(struct line *line, const char *name, double loss)
{
    if (isfinite(loss))
        add_field(line, "%s %.4g", name, loss);
}

static void show_reading(const struct sdr_report *report)
{
    struct line line;
    char text[CLI_NUMBER_TEXT];
    if (!due())
        return;
    begin_line(&line);
    add_field(&line, "reading");
    if (report->total > 0)
        add_share(&line, report);
    else
        add_field(&line, "%s", cli_bytes_text(text, (double)report->done));
    if (report->rate > 0)
        add_field(&line, "%s/s", cli_bytes_text(text, report->rate));
    add_eta(&line, report);
    show(&line);
}

static void show_progress(const struct sdr_report *report)
{
    struct line line;
    char text[CLI_NUMBER_TEXT];
    uint64_t current = report->epoch + 1;
    if (!due())
        return;
    if (report->epochs > 0 && current > report->epochs)
        current = report->epochs;
    begin_line(&line);
    add_epoch(&line, current, report->epochs);
    add_share(&line, report);
    if (report->rate > 0)
        add_field(&line, "%s rows/s", cli_count_text(text, report->rate));
    add_loss(&line, "loss", report->running_loss);
    add_loss(&line, "valid", state.valid_metric);
    add_eta(&line, report);
    show(&line);
}

static void show_epoch(const struct sdr_report *report)
{
    struct line line;
    char text[CLI_NUMBER_TEXT];
    enum { ALL_SHOWN = 30 }; /* thousands of short epochs would flood the output */
    if (report->metric)
        state.valid_metric = report->valid_metric;
    if (++state.epochs_shown > ALL_SHOWN && report->epoch < report->epochs && !due())
        return;
    begin_line(&line);
    add_epoch(&line, report->epoch, report->epochs);
    add_field(&line, report->virtual_time ? "%.2f virtual s" : "%.2f s", report->seconds);
    if (report->rate > 0 && !report->virtual_time)
        add_field(&line, "%s rows/s", cli_count_text(text, report->rate));
    add_loss(&line, "loss", report->running_loss);
    add_loss(&line, "objective", report->objective);
    add_loss(&line, "valid loss", report->valid_loss);
    if (report->metric)
        add_loss(&line, report->metric, report->valid_metric);
    if (report->epoch < report->epochs)
        add_eta(&line, report);
    show(&line);
}

static void show_point(const struct sdr_report *report)
{
    struct line line;
    enum { ALL_SHOWN = 30 };
    if (++state.points_shown > ALL_SHOWN && !due())
        return;
    begin_line(&line);
    add_field(&line, "update %llu", (unsigned long long)report->updates);
    add_field(&line, "%.2f s", report->seconds);
    add_loss(&line, "objective", report->objective);
    add_loss(&line, "valid loss", report->valid_loss);
    if (report->metric)
        add_loss(&line, report->metric, report->valid_metric);
    show(&line);
}

static void on_report(void *context, const struct sdr_report *report)
{
    (void)context;
    if (!state.started) {
        /* Work shorter than an interval shows no progress. */
        state.started = true;
        state.last = now();
    }
    switch (report->kind) {
    case SDR_REPORT_NOTE: cli_note("%s", report->note); break;
    case SDR_REPORT_READ: show_reading(report); break;
    case SDR_REPORT_PROGRESS: show_progress(report); break;
    case SDR_REPORT_EPOCH: show_epoch(report); break;
    case SDR_REPORT_POINT: show_point(report); break;
    }
}

void cli_progress_start(struct cli_arguments *arguments)
{
    const char *kind = getenv("TERM");
    state.quiet = arguments->given & CLI_QUIET;
    state.terminal = isatty(STDERR_FILENO) && kind && strcmp(kind, "dumb") != 0;
    if (!state.quiet)
        sdr_options_report(arguments->options, on_report, NULL);
}

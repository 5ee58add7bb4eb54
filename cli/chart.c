/* Line charts as SVG: title, legend, two axes, and a band and a line per curve. Colours are CSS
   classes (l0 …: lines, b0 …: areas) of chart_style.c. */
#include "compare.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH = 760,
    LEFT = 78,
    RIGHT = 18,
    PLOT = 300,
    LEGEND_TOP = 34,
    LEGEND_ROW = 22,
    SWATCH = 26,
};
static const double letter = 7.8; /* upper bound of a legend letter's mean width */

void cli_html(FILE *out, const char *text)
{
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '&')
            fputs("&amp;", out);
        else if (byte == '<')
            fputs("&lt;", out);
        else if (byte == '>')
            fputs("&gt;", out);
        else if (byte == '"')
            fputs("&quot;", out);
        else if (byte == '\'')
            fputs("&#39;", out);
        else
            putc(byte < 0x20 || byte == 0x7f ? '?' : byte, out);
    }
}

/* ---- ticks ---- */
static size_t log_ticks(double low, double high, double tick[CLI_TICKS])
{
    static const double within[] = {1, 2, 5};
    double decades = log10(high / low);
    int first = (int)floor(log10(low)), last = (int)ceil(log10(high));
    int step = decades > 10 ? (int)ceil(decades / 10) : 1;
    size_t count = 0;
    for (int d = first; d <= last; d += step)
        for (size_t i = 0; i < (decades > 3 ? 1 : 3); i++) {
            double value = within[i] * pow(10, d);
            if (value >= low * 0.9999 && value <= high * 1.0001 && count < CLI_TICKS)
                tick[count++] = value;
        }
    return count;
}

size_t cli_ticks(double low, double high, bool logarithmic, double tick[CLI_TICKS])
{
    enum { WANTED = 7 };
    size_t count = 0;
    if (!(high > low))
        return 0;
    if (logarithmic)
        return log_ticks(low, high, tick);
    double rough = (high - low) / WANTED, power = pow(10, floor(log10(rough)));
    double digit = rough / power;
    double step = power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
    for (double k = ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++)
        if (count < CLI_TICKS)
            tick[count++] = k == 0 ? 0 : k * step;
    return count;
}

static void tick_text(double value, char text[CLI_NUMBER_TEXT])
{
    if (fabs(value) >= 1e6)
        cli_count_text(text, value);
    else
        snprintf(text, CLI_NUMBER_TEXT, "%.6g", value);
}

/* ---- axes ---- */
struct frame {
    double top; /* of the plot */
    double x_low, x_high, y_low, y_high;
    bool x_log, y_log; /* logarithmic axes */
};

static double share_of(double value, double low, double high, bool logarithmic)
{
    if (logarithmic)
        return log(fmax(value, low) / low) / log(high / low);
    return (value - low) / (high - low);
}

static double across(const struct frame *f, double x)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * share_of(x, f->x_low, f->x_high, f->x_log);
}

static double down(const struct frame *f, double y)
{
    return f->top + PLOT * (1 - fmin(share_of(y, f->y_low, f->y_high, f->y_log), 1));
}

/* Where a curve has completed this share of its fall; NaN if it does not fall. */
static double fallen(const struct cli_band *band, double share)
{
    double least = INFINITY;
    for (size_t k = 0; k < band->count; k++)
        least = fmin(least, band->mean[k]);
    for (size_t k = 0; k < band->count && least < band->mean[0]; k++)
        if (band->mean[k] <= band->mean[0] - share * (band->mean[0] - least))
            return band->x[k];
    return NAN;
}

/* The start of a logarithmic time axis, or 0 for a linear one. A curve that completes 70 % of its
   fall within 5 % of the time cannot be read on a linear axis. A logarithmic axis starts where the
   fastest curve has completed 5 % of its fall. */
static double log_axis_start(const struct cli_chart *chart, double x_high)
{
    enum { DECADES_MOST = 6 };
    double early = INFINITY, start = INFINITY;
    for (size_t i = 0; i < chart->count; i++) {
        early = fmin(early, fallen(chart->series[i].band, 0.7));
        start = fmin(start, fallen(chart->series[i].band, 0.05));
    }
    if (!(early <= 0.05 * x_high))
        return 0;
    return fmin(fmax(start, x_high * pow(10, -DECADES_MOST)), x_high / 100);
}

/* The range of all curves and the target. */
static void measure_frame(const struct cli_chart *chart, struct frame *f)
{
    double low = INFINITY, high = -INFINITY;
    f->x_low = f->x_high = 0;
    for (size_t i = 0; i < chart->count; i++) {
        const struct cli_band *band = chart->series[i].band;
        for (size_t k = 0; k < band->count; k++) {
            low = fmin(low, band->low[k]);
            /* the mean: one bad seed must not flatten all curves */
            high = fmax(high, band->mean[k]);
            f->x_high = fmax(f->x_high, band->x[k]);
        }
    }
    if (isfinite(chart->target)) {
        low = fmin(low, chart->target);
        high = fmax(high, chart->target);
    }
    if (!isfinite(low) || !isfinite(high))
        low = 0, high = 1;
    f->y_log = low > 0 && high / low > 10;
    if (f->y_log) {
        double pad = pow(high / low, 0.04);
        f->y_low = low / pad;
        f->y_high = high * pad;
    } else {
        double pad = high > low ? 0.05 * (high - low) : fabs(high) * 0.1 + 1e-9;
        f->y_low = low >= 0 && low < pad ? 0 : low - pad;
        f->y_high = high + pad;
    }
    f->x_high = f->x_high > 0 ? f->x_high : 1;
    f->x_low = log_axis_start(chart, f->x_high);
    f->x_log = f->x_low > 0;
}

static void draw_axes(FILE *out, const struct cli_chart *chart, const struct frame *f)
{
    double tick[CLI_TICKS], bottom = f->top + PLOT;
    char text[CLI_NUMBER_TEXT];
    size_t count = cli_ticks(f->y_low, f->y_high, f->y_log, tick);
    for (size_t i = 0; i < count; i++) {
        double y = down(f, tick[i]);
        tick_text(tick[i], text);
        fprintf(out,
                "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                "<text class=\"tick\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%s</text>\n",
                LEFT, WIDTH - RIGHT, y, y, LEFT - 8, y + 4, text);
    }
    count = cli_ticks(f->x_low, f->x_high, f->x_log, tick);
    for (size_t i = 0; i < count; i++) {
        double x = across(f, tick[i]);
        tick_text(tick[i], text);
        fprintf(out,
                "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                x, x, bottom, bottom + 5, x, bottom + 19, text);
    }
    fprintf(out, "<path class=\"axis\" d=\"M%d %.1fV%.1fH%d\"/>\n", LEFT, f->top, bottom,
            WIDTH - RIGHT);
    fprintf(out, "<text class=\"label\" text-anchor=\"middle\" x=\"%d\" y=\"%.1f\">",
            (LEFT + WIDTH - RIGHT) / 2, bottom + 42);
    cli_html(out, chart->x_label);
    fprintf(
        out,
        "%s</text>\n<text class=\"label\" text-anchor=\"middle\" transform=\"translate(18 %.1f) "
        "rotate(-90)\">",
        f->x_log ? ", logarithmic" : "", f->top + PLOT / 2.0);
    cli_html(out, chart->y_label);
    fprintf(out, "%s</text>\n", f->y_log ? ", logarithmic" : "");
}

/* Colours repeat with another dash pattern. */
static const char *line_class(size_t number, char text[CLI_NUMBER_TEXT])
{
    size_t dash = number / CLI_COLOURS % CLI_DASHES;
    snprintf(text, CLI_NUMBER_TEXT, dash ? "l%zu d%zu" : "l%zu", number % CLI_COLOURS, dash);
    return text;
}

/* ---- the legend ---- */
/* Lays out the entries, and draws them unless `out` is NULL; returns the number of lines. */
static int legend(FILE *out, const struct cli_chart *chart)
{
    char text[CLI_NUMBER_TEXT];
    double x = LEFT;
    int row = 0;
    for (size_t i = 0; i < chart->count; i++) {
        const char *name = chart->series[i].name;
        bool none = chart->series[i].band->count == 0;
        double width = SWATCH + 8 + letter * (double)(cli_text_width(name) + (none ? 11 : 0)) + 18;
        if (x > LEFT && x + width > WIDTH) {
            row++;
            x = LEFT;
        }
        double y = LEGEND_TOP + LEGEND_ROW * row + LEGEND_ROW / 2.0;
        if (out) {
            fprintf(out,
                    "<line class=\"line %s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                    "<text class=\"name\" x=\"%.1f\" y=\"%.1f\">",
                    line_class(i, text), x, x + SWATCH, y, y, x + SWATCH + 8, y + 4.5);
            cli_html(out, name);
            fprintf(out, "%s</text>\n", none ? " (diverged)" : "");
        }
        x += width;
    }
    return row + 1;
}

/* ---- curves ---- */
/* The first point right of the start of a logarithmic axis. */
static size_t first_drawn(const struct frame *f, const struct cli_band *band)
{
    size_t k = 0;
    while (k + 1 < band->count && band->x[k] < f->x_low)
        k++;
    return k;
}

static void draw_band(FILE *out, const struct frame *f, const struct cli_band *band, size_t number)
{
    bool wide = false;
    size_t first = first_drawn(f, band);
    for (size_t k = first; k < band->count; k++)
        wide |= band->high[k] > band->low[k];
    if (!wide)
        return;
    fprintf(out, "<path class=\"band b%zu\" d=\"M", number % CLI_COLOURS);
    for (size_t k = first; k < band->count; k++)
        fprintf(out, "%.1f %.1f ", across(f, band->x[k]), down(f, band->high[k]));
    for (size_t k = band->count; k-- > first;)
        fprintf(out, "%.1f %.1f ", across(f, band->x[k]), down(f, band->low[k]));
    fputs("Z\"/>\n", out);
}

static void draw_line(FILE *out, const struct frame *f, const struct cli_band *band, size_t number)
{
    char text[CLI_NUMBER_TEXT];
    if (band->count == 0)
        return;
    fprintf(out, "<path class=\"line %s\" d=\"M", line_class(number, text));
    for (size_t k = first_drawn(f, band); k < band->count; k++)
        fprintf(out, "%.1f %.1f ", across(f, band->x[k]), down(f, band->mean[k]));
    fputs("\"/>\n", out);
}

static void draw_target(FILE *out, const struct cli_chart *chart, const struct frame *f)
{
    double y = down(f, chart->target);
    fprintf(out,
            "<line class=\"target\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
            "<text class=\"tick tag\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">target %.6g</text>\n",
            LEFT, WIDTH - RIGHT, y, y, WIDTH - RIGHT - 4, y - 5, chart->target);
}

static void draw(FILE *out, const struct cli_chart *chart, const struct frame *f)
{
    fprintf(out, "<text class=\"title\" x=\"%d\" y=\"22\">", LEFT);
    cli_html(out, chart->title);
    fputs("</text>\n", out);
    legend(out, chart);
    draw_axes(out, chart, f);
    for (size_t i = 0; i < chart->count; i++)
        draw_band(out, f, chart->series[i].band, i);
    for (size_t i = 0; i < chart->count; i++)
        draw_line(out, f, chart->series[i].band, i);
    if (isfinite(chart->target))
        draw_target(out, chart, f);
    fputs("</svg>", out);
}

static struct frame make_frame(const struct cli_chart *chart)
{
    struct frame f = {.top = LEGEND_TOP + LEGEND_ROW * legend(NULL, chart) + 12};
    measure_frame(chart, &f);
    return f;
}

static double height_of(const struct frame *f)
{
    return f->top + PLOT + 54;
}

void cli_chart_lines(FILE *out, const struct cli_chart *chart)
{
    struct frame f = make_frame(chart);
    fprintf(out, "<figure><svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"", WIDTH,
            height_of(&f));
    cli_html(out, chart->title);
    fputs("\">\n", out);
    draw(out, chart, &f);
    fputs("</figure>\n", out);
}

void cli_chart_file(FILE *out, const struct cli_chart *chart)
{
    struct frame f = make_frame(chart);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
            "viewBox=\"0 0 %d %.0f\">\n<title>",
            WIDTH, height_of(&f), WIDTH, height_of(&f));
    cli_html(out, chart->title);
    fputs("</title>\n<style>\n", out);
    cli_chart_style(out, true);
    fputs("</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n", out);
    draw(out, chart, &f);
    putc('\n', out);
}

/* Bar charts as SVG: a histogram, and time by worker. Small, to be placed side by side. */
#include "compare.h"

#include <math.h>

enum { WIDTH = 380, LEFT = 58, RIGHT = 14, TOP = 36, PLOT = 150 };

static void open_chart(FILE *out, const char *title, double height)
{
    fprintf(out, "<figure><svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"", WIDTH, height);
    cli_html(out, title);
    fputs("\">\n<text class=\"title\" x=\"8\" y=\"20\">", out);
    cli_html(out, title);
    fputs("</text>\n", out);
}

static void draw_percents(FILE *out, const struct cli_histogram *h)
{
    double tick[CLI_TICKS], bottom = TOP + PLOT;
    size_t count = cli_ticks(0, h->highest, false, tick);
    size_t each = count > 6 ? 2 : 1;
    for (size_t i = 0; i < count; i += each) {
        double y = bottom - PLOT * tick[i] / h->highest;
        fprintf(out,
                "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                "<text class=\"tick\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%.4g %%</text>\n",
                LEFT, WIDTH - RIGHT, y, y, LEFT - 6, y + 4, 100 * tick[i]);
    }
    fprintf(out, "<path class=\"axis\" d=\"M%d %dV%.1fH%d\"/>\n", LEFT, TOP, bottom, WIDTH - RIGHT);
}

void cli_chart_histogram(FILE *out, const struct cli_histogram *h)
{
    double slot = (double)(WIDTH - LEFT - RIGHT) / (double)h->width, bottom = TOP + PLOT;
    size_t step = h->width <= 12 ? 1 : h->width <= 24 ? 2 : h->width <= 40 ? 5 : 10;
    open_chart(out, h->title, bottom + 48);
    draw_percents(out, h);
    for (size_t i = 0; i < h->count; i++) {
        double tall = PLOT * h->share[i] / h->highest;
        fprintf(out,
                "<rect class=\"bar b%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                h->colour % CLI_COLOURS, LEFT + slot * ((double)i + 0.1), bottom - tall, 0.8 * slot,
                tall);
    }
    for (size_t i = 0; i < h->width; i++) {
        bool last = i + 1 == h->width;
        /* leaves room for the last label */
        if (!last && (i % step != 0 || i + step / 2 + 1 >= h->width))
            continue;
        fprintf(out,
                "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%zu%s</text>\n",
                LEFT + slot * ((double)i + 0.5), bottom + 16, i, last ? "+" : "");
    }
    if (isfinite(h->mean) && h->mean + 0.5 <= (double)h->width) {
        double x = LEFT + slot * (h->mean + 0.5);
        bool right = x > (LEFT + WIDTH) / 2.0; /* puts the text where there is room */
        fprintf(out,
                "<line class=\"target\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%.1f\"/>"
                "<text class=\"tick\" text-anchor=\"%s\" x=\"%.1f\" y=\"%d\">mean %.3g</text>\n",
                x, x, TOP - 6, bottom, right ? "end" : "start", right ? x - 5 : x + 5, TOP + 2,
                h->mean);
    }
    fprintf(out, "<text class=\"label\" text-anchor=\"middle\" x=\"%d\" y=\"%.1f\">",
            (LEFT + WIDTH - RIGHT) / 2, bottom + 38);
    cli_html(out, h->x_label);
    fputs("</text>\n</svg></figure>\n", out);
}

static void draw_bar(FILE *out, const struct cli_bar *bar, double y, double thick, double length,
                     int colour)
{
    double all = bar->computing + bar->waiting, whole = WIDTH - LEFT - RIGHT - 46.0;
    double one = whole * bar->computing / length, two = whole * bar->waiting / length;
    fprintf(out, "<text class=\"tick\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">", LEFT - 6,
            y + thick / 2 + 4);
    cli_html(out, bar->label);
    fprintf(out,
            "</text><rect class=\"bar b%d\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>"
            "<rect class=\"wait\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>"
            "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\">%.0f %%</text>\n",
            colour % CLI_COLOURS, LEFT, y, one, thick, LEFT + one, y, two, thick, LEFT + whole + 6,
            y + thick / 2 + 4, all > 0 ? 100 * bar->waiting / all : 0);
}

void cli_chart_bars(FILE *out, const char *title, const char *x_label, int colour,
                    const struct cli_bar *bar, size_t count)
{
    double tick[CLI_TICKS], length = 0, pitch = count <= 12 ? 20 : 14;
    double bottom = TOP + pitch * (double)count, whole = WIDTH - LEFT - RIGHT - 46.0;
    for (size_t i = 0; i < count; i++)
        length = fmax(length, bar[i].computing + bar[i].waiting);
    length = length > 0 ? length : 1;
    open_chart(out, title, bottom + 44);
    for (size_t i = 0; i < count; i++)
        draw_bar(out, &bar[i], TOP + pitch * (double)i + 2, pitch - 4, length, colour);
    size_t ticks = cli_ticks(0, length, false, tick);
    for (size_t i = 0; i<ticks; i += ticks> 5 ? 2 : 1)
        fprintf(out,
                "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%.5g</text>\n",
                LEFT + whole * tick[i] / length, bottom + 14, tick[i]);
    fprintf(out, "<text class=\"label\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">",
            LEFT + whole / 2, bottom + 34);
    cli_html(out, x_label);
    fputs("</text>\n</svg></figure>\n", out);
}

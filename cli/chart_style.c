/* Colours and style rules of charts, in Okabe and Ito's colour-blind safe palette. */
#include "compare.h"

#include <string.h>

static const struct {
    const char *name, *light, *dark;
} palette[] = {
    {"paper", "#fff", "#17191c"},   {"ink", "#1b1b1b", "#e8e8e8"},  {"soft", "#595959", "#a9adb3"},
    {"grid", "#e3e3e3", "#34373c"}, {"wait", "#d4d4d4", "#4a4e55"}, {"c0", "#0072b2", "#56b4e9"},
    {"c1", "#d55e00", "#d55e00"},   {"c2", "#009e73", "#009e73"},   {"c3", "#cc79a7", "#cc79a7"},
    {"c4", "#e69f00", "#e69f00"},   {"c5", "#56b4e9", "#f0e442"},   {"c6", "#1b1b1b", "#e8e8e8"},
};
enum { PALETTE = sizeof palette / sizeof *palette };

/* $name stands for a colour. */
static const char *const rules =
    "text{font-family:system-ui,sans-serif;fill:$ink}.title{font-size:15px;font-weight:600}"
    ".label{font-size:13px;fill:$soft}.tick{font-size:12px;fill:$soft}.name{font-size:13px}\n"
    ".axis{stroke:$soft;fill:none}.grid{stroke:$grid}.target{stroke:$soft;stroke-dasharray:5 4}"
    ".line{fill:none;stroke-width:2.2;stroke-linejoin:round}.d1{stroke-dasharray:7 4}"
    ".d2{stroke-dasharray:2 3}.d3{stroke-dasharray:9 3 2 3}"
    ".tag{paint-order:stroke;stroke:$paper;stroke-width:4}"
    ".band{fill-opacity:.18;stroke:none}.wait{fill:$wait}.paper{fill:$paper}\n";

void cli_palette(FILE *out)
{
    fputs(":root{", out);
    for (size_t i = 0; i < PALETTE; i++)
        fprintf(out, "--%s:%s;", palette[i].name, palette[i].light);
    fputs("}\n@media(prefers-color-scheme:dark){:root{", out);
    for (size_t i = 0; i < PALETTE; i++)
        fprintf(out, "--%s:%s;", palette[i].name, palette[i].dark);
    fputs("}}\n", out);
}

static void write_colour(FILE *out, const char *name, size_t length, bool alone)
{
    for (size_t i = 0; i < PALETTE; i++) {
        if (strlen(palette[i].name) != length || memcmp(palette[i].name, name, length) != 0)
            continue;
        if (alone)
            fputs(palette[i].light, out);
        else
            fprintf(out, "var(--%s)", palette[i].name);
    }
}

void cli_chart_style(FILE *out, bool alone)
{
    for (const char *at = rules; *at; at++) {
        if (*at != '$') {
            putc(*at, out);
            continue;
        }
        size_t length = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz");
        write_colour(out, at + 1, length, alone);
        at += length;
    }
    for (int i = 0; i < CLI_COLOURS; i++) {
        char name[8];
        size_t length = (size_t)snprintf(name, sizeof name, "c%d", i);
        fprintf(out, ".l%d{stroke:", i);
        write_colour(out, name, length, alone);
        fprintf(out, "}.b%d{fill:", i);
        write_colour(out, name, length, alone);
        putc('}', out);
    }
    putc('\n', out);
}

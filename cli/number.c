/* Numbers for people: counts, bytes and durations with few digits, floats with as many as needed.
   The program never sets a locale, so printf and strtof use the point. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>

static void scaled(char text[CLI_NUMBER_TEXT], double value, double step, const char *const *units)
{
    size_t unit = 0;
    while (units[unit + 1] && value >= 999.5) {
        value /= step;
        unit++;
    }
    int digits = unit == 0 || value >= 99.95 ? 0 : 1;
    snprintf(text, CLI_NUMBER_TEXT, "%.*f%s", digits, value, units[unit]);
}

const char *cli_count_text(char text[CLI_NUMBER_TEXT], double count)
{
    static const char *const units[] = {"", "k", "M", "G", "T", NULL};
    scaled(text, count, 1000, units);
    return text;
}

const char *cli_bytes_text(char text[CLI_NUMBER_TEXT], double bytes)
{
    static const char *const units[] = {" bytes", " KB", " MB", " GB", " TB", NULL};
    scaled(text, bytes, 1000, units);
    return text;
}

const char *cli_duration_text(char text[CLI_NUMBER_TEXT], double seconds)
{
    const double most = 359999; /* 99:59:59 */
    unsigned long whole = (unsigned long)(seconds > most ? most : seconds + 0.5);
    if (whole >= 3600)
        snprintf(text, CLI_NUMBER_TEXT, "%lu:%02lu:%02lu", whole / 3600, whole / 60 % 60,
                 whole % 60);
    else
        snprintf(text, CLI_NUMBER_TEXT, "%lu:%02lu", whole / 60, whole % 60);
    return text;
}

/* Estimates the significant digits a float needs, without printing: 6 to 9. */
static int digits_needed(float value)
{
    double exponent = floor(log10(fabs((double)value)));
    for (int digits = 6; digits < 9; digits++) {
        double scale = pow(10, digits - 1 - exponent);
        if ((float)(nearbyint((double)value * scale) / scale) == value)
            return digits;
    }
    return 9;
}

const char *cli_float_text(char text[CLI_NUMBER_TEXT], float value)
{
    /* Small integers, the common case of labels, need no search. */
    if (fabsf(value) < 1e6f && value == truncf(value)) {
        snprintf(text, CLI_NUMBER_TEXT, "%d", (int)value);
        return text;
    }
    /* Reading back decides; the estimate saves most attempts, which matters for millions of
       rows. */
    for (int digits = isfinite(value) ? digits_needed(value) : 6; digits <= 9; digits++) {
        snprintf(text, CLI_NUMBER_TEXT, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value)
            break;
    }
    return text;
}

/* The library's JSON results as aligned lines. Knows shapes, not keys: a scalar is a line, an
   object an indented group, an array of objects a table with a header, any other array one line.
   Keys keep their names, so that what a person reads is what a script would ask for. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_ARRAY = 12, WIDEST_CELL = 40, MOST_COLUMNS = 12 };

enum sdr_status cli_json_parse(const char *json, json_t **object)
{
    json_error_t error;
    *object = json_loads(json, 0, &error);
    if (!json_is_object(*object)) {
        json_decref(*object);
        *object = NULL;
        return cli_fail(SDR_RUNTIME, "the library's result is not a JSON object: %s", error.text);
    }
    return SDR_OK;
}

void cli_print_json(const char *json)
{
    /* JSON texts have no newline inside strings, so those that there are may become spaces. */
    size_t length = strlen(json);
    while (length > 0 && json[length - 1] == '\n')
        length--;
    for (size_t i = 0; i < length; i++)
        putchar(json[i] == '\n' ? ' ' : json[i]);
    putchar('\n');
}

enum sdr_status cli_print_object(json_t *object)
{
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    if (!text)
        return cli_fail(SDR_RUNTIME, "the result cannot be written as JSON");
    puts(text);
    free(text);
    return SDR_OK;
}

/* A scalar as text; the caller frees it. NULL if memory ran out. */
static char *scalar_text(const json_t *value)
{
    char text[64];
    if (json_is_string(value))
        return strdup(json_string_value(value));
    if (json_is_real(value)) {
        double real = json_real_value(value);
        bool whole = fabs(real) < 1e15 && real == floor(real);
        snprintf(text, sizeof text, whole ? "%.0f" : "%.6g", real);
    } else if (json_is_integer(value)) {
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
    } else if (json_is_boolean(value)) {
        snprintf(text, sizeof text, "%s", json_is_true(value) ? "yes" : "no");
    } else {
        snprintf(text, sizeof text, "-");
    }
    return strdup(text);
}

static void print_scalar(const json_t *value)
{
    char *text = scalar_text(value);
    if (text)
        cli_print_clean(stdout, text);
    free(text);
}

static bool is_group(const json_t *value)
{
    return json_is_object(value) && json_object_size(value) > 0;
}

static bool is_table(const json_t *value)
{
    if (!json_is_array(value) || json_array_size(value) == 0)
        return false;
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!is_group(json_array_get(value, i)))
            return false;
    }
    return true;
}

static void print_value(const json_t *value)
{
    if (!json_is_array(value)) {
        print_scalar(value);
        return;
    }
    size_t count = json_array_size(value);
    for (size_t i = 0; i < count && i < LONGEST_ARRAY; i++) {
        const json_t *element = json_array_get(value, i);
        if (i > 0)
            putchar(' ');
        if (json_is_array(element)) {
            putchar('[');
            print_value(element);
            putchar(']');
        } else {
            print_scalar(element);
        }
    }
    if (count > LONGEST_ARRAY)
        printf(" ... (%zu in all)", count);
    if (count == 0)
        putchar('-');
}

/* Columns on a terminal, not bytes: continuation bytes of UTF-8 take none. */
size_t cli_text_width(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void print_padded(const char *text, size_t width, bool to_the_right)
{
    size_t taken = cli_text_width(text), gap = taken < width ? width - taken : 0;
    if (to_the_right)
        printf("%*s", (int)gap, "");
    cli_print_clean(stdout, text);
    if (!to_the_right)
        printf("%*s", (int)gap, "");
}

static void print_rows(const json_t *array, int indent)
{
    const char *names[MOST_COLUMNS], *name;
    size_t widths[MOST_COLUMNS], count = 0, rows = json_array_size(array);
    json_t *value;
    /* The first row names the columns. */
    json_object_foreach(json_array_get(array, 0), name, value)
    {
        if (count == MOST_COLUMNS)
            break;
        names[count] = name;
        widths[count] = cli_text_width(name);
        for (size_t i = 0; i < rows; i++) {
            char *text = scalar_text(json_object_get(json_array_get(array, i), name));
            size_t width = text ? cli_text_width(text) : 0;
            if (width > widths[count])
                widths[count] = width < WIDEST_CELL ? width : WIDEST_CELL;
            free(text);
        }
        count++;
    }
    for (size_t i = 0; i <= rows; i++) {
        printf("%*s", indent, "");
        for (size_t c = 0; c < count; c++) {
            const json_t *cell = i ? json_object_get(json_array_get(array, i - 1), names[c]) : NULL;
            const json_t *below = json_object_get(json_array_get(array, 0), names[c]);
            char *text = i ? scalar_text(cell) : strdup(names[c]);
            if (c > 0)
                fputs("  ", stdout);
            /* No spaces behind the last column. */
            if (text)
                print_padded(text, c + 1 < count || json_is_number(below) ? widths[c] : 0,
                             json_is_number(below));
            free(text);
        }
        putchar('\n');
    }
}

static void print_object(json_t *object, int indent)
{
    const char *name;
    json_t *value;
    size_t width = 0;
    json_object_foreach(object, name, value)
    {
        if (!is_group(value) && !is_table(value) && cli_text_width(name) > width)
            width = cli_text_width(name);
    }
    json_object_foreach(object, name, value)
    {
        bool group = is_group(value), table = is_table(value);
        printf("%*s", indent, "");
        print_padded(name, group || table ? 0 : width + 2, false);
        if (group || table) {
            putchar('\n');
            if (group)
                print_object(value, indent + 2);
            else
                print_rows(value, indent + 2);
            continue;
        }
        print_value(value);
        putchar('\n');
    }
}

enum sdr_status cli_print_table(const char *json)
{
    json_t *object;
    CLI_TRY(cli_json_parse(json, &object));
    print_object(object, 0);
    json_decref(object);
    return SDR_OK;
}

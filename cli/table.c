/* The library's JSON results as aligned lines. It knows shapes, not keys: a scalar is a line, an
   object an indented group, an array of objects a table with a header, any other array one line.
   Keys are printed unchanged, so that scripts can use the names that people see. */
#include "cli.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_ARRAY = 12, WIDEST_CELL = 40, MOST_COLUMNS = 12, SCALAR = 64 };

/* jansson's lexer treats a failed allocation as an internal error and aborts: we jump out before it
   sees one. Its allocations leak, but the command fails anyway. No library function runs
   meanwhile. */
static jmp_buf no_memory;

static void *allocate_or_leave(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory)
        longjmp(no_memory, 1);
    return memory;
}

enum sdr_status cli_json_parse(const char *json, json_t **object)
{
    json_error_t error;
    *object = NULL;
    if (setjmp(no_memory)) {
        json_set_alloc_funcs(malloc, free);
        return cli_fail(SDR_RUNTIME, "out of memory: the results");
    }
    json_set_alloc_funcs(allocate_or_leave, free);
    *object = json_loads(json, 0, &error);
    json_set_alloc_funcs(malloc, free);
    if (!json_is_object(*object)) {
        json_decref(*object);
        *object = NULL;
        return cli_fail(SDR_RUNTIME, "the library's result is not a JSON object: %s", error.text);
    }
    return SDR_OK;
}

void cli_print_json(const char *json)
{
    /* JSON strings contain no raw newlines, so every newline can become a space. */
    size_t length = strlen(json);
    while (length > 0 && json[length - 1] == '\n')
        length--;
    for (size_t i = 0; i < length; i++)
        putchar(json[i] == '\n' ? ' ' : json[i]);
    putchar('\n');
}

static bool incomplete; /* an allocation failed while building */

void cli_json_set(json_t *object, const char *key, json_t *value)
{
    incomplete |= json_object_set_new(object, key, value) != 0;
}

void cli_json_append(json_t *array, json_t *value)
{
    incomplete |= json_array_append_new(array, value) != 0;
}

json_t *cli_json_text(const char *text)
{
    size_t length = strlen(text);
    if (sdr_is_utf8(text, length))
        return json_stringn(text, length);
    char *hex = malloc(2 * length + 1);
    if (!hex)
        return NULL;
    for (size_t i = 0; i < length; i++)
        snprintf(hex + 2 * i, 3, "%02x", (unsigned char)text[i]);
    json_t *json = json_pack("{s:s}", "hex", hex);
    free(hex);
    return json;
}

struct buffer {
    char *bytes; /* owned */
    size_t count, room;
};

/* json_dump_callback continues after some failures. */
static int add_bytes(const char *bytes, size_t count, void *context)
{
    struct buffer *buffer = context;
    if (buffer->room - buffer->count < count) {
        size_t room = 2 * (buffer->count + count);
        char *larger = realloc(buffer->bytes, room);
        incomplete |= !larger;
        if (!larger)
            return -1;
        buffer->bytes = larger;
        buffer->room = room;
    }
    memcpy(buffer->bytes + buffer->count, bytes, count);
    buffer->count += count;
    return 0;
}

enum sdr_status cli_print_object(json_t *object)
{
    struct buffer text = {0};
    bool printed = json_dump_callback(object, add_bytes, &text, JSON_COMPACT) == 0 && !incomplete;
    json_decref(object);
    if (printed) {
        fwrite(text.bytes, 1, text.count, stdout);
        putchar('\n');
    }
    free(text.bytes);
    if (!printed)
        return cli_fail(SDR_RUNTIME, "out of memory: JSON");
    return SDR_OK;
}

/* A scalar as text, borrowed from the value or written to `text`. */
static const char *scalar_text(const json_t *value, char text[SCALAR])
{
    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_real(value)) {
        double real = json_real_value(value);
        bool whole = fabs(real) < 1e15 && real == floor(real);
        snprintf(text, SCALAR, whole ? "%.0f" : "%.6g", real);
    } else if (json_is_integer(value)) {
        snprintf(text, SCALAR, "%lld", (long long)json_integer_value(value));
    } else if (json_is_boolean(value)) {
        snprintf(text, SCALAR, "%s", json_is_true(value) ? "yes" : "no");
    } else {
        snprintf(text, SCALAR, "-");
    }
    return text;
}

static void print_scalar(const json_t *value)
{
    char text[SCALAR];
    cli_print_clean(stdout, scalar_text(value, text));
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

/* Columns on a terminal: UTF-8 continuation bytes take none. */
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
    char text[SCALAR];
    json_t *value;
    /* The first row names the columns. */
    json_object_foreach(json_array_get(array, 0), name, value)
    {
        if (count == MOST_COLUMNS)
            break;
        names[count] = name;
        widths[count] = cli_text_width(name);
        for (size_t i = 0; i < rows; i++) {
            size_t width =
                cli_text_width(scalar_text(json_object_get(json_array_get(array, i), name), text));
            if (width > widths[count])
                widths[count] = width < WIDEST_CELL ? width : WIDEST_CELL;
        }
        count++;
    }
    for (size_t i = 0; i <= rows; i++) {
        printf("%*s", indent, "");
        for (size_t c = 0; c < count; c++) {
            const json_t *cell = i ? json_object_get(json_array_get(array, i - 1), names[c]) : NULL;
            const json_t *below = json_object_get(json_array_get(array, 0), names[c]);
            if (c > 0)
                fputs("  ", stdout);
            /* No trailing spaces. */
            print_padded(i ? scalar_text(cell, text) : names[c],
                         c + 1 < count || json_is_number(below) ? widths[c] : 0,
                         json_is_number(below));
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

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- building ---- */
static _Thread_local bool incomplete;

json_t *sdr_json_begin(json_t *root)
{
    incomplete = !root;
    return root;
}

void sdr_json_set(json_t *object, const char *key, json_t *value)
{
    incomplete |= json_object_set_new(object, key, value) != 0;
}

void sdr_json_append(json_t *array, json_t *value)
{
    incomplete |= json_array_append_new(array, value) != 0;
}

bool sdr_json_whole(void)
{
    return !incomplete;
}

/* jansson ignores this return value for the names of an object; text->failed keeps the error. */
static int add_bytes(const char *bytes, size_t count, void *context)
{
    struct sdr_text *text = context;
    sdr_text_bytes(text, bytes, count);
    return text->failed ? -1 : 0;
}

enum sdr_status sdr_json_dump(const json_t *value, size_t flags, char **text)
{
    struct sdr_text out = {0};
    *text = NULL;
    if (json_dump_callback(value, add_bytes, &out, flags) == 0)
        return sdr_text_take(&out, text);
    sdr_text_free(&out);
    return sdr_fail(SDR_RUNTIME, "out of memory: JSON");
}

enum sdr_status sdr_json_print(json_t *value, size_t flags, char **text)
{
    enum sdr_status status = incomplete ? sdr_fail(SDR_RUNTIME, "out of memory: JSON")
                                        : sdr_json_dump(value, flags, text);
    if (status != SDR_OK)
        *text = NULL;
    json_decref(value);
    return status;
}

enum sdr_status sdr_json_text(json_t *value, char **text)
{
    return sdr_json_print(value, JSON_COMPACT | JSON_REAL_PRECISION(17), text);
}

/* ---- UTF-8 ---- */
/* The length in bytes of the UTF-8 character that text begins with; 0 if it is invalid. */
static size_t character(const unsigned char *text, size_t length)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t bytes = text[0] < 0x80 ? 1 : text[0] < 0xE0 ? 2 : text[0] < 0xF0 ? 3 : 4;
    if (bytes == 1)
        return 1;
    if (text[0] < 0xC0 || text[0] >= 0xF8 || bytes > length)
        return 0;
    uint32_t code = text[0] & (0xFFu >> (bytes + 1));
    for (size_t i = 1; i < bytes; i++) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3Fu);
    }
    bool surrogate = code >= 0xD800 && code < 0xE000;
    return code < least[bytes] || code > 0x10FFFF || surrogate ? 0 : bytes;
}

bool sdr_is_utf8(const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t bytes = character((const unsigned char *)text + at, length - at);
        if (!bytes)
            return false;
        at += bytes;
    }
    return true;
}

static size_t put_character(char *to, uint32_t code)
{
    static const unsigned char first[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = bytes; i-- > 1; code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3F));
    to[0] = (char)(first[bytes] | code);
    return bytes;
}

/* ---- parsing ---- */
enum { DEPTH_MOST = 64 };

struct parser {
    const char *begin, *at, *end;
    char *strings; /* decoded strings, each at its source's offset: none outgrows its source */
    int depth;
};

static enum sdr_status wrong(void)
{
    return sdr_fail(SDR_BAD_FILE, "it is not JSON");
}

static enum sdr_status made(json_t *value, json_t **to)
{
    *to = value;
    return value ? SDR_OK : sdr_fail(SDR_RUNTIME, "out of memory: JSON");
}

static void skip_space(struct parser *p)
{
    while (p->at < p->end && strchr(" \t\n\r", *p->at) && *p->at)
        p->at++;
}

static bool accept(struct parser *p, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0)
        return false;
    p->at += length;
    return true;
}

static bool parse_hex(struct parser *p, uint32_t *code)
{
    *code = 0;
    if (p->end - p->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = *p->at++;
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16)
            return false;
        *code = *code << 4 | digit;
    }
    return true;
}

/* Parses the escape behind a backslash; a surrogate pair gives one character. */
static bool parse_escape(struct parser *p, uint32_t *code)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    uint32_t low;
    if (p->at == p->end)
        return false;
    char letter = *p->at++;
    if (letter != 'u') {
        const char *found = letter ? strchr(letters, letter) : NULL;
        *code = found ? (uint32_t)meant[found - letters] : 0;
        return found;
    }
    if (!parse_hex(p, code) || *code == 0 || (*code >= 0xDC00 && *code < 0xE000))
        return false;
    if (*code < 0xD800 || *code >= 0xDC00)
        return true;
    if (!accept(p, "\\u") || !parse_hex(p, &low) || low < 0xDC00 || low >= 0xE000)
        return false;
    *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
    return true;
}

/* Parses a string behind its opening quote; the result is NUL-terminated. */
static enum sdr_status parse_string(struct parser *p, const char **string, size_t *length)
{
    char *to = p->strings + (p->at - p->begin);
    *string = to;
    for (;;) {
        uint32_t code;
        if (p->at == p->end || (unsigned char)*p->at < ' ')
            return wrong();
        char c = *p->at++;
        if (c == '"')
            break;
        if (c != '\\')
            *to++ = c;
        else if (parse_escape(p, &code))
            to += put_character(to, code);
        else
            return wrong();
    }
    *to = 0;
    *length = (size_t)(to - *string);
    return SDR_OK;
}

static size_t digits(struct parser *p)
{
    const char *from = p->at;
    while (p->at < p->end && *p->at >= '0' && *p->at <= '9')
        p->at++;
    return (size_t)(p->at - from);
}

static enum sdr_status parse_number(struct parser *p, json_t **value)
{
    const char *from = p->at;
    bool real = false;
    accept(p, "-");
    bool fine = accept(p, "0") || digits(p);
    if (fine && accept(p, ".")) {
        real = true;
        fine = digits(p);
    }
    if (fine && (accept(p, "e") || accept(p, "E"))) {
        real = true;
        if (!accept(p, "+"))
            accept(p, "-");
        fine = digits(p);
    }
    if (!fine)
        return wrong();
    if (real) {
        double number;
        if (sdr_scan_double(from, p->at, &number) != p->at || !isfinite(number))
            return wrong();
        return made(json_real(number), value);
    }
    char text[32];
    size_t length = (size_t)(p->at - from);
    if (length >= sizeof text)
        return wrong();
    memcpy(text, from, length);
    text[length] = 0;
    errno = 0;
    long long number = strtoll(text, NULL, 10);
    return errno ? wrong() : made(json_integer(number), value);
}

static enum sdr_status parse_value(struct parser *p, json_t **value);

static enum sdr_status parse_member(struct parser *p, json_t *object)
{
    const char *key;
    size_t length;
    json_t *value = NULL;
    skip_space(p);
    if (!accept(p, "\""))
        return wrong();
    SDR_TRY(parse_string(p, &key, &length));
    skip_space(p);
    if (!accept(p, ":") || json_object_get(object, key))
        return wrong();
    SDR_TRY(parse_value(p, &value));
    return json_object_set_new_nocheck(object, key, value) == 0 ? SDR_OK : made(NULL, &value);
}

static enum sdr_status parse_element(struct parser *p, json_t *array)
{
    json_t *value = NULL;
    SDR_TRY(parse_value(p, &value));
    return json_array_append_new(array, value) == 0 ? SDR_OK : made(NULL, &value);
}

/* Parses an array or object behind its opening bracket. */
static enum sdr_status parse_container(struct parser *p, json_t **value, const char *close,
                                       enum sdr_status (*take_one)(struct parser *, json_t *))
{
    enum sdr_status status = SDR_OK;
    if (++p->depth > DEPTH_MOST)
        status = wrong();
    skip_space(p);
    if (status == SDR_OK && !accept(p, close))
        do {
            status = take_one(p, *value);
            skip_space(p);
        } while (status == SDR_OK && accept(p, ","));
    else
        close = "";
    if (status == SDR_OK && !accept(p, close))
        status = wrong();
    p->depth--;
    if (status != SDR_OK) {
        json_decref(*value);
        *value = NULL;
    }
    return status;
}

static enum sdr_status parse_value(struct parser *p, json_t **value)
{
    const char *string;
    size_t length;
    *value = NULL;
    skip_space(p);
    if (accept(p, "{")) {
        SDR_TRY(made(json_object(), value));
        return parse_container(p, value, "}", parse_member);
    }
    if (accept(p, "[")) {
        SDR_TRY(made(json_array(), value));
        return parse_container(p, value, "]", parse_element);
    }
    if (accept(p, "\"")) {
        SDR_TRY(parse_string(p, &string, &length));
        return made(json_stringn_nocheck(string, length), value);
    }
    if (accept(p, "true"))
        return made(json_true(), value);
    if (accept(p, "false"))
        return made(json_false(), value);
    if (accept(p, "null"))
        return made(json_null(), value);
    return parse_number(p, value);
}

enum sdr_status sdr_json_parse(const char *text, size_t length, json_t **value)
{
    struct parser p = {.begin = text, .at = text, .end = text + length};
    *value = NULL;
    if (!sdr_is_utf8(text, length))
        return wrong();
    SDR_TRY(sdr_allocate(&p.strings, length + 1, 1, "JSON"));
    enum sdr_status status = parse_value(&p, value);
    skip_space(&p);
    if (status == SDR_OK && p.at != p.end) {
        json_decref(*value);
        *value = NULL;
        status = wrong();
    }
    sdr_release(p.strings);
    return status;
}

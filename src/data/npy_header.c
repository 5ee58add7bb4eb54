/* The header of an NPY file: magic number, version, length, and a Python dictionary as text:
     {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 784), } */
#include "data/array.h"

#include <string.h>

struct cursor {
    const char *at, *end;
};

static void skip_blanks(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t'))
        c->at++;
}

/* Consumes one character if it is next. */
static bool accept(struct cursor *c, char wanted)
{
    skip_blanks(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static bool accept_word(struct cursor *c, const char *word)
{
    size_t length = strlen(word);
    skip_blanks(c);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    return true;
}

/* 'text' or "text". */
static bool parse_string(struct cursor *c, const char **text, size_t *length)
{
    char quote = accept(c, '\'') ? '\'' : accept(c, '"') ? '"' : 0;
    const char *close = quote ? memchr(c->at, quote, (size_t)(c->end - c->at)) : NULL;
    if (!close)
        return false;
    *text = c->at;
    *length = (size_t)(close - c->at);
    c->at = close + 1;
    return true;
}

/* (3, 4) or (3,) or (); numbers of Python 2 may end in L. */
static bool parse_shape(struct cursor *c, struct sdr_array *array)
{
    if (!accept(c, '('))
        return false;
    array->dims = 0;
    while (!accept(c, ')')) {
        uint64_t size = 0;
        skip_blanks(c);
        const char *first = c->at;
        for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
            if (__builtin_mul_overflow(size, 10, &size) ||
                __builtin_add_overflow(size, (uint64_t)(*c->at - '0'), &size))
                return false;
        if (c->at == first || array->dims == SDR_ARRAY_DIMS)
            return false;
        array->shape[array->dims++] = size;
        accept(c, 'L');
        if (!accept(c, ',')) {
            return accept(c, ')');
        }
    }
    return true;
}

/* "<f4": byte order, kind, size of a number. */
static bool type_of(const char *text, size_t length, struct sdr_array *array)
{
    static const struct {
        char name[3];
        enum sdr_array_type type;
    } known[] = {{"b1", SDR_ARRAY_BOOL}, {"u1", SDR_ARRAY_U8},  {"i1", SDR_ARRAY_I8},
                 {"u2", SDR_ARRAY_U16},  {"i2", SDR_ARRAY_I16}, {"u4", SDR_ARRAY_U32},
                 {"i4", SDR_ARRAY_I32},  {"u8", SDR_ARRAY_U64}, {"i8", SDR_ARRAY_I64},
                 {"f4", SDR_ARRAY_F32},  {"f8", SDR_ARRAY_F64}};
    if (length != 3 || !strchr("<>|=", text[0]))
        return false;
    array->big_endian = text[0] == '>';
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (memcmp(text + 1, known[i].name, 2) == 0) {
            array->type = known[i].type;
            return true;
        }
    return false;
}

static enum sdr_status parse_entry(const char *name, struct cursor *c, struct sdr_array *array,
                                   unsigned *seen)
{
    const char *key, *text;
    size_t key_length, length;
    bool good = parse_string(c, &key, &key_length) && accept(c, ':');
    if (good && key_length == 5 && memcmp(key, "descr", 5) == 0) {
        if (!parse_string(c, &text, &length))
            return sdr_fail(SDR_BAD_DATA,
                            "%s: arrays of records cannot be read, only plain numbers", name);
        if (!type_of(text, length, array))
            return sdr_fail(SDR_BAD_DATA,
                            "%s: numbers of type '%.*s' cannot be read (use float32, "
                            "float64, integers or bool)",
                            name, (int)(length < 20 ? length : 20), text);
        *seen |= 1;
    } else if (good && key_length == 13 && memcmp(key, "fortran_order", 13) == 0) {
        array->fortran = accept_word(c, "True");
        good = array->fortran || accept_word(c, "False");
        *seen |= 2;
    } else if (good && key_length == 5 && memcmp(key, "shape", 5) == 0) {
        good = parse_shape(c, array);
        *seen |= 4;
    } else {
        good = false;
    }
    return good ? SDR_OK : sdr_fail(SDR_BAD_DATA, "%s: the NPY header is damaged", name);
}

bool sdr_npy_is(const char *bytes, size_t count)
{
    return count >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0;
}

enum sdr_status sdr_npy_header(const char *name, const char *bytes, size_t count,
                               struct sdr_array *array)
{
    const unsigned char *head = (const unsigned char *)bytes;
    unsigned seen = 0;
    *array = (struct sdr_array){0};
    if (!sdr_npy_is(bytes, count))
        return sdr_fail(SDR_BAD_DATA, "%s: not an NPY file", name);
    size_t begin = count > 6 && head[6] >= 2 ? 12 : 10;
    if (count < begin)
        return sdr_fail(SDR_BAD_DATA, "%s: truncated: the NPY header ends early", name);
    if (head[6] < 1 || head[6] > 3)
        return sdr_fail(SDR_BAD_DATA, "%s: NPY version %u cannot be read", name, head[6]);
    size_t length = head[8] | (size_t)head[9] << 8;
    if (begin == 12)
        length |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
    if (length > count - begin)
        return sdr_fail(SDR_BAD_DATA, "%s: truncated: the NPY header ends early", name);
    struct cursor c = {bytes + begin, bytes + begin + length};
    if (!accept(&c, '{'))
        return sdr_fail(SDR_BAD_DATA, "%s: the NPY header is damaged", name);
    while (!accept(&c, '}')) {
        SDR_TRY(parse_entry(name, &c, array, &seen));
        if (!accept(&c, ',')) {
            if (accept(&c, '}'))
                break;
            return sdr_fail(SDR_BAD_DATA, "%s: the NPY header is damaged", name);
        }
    }
    if (seen != 7)
        return sdr_fail(SDR_BAD_DATA, "%s: the NPY header is damaged", name);
    array->header = begin + length;
    return sdr_array_measure(name, array);
}

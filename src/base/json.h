/* JSON on top of jansson, safe when memory runs out: builders record failed allocations, the parser
   is ours (jansson's asserts), and printed text is a string that the caller frees like any
   other. */
#ifndef SDR_BASE_JSON_H
#define SDR_BASE_JSON_H

#include "base/fail.h"
#include <jansson.h>

/* Builders. sdr_json_begin starts a document on this thread and clears its error flag; one document
   at a time per thread, and its root is still empty. _set and _append take over the reference to
   value. A failed allocation sets the error flag, and sdr_json_print fails. */
json_t *sdr_json_begin(json_t *root);
void sdr_json_set(json_t *object, const char *key, json_t *value);
void sdr_json_append(json_t *array, json_t *value);
/* False if an allocation failed since sdr_json_begin. */
bool sdr_json_whole(void);

/* Serializes value; the text is given away (sdr_string_free). flags are those of json_dumps. */
enum sdr_status sdr_json_dump(const json_t *value, size_t flags, char **text);
/* Serializes the document built since sdr_json_begin; fails if an allocation failed. Takes over the
   reference to value. */
enum sdr_status sdr_json_print(json_t *value, size_t flags, char **text);
/* sdr_json_print, compact and with all digits. */
enum sdr_status sdr_json_text(json_t *value, char **text);

/* Parses one RFC 8259 value. SDR_BAD_FILE: a syntax error, a duplicate name, a number out of range
   or a NUL in a string; SDR_RUNTIME: out of memory. */
enum sdr_status sdr_json_parse(const char *text, size_t length, json_t **value);

#endif

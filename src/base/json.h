/* JSON values are jansson's. This is what it lacks where memory runs out: values that are built remember that
   something is missing, text is parsed without jansson's lexer (which asserts), and text comes as a string that the
   caller frees like any other. */
#ifndef SDR_BASE_JSON_H
#define SDR_BASE_JSON_H

#include "base/fail.h"
#include <jansson.h>

/* Building. begin: Starts a document on this thread and clears its error flag; one document at a time per thread. Its
   root holds no other values yet. set and append take the reference to value over; if there was no memory for it, or for its place, the thread remembers, and
   sdr_json_print fails. */
json_t *sdr_json_begin(json_t *root);
void sdr_json_set(json_t *object, const char *key, json_t *value);
void sdr_json_append(json_t *array, json_t *value);
/* Whether everything since sdr_json_begin found memory. */
bool sdr_json_whole(void);

/* The value as text, given away (sdr_string_free). flags are those of json_dumps. */
enum sdr_status sdr_json_dump(const json_t *value, size_t flags, char **text);
/* The same of what was built since sdr_json_begin: fails unless it is whole; takes the reference to value over. */
enum sdr_status sdr_json_print(json_t *value, size_t flags, char **text);
/* The same, compact and with all digits. */
enum sdr_status sdr_json_text(json_t *value, char **text);

/* Parses one value, as RFC 8259 has it. SDR_BAD_FILE: it is none, a name occurs twice, a number is out of range, or a
   string has a NUL; SDR_RUNTIME: out of memory. */
enum sdr_status sdr_json_parse(const char *text, size_t length, json_t **value);

#endif

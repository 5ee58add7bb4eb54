/* JSON is jansson's; this is the one thing it lacks here: text that the caller frees like any
 * other. */
#ifndef SDR_BASE_JSON_H
#define SDR_BASE_JSON_H

#include "base/fail.h"
#include <jansson.h>

/* The value as compact text, given away (sdr_string_free); takes the reference to value over.
   NULL (out of memory while it was built) is a failure. */
enum sdr_status sdr_json_text(json_t *value, char **text);

#endif

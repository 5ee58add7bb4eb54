#include "base/json.h"
#include "base/memory.h"

#include <stdlib.h>

enum sdr_status sdr_json_text(json_t *value, char **text)
{
    char *dumped = value ? json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(value);
    *text = NULL;
    if (!dumped)
        return sdr_fail(SDR_RUNTIME, "out of memory: JSON, or text that is not UTF-8");
    enum sdr_status status = sdr_copy_string(text, dumped);
    free(dumped);
    return status;
}

/* The contract of every plug-in's options: what `sounder list KIND --verbose` shows for a value is
   of its type. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"
#include "sounder/sounder.h"

#include <string.h>

static const char *const kinds[] = {"model",     "optimizer", "schedule", "sync",
                                    "transport", "format",    "generate"};

/* "    rho=X  share of the old mean square that is kept [0.9]": the default says of what type it is. */
static void check_line(char *line)
{
    double number;
    char *equals = strchr(line, '='), *gap = equals ? strstr(equals, "  ") : NULL;
    if (!gap || gap == equals + 1 || !gap[2])
        fail_msg("'%s' is not KEY=VALUE and a help", line);
    char *preset = strrchr(gap, '[');
    const char *shown = equals + 1;
    *gap = 0;
    bool flag = strcmp(shown, "yes|no") == 0;
    if (!preset) { /* a text that may be absent */
        assert_false(flag);
        return;
    }
    preset++;
    preset[strcspn(preset, "]")] = 0;
    if (flag != (strcmp(preset, "yes") == 0 || strcmp(preset, "no") == 0))
        fail_msg("'%s' is shown for a default of '%s'", line, preset);
    for (const char *p = shown; sdr_parse_double(preset, &number) && *p; p++)
        if (*p < 'A' || *p > 'Z')
            fail_msg("'%s' is no placeholder of a number", line);
}

static void options_show_what_they_take(void **state)
{
    int options = 0;
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        char *text, *rest = NULL;
        assert_int_equal(sdr_list(kinds[k], true, &text), SDR_OK);
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
            if (strncmp(line, "    ", 4) == 0) {
                check_line(line);
                options++;
            }
        sdr_string_free(text);
    }
    assert_true(options > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(options_show_what_they_take)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

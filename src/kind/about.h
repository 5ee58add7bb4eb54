/* The members that all kinds of plug-ins share.

   A plug-in is one file in its kind's folder that ends in SDR_REGISTER(kind, name); the build
   finds that line and writes the table. Everything here is const and shared by all threads. */
#ifndef SDR_KIND_ABOUT_H
#define SDR_KIND_ABOUT_H

#include "base/option.h"
#include <stdatomic.h>
#include <stdint.h>

/* Defines the plug-in's symbol; '-' in names is '_' here. */
#define SDR_REGISTER(kind, name) const struct sdr_##kind sdr_##kind##_##name

/* The first members of every plug-in: the same code lists, finds and configures all kinds. */
#define SDR_ABOUT                                                                                  \
    const char *name, *summary;                                                                    \
    const struct sdr_option *options; /* or NULL */                                                \
    size_t options_size               /* of the struct the options are stored in */
struct sdr_plugin {
    SDR_ABOUT;
};

#endif

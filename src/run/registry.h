/* The tables of plug-ins, written by the build from the SDR_REGISTER lines; each ends with NULL. */
#ifndef SDR_REGISTRY_H
#define SDR_REGISTRY_H

#include "kind/aggregate.h"
#include "kind/codec.h"
#include "plugin.h"

extern const struct sdr_format *const sdr_format_table[];
extern const struct sdr_generator *const sdr_generator_table[];
extern const struct sdr_model_kind *const sdr_model_kind_table[];
extern const struct sdr_optimizer *const *const sdr_optimizer_table[]; /* by enum sdr_cpu */
extern const struct sdr_schedule *const sdr_schedule_table[];
extern const struct sdr_strategy *const sdr_strategy_table[];
extern const struct sdr_transport *const sdr_transport_table[];
extern const struct sdr_codec *const sdr_codec_table[];
extern const struct sdr_aggregate *const sdr_aggregate_table[];

#endif

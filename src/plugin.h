/* The interfaces: one header a kind of plug-in, with the contract of every member. */
#ifndef SDR_PLUGIN_H
#define SDR_PLUGIN_H

#include "kind/aggregate.h"
#include "kind/codec.h"
#include "kind/format.h"
#include "kind/generator.h"
#include "kind/model.h"
#include "kind/optimizer.h"
#include "kind/rate_schedule.h"
#include "kind/strategy.h"
#include "kind/transport.h"

#endif

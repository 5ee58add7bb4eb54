/* Windows of rows and their components (sync/cyclades.c). */
#ifndef SDR_WINDOW_H
#define SDR_WINDOW_H

#include "team/node.h"

struct sdr_window;

/* The longest window whose largest component is below 10 % of the work; 0: rows share too many
   features. */
enum sdr_status sdr_window_choose(const struct sdr_run *run, uint64_t *rows);
enum sdr_status sdr_window_create(struct sdr_run *run); /* sets run->shared.window */
void sdr_window_destroy(struct sdr_window *w);
/* Before an epoch: sdr_window_order turns the order of the first epoch (needed once: _needs_base)
   into that of the current one. */
bool sdr_window_needs_base(const struct sdr_run *run);
void sdr_window_order(struct sdr_run *run);
/* Called before and after a window while no worker trains. */
void sdr_window_open(struct sdr_run *run, const struct sdr_batch *window);
void sdr_window_close(struct sdr_run *run, const struct sdr_batch *window);

#endif

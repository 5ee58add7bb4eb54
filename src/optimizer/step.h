/* The loops shared by all optimizers. An optimizer is one file of this form:

      #include "optimizer/step.h"
      begin(options, update, rate, target, c)   the constants c of an update
      step(c, g, &s0, &s1)      the change of a value with gradient g and state s0, s1
      metric(c, a, s0, s1)      the step per unit of gradient, times a
      #include "optimizer/step_loops.h"
      SDR_REGISTER_PER_CPU(optimizer, name) = {..., SDR_STEP_LOOPS};

   With SDR_STEP_ASSIGNS defined (FTRL), step() also gets the value and returns the new one, and
   value_of_state() computes the value from the state with the penalty due.

   Scaled units. With scale q_j = 1/size of feature j the optimizer works on v_j = w_j/q_j: it sees
   the gradient q_j·g_j, and the weight moves by q_j·step. The loss is unchanged; only the path to
   its minimum becomes independent of the units of the features.

   Penalty. Between two touches of a value only the penalty acts. It is the flow
      dw/dS = −m·(l2·w + l1·sign w),   S = Σ rate, m = metric·q²
   whose solution over ΔS is exact for any number of skipped steps:
      |w| ← max(0, |w|·e − (l1/l2)(1 − e)),   e = exp(−m·l2·ΔS)
      |w| ← max(0, |w| − m·l1·ΔS)             for l2 = 0
   So the lazy result equals the dense one, for every schedule. Group lasso shrinks the norm of a
   row the same way. If the metric depends on the number of updates (Adam), that factor goes into
   penalty_due instead: see optimizer/adam.c. */
#ifndef SDR_OPTIMIZER_STEP_H
#define SDR_OPTIMIZER_STEP_H

#include "kernel/cells.h"
#include "kernel/dot.h"
#include "kernel/level.h"
#include "kernel/linear.h"
#include "kind/optimizer.h"

#define SDR_REGISTER_PER_CPU(kind, name)                                                           \
    extern const struct sdr_##kind SDR_FOR_LEVEL(sdr_##kind##_##name);                             \
    const struct sdr_##kind SDR_FOR_LEVEL(sdr_##kind##_##name)

#define SDR_STEP_LOOPS                                                                             \
    .sparse16 = sparse16, .sparse32 = sparse32, .dense = dense, .matrix16 = matrix16,              \
    .matrix32 = matrix32, .matrix = matrix, .matrix_rows = matrix_rows, .catch_up16 = catch_up16,  \
    .catch_up32 = catch_up32, .catch_up = catch_up_all, .fused = fused,                            \
    .fused_shared = fused_shared

#endif

/* The contract of every optimizer: its first steps, one set of bits on every CPU level, lazy
   penalties. */
#include "conform/numbers.h"

#include "base/cpu.h"
#include "base/memory.h"
#include "kernel/linear.h"
#include "run/registry.h"
#include "run/settings.h"
#include "update/parameters.h"

enum { FEATURES = 160, OUTPUTS_MOST = 20, VALUES = FEATURES * OUTPUTS_MOST, MOST = 40 };

static const struct sdr_optimizer *find(enum sdr_cpu level, const char *spec, void **options)
{
    const struct sdr_plugin *plugin;
    assert_int_equal(
        sdr_plugin_choose("optimizer", sdr_optimizer_table[level], spec, &plugin, options), SDR_OK);
    return (const struct sdr_optimizer *)plugin;
}

#define FOR_EVERY_OPTIMIZER(o)                                                                     \
    for (const struct sdr_optimizer *const *o_ = sdr_optimizer_table[sdr_cpu_level()], *o;         \
         (o = *o_); o_++)

/* ---- one set of bits ---- */
/* Everything a step may read or write. */
struct state {
    float value[VALUES], slot[2][VALUES], penalty_paid[VALUES], constant[SDR_CONSTANTS];
};

struct given {
    uint16_t index16[MOST];
    uint32_t index32[MOST], n, outputs;
    float x[FEATURES], u[OUTPUTS_MOST], scale[FEATURES], center[FEATURES], rate, penalty_due;
    bool scaled, centered, standardize;
    float l1, l2, group;
};

static void make_given(struct given *g, uint32_t n, uint32_t outputs)
{
    uint32_t at = random_below(3);
    *g = (struct given){.n = n, .outputs = outputs};
    for (uint32_t i = 0; i < n; i++, at += 1 + random_below(3)) {
        g->index32[i] = at;
        g->index16[i] = (uint16_t)at;
    }
    assert_true(at <= FEATURES);
    for (int i = 0; i < FEATURES; i++) {
        g->x[i] = random_float(2);
        g->scale[i] = 0.25f + random_float(0.2f);
        g->center[i] = random_float(0.5f);
    }
    for (int k = 0; k < OUTPUTS_MOST; k++)
        g->u[k] = random_float(1);
    g->scaled = random_below(2);
    g->centered = random_below(2);
    g->standardize = g->scaled && random_below(2);
    g->rate = 0.125f;
    g->penalty_due = 3;
    g->l1 = random_below(2) ? 0.01f : 0;
    g->l2 = random_below(2) ? 0.02f : 0;
}

static struct sdr_target target_on(struct state *s, const struct given *g, int slots)
{
    struct sdr_target t = {.value = s->value,
                           .penalty_paid = s->penalty_paid,
                           .constant = s->constant,
                           .penalty_due = g->penalty_due,
                           .l1 = g->l1,
                           .l2 = g->l2,
                           .group = g->group,
                           .standardize = g->standardize};
    for (int i = 0; i < slots; i++)
        t.slot[i] = s->slot[i];
    t.scale = g->scaled ? g->scale : NULL;
    t.center = g->centered ? g->center : NULL;
    return t;
}

static void random_state_of(struct state *s)
{
    for (int i = 0; i < VALUES; i++) {
        s->value[i] = random_below(8) ? random_float(1) : 0;
        s->slot[0][i] = fabsf(random_float(1));
        s->slot[1][i] = fabsf(random_float(0.1f));
        s->penalty_paid[i] = fabsf(random_float(3));
    }
}

enum { ACTIONS = 9 };
static const char *const action_name[ACTIONS] = {"sparse16", "sparse32", "dense",
                                                 "matrix16", "matrix32", "matrix",
                                                 "settle16", "settle32", "settle"};
static void act(const struct sdr_optimizer *o, int action, struct sdr_target *t,
                const struct given *g)
{
    struct sdr_target sparse = *t;
    sparse.center = NULL;
    switch (action) {
    case 0: o->sparse16(&sparse, g->index16, g->x, g->n, g->u[0]); break;
    case 1: o->sparse32(&sparse, g->index32, g->x, g->n, g->u[0]); break;
    case 2: o->dense(t, g->x, g->n, g->u[0]); break;
    case 3: o->matrix16(&sparse, g->index16, g->x, g->n, g->u, g->outputs); break;
    case 4: o->matrix32(&sparse, g->index32, g->x, g->n, g->u, g->outputs); break;
    case 5: o->matrix(t, g->x, g->n, g->u, g->outputs); break;
    case 6: o->catch_up16(t, g->index16, g->n, g->outputs); break;
    case 7: o->catch_up32(t, g->index32, g->n, g->outputs); break;
    case 8: o->catch_up(t, g->n, g->outputs); break;
    }
}

static void every_level_gives_the_same_bits(void **unused)
{
    static struct state start, first, other;
    (void)unused;
    FOR_EVERY_OPTIMIZER(named)
    for (uint32_t n = 0; n <= MOST; n++)
        for (int action = 0; action < ACTIONS; action++) {
            struct given g;
            make_given(&g, n, action >= 3 && random_below(4) ? 1 + random_below(OUTPUTS_MOST) : 1);
            if (named->uniform && random_below(2))
                g.group = 0.03f;
            random_state_of(&start);
            for (int level = 0; level <= (int)sdr_cpu_best(); level++) {
                struct state *s = level ? &other : &first;
                void *options;
                const struct sdr_optimizer *o = find((enum sdr_cpu)level, named->name, &options);
                *s = start;
                struct sdr_target t = target_on(s, &g, o->slots);
                o->begin(options, 7, g.rate, &t, s->constant);
                act(o, action, &t, &g);
                if (level && memcmp(&first, &other, sizeof first) != 0)
                    fail_msg("%s.%s, n = %u, %u outputs: %s gives other bits than portable",
                             named->name, action_name[action], n, g.outputs,
                             sdr_cpu_name((enum sdr_cpu)level));
                sdr_release(options);
            }
        }
}

static void short_and_long_indices_give_the_same_bits(void **unused)
{
    static struct state start, first, other;
    static const int pair[3][2] = {{0, 1}, {3, 4}, {6, 7}};
    (void)unused;
    FOR_EVERY_OPTIMIZER(o)
    for (uint32_t n = 0; n <= MOST; n++)
        for (int p = 0; p < 3; p++) {
            struct given g;
            void *options;
            find(sdr_cpu_level(), o->name, &options);
            make_given(&g, n, p ? 1 + random_below(OUTPUTS_MOST) : 1);
            random_state_of(&start);
            first = other = start;
            struct sdr_target a = target_on(&first, &g, o->slots);
            struct sdr_target b = target_on(&other, &g, o->slots);
            o->begin(options, 7, g.rate, &a, first.constant);
            o->begin(options, 7, g.rate, &b, other.constant);
            act(o, pair[p][0], &a, &g);
            act(o, pair[p][1], &b, &g);
            assert_memory_equal(&first, &other, sizeof first);
            sdr_release(options);
        }
}

/* A row of one output may go through any loop: they must not differ. */
static void one_output_is_the_matrix_of_one_column(void **unused)
{
    static struct state start, first, other;
    static const int pair[3][2] = {{0, 3}, {1, 4}, {2, 5}};
    (void)unused;
    FOR_EVERY_OPTIMIZER(o)
    for (uint32_t n = 0; n <= MOST; n++)
        for (int p = 0; p < 3; p++) {
            struct given g;
            void *options;
            find(sdr_cpu_level(), o->name, &options);
            make_given(&g, n, 1);
            random_state_of(&start);
            first = other = start;
            struct sdr_target a = target_on(&first, &g, o->slots);
            struct sdr_target b = target_on(&other, &g, o->slots);
            o->begin(options, 7, g.rate, &a, first.constant);
            o->begin(options, 7, g.rate, &b, other.constant);
            act(o, pair[p][0], &a, &g);
            act(o, pair[p][1], &b, &g);
            for (uint32_t i = 0; i < FEATURES; i++)
                if (memcmp(&first.value[i], &other.value[i], sizeof(float)) != 0)
                    fail_msg("%s: %s and %s differ", o->name, action_name[pair[p][0]],
                             action_name[pair[p][1]]);
            sdr_release(options);
        }
}

static void a_step_touches_its_own_values_only(void **unused)
{
    static struct state start, s;
    (void)unused;
    FOR_EVERY_OPTIMIZER(o)
    for (uint32_t n = 0; n <= MOST; n++)
        for (int action = 0; action < ACTIONS; action++) {
            struct given g;
            void *options;
            bool own[VALUES] = {0}, listed = action % 3 != 2;
            find(sdr_cpu_level(), o->name, &options);
            make_given(&g, n, action >= 3 ? 1 + random_below(OUTPUTS_MOST) : 1);
            for (uint32_t i = 0; i < n; i++)
                for (uint32_t k = 0; k < g.outputs; k++)
                    own[(listed ? g.index32[i] : i) * g.outputs + k] = true;
            random_state_of(&start);
            s = start;
            struct sdr_target t = target_on(&s, &g, o->slots);
            o->begin(options, 7, g.rate, &t, s.constant);
            act(o, action, &t, &g);
            for (int v = 0; v < VALUES; v++)
                if (!own[v] &&
                    (s.value[v] != start.value[v] || s.penalty_paid[v] != start.penalty_paid[v] ||
                     s.slot[0][v] != start.slot[0][v] || s.slot[1][v] != start.slot[1][v]))
                    fail_msg("%s.%s wrote value %d, which is not in the row", o->name,
                             action_name[action], v);
            sdr_release(options);
        }
}

/* ---- the first steps, from the papers ---- */
/* w and state of one value in double; g of step t (from 1); defaults of the options as in
   --help. */
struct scalar {
    double w, a, b;
};
typedef void formula(struct scalar *s, int t, double g, double rate);

static void sgd(struct scalar *s, int t, double g, double rate)
{
    (void)t;
    s->w -= rate * g;
}
static void momentum(struct scalar *s, int t, double g, double rate)
{
    (void)t;
    s->a = 0.9 * s->a - rate * g;
    s->w += s->a;
}
static void adagrad(struct scalar *s, int t, double g, double rate)
{
    (void)t;
    s->a += g * g;
    s->w -= rate * g / (sqrt(s->a) + 1e-10);
}
static void rmsprop(struct scalar *s, int t, double g, double rate)
{
    (void)t;
    s->a = 0.99 * s->a + 0.01 * g * g;
    s->w -= rate * g / (sqrt(s->a) + 1e-8);
}
static void rmsprop_nesterov(struct scalar *s, int t, double g, double rate)
{
    (void)t;
    s->a = 0.99 * s->a + 0.01 * g * g;
    s->b = 0.9 * s->b - rate * g / (sqrt(s->a) + 1e-8);
    s->w += s->b;
}
static void adadelta(struct scalar *s, int t, double g, double rate)
{
    (void)t;
    s->a = 0.9 * s->a + 0.1 * g * g;
    double d = g * sqrt(s->b + 1e-6) / sqrt(s->a + 1e-6);
    s->b = 0.9 * s->b + 0.1 * d * d;
    s->w -= rate * d;
}
static void adam(struct scalar *s, int t, double g, double rate)
{
    s->a = 0.9 * s->a + 0.1 * g;
    s->b = 0.999 * s->b + 0.001 * g * g;
    double m = s->a / (1 - pow(0.9, t)), v = s->b / (1 - pow(0.999, t));
    s->w -= rate * m / (sqrt(v) + 1e-8);
}
/* McMahan et al. 2013, algorithm 1, without penalties, β = 1; a = z, b = n. */
static void ftrl(struct scalar *s, int t, double g, double rate)
{
    (void)t;
    double sigma = (sqrt(s->b + g * g) - sqrt(s->b)) / rate;
    s->a += g - sigma * s->w;
    s->b += g * g;
    s->w = -s->a / ((1 + sqrt(s->b)) / rate);
}

/* Worked by hand for w = 1 (ftrl: 0), step 0.1 and gradients 1/2, −1, 1/4. */
static const struct {
    const char *name;
    formula *step;
    double start, by_hand[3];
} known[] = {
    {"sgd", sgd, 1, {0.95, 1.05, 1.025}},
    {"momentum", momentum, 1, {0.95, 1.005, 1.0295}},
    {"nesterov", momentum, 1, {0.95, 1.005, 1.0295}}, /* for given gradients w goes the same way */
    {"adagrad", adagrad, 1, {0.9, 0.989442719, 0.967620930}},
    {"rmsprop", rmsprop, 1, {0, 0.895323082, 0.675849575}},
    {"rmsprop-nesterov", rmsprop_nesterov, 1, {0, -0.004676738, -0.228359489}},
    {"adadelta", adadelta, 1, {0.999683779, 1.000087834, 0.999950170}},
    {"adam", adam, 1, {0.9, 0.936610354, 0.950279420}},
    {"adamw", adam, 1, {0.9, 0.936610354, 0.950279420}}, /* its decay is a penalty: see below */
    {"ftrl", ftrl, 0, {-0.033333333, 0.013880262, 0.002228748}},
};

static size_t entry_of(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0)
            return i;
    fail_msg("the optimizer %s has no formula in this test: add one", name);
    return 0;
}

/* The weight as others see it. */
static float published(const struct sdr_optimizer *o, const struct sdr_target *t)
{
    float w = t->value[0];
    if (o->publish)
        o->publish(t, 1, 1, &w);
    return w;
}

static void first_three_steps_are_those_worked_by_hand(void **unused)
{
    static const float g[3] = {0.5f, -1, 0.25f};
    static const float one = 1;
    (void)unused;
    FOR_EVERY_OPTIMIZER(o)
    {
        size_t entry = entry_of(o->name);
        struct state s = {.value = {(float)known[entry].start}};
        struct given none = {0};
        struct sdr_target t = target_on(&s, &none, o->slots);
        void *options;
        find(sdr_cpu_level(), o->name, &options);
        for (int i = 0; i < 3; i++) {
            o->begin(options, (uint64_t)i + 1, 0.1, &t, s.constant);
            o->dense(&t, &one, 1, g[i]);
            assert_near(published(o, &t), known[entry].by_hand[i], 4e-7, "%s, step %d", o->name,
                        i + 1);
        }
        sdr_release(options);
    }
}

static void many_steps_follow_the_formula(void **unused)
{
    (void)unused;
    FOR_EVERY_OPTIMIZER(o)
    {
        size_t entry = entry_of(o->name);
        static struct state s;
        struct scalar exact[MOST];
        struct given none = {0};
        void *options;
        find(sdr_cpu_level(), o->name, &options);
        s = (struct state){0};
        for (int i = 0; i < MOST; i++) {
            exact[i] = (struct scalar){.w = known[entry].start};
            s.value[i] = (float)known[entry].start;
        }
        struct sdr_target t = target_on(&s, &none, o->slots);
        for (int step = 1; step <= 50; step++) {
            float x[MOST], u = random_float(2);
            double rate = o->own_penalty ? 0.05 : 0.05 / sqrt(step);
            o->begin(options, (uint64_t)step, rate, &t, s.constant);
            for (int i = 0; i < MOST; i++) {
                x[i] = random_float(1);
                known[entry].step(&exact[i], step, (double)x[i] * u, rate);
            }
            o->dense(&t, x, MOST, u);
        }
        float w[MOST];
        memcpy(w, s.value, sizeof w);
        if (o->publish)
            o->publish(&t, MOST, 1, w);
        for (int i = 0; i < MOST; i++)
            assert_near(w[i], exact[i].w, 2e-5, "%s after 50 steps, value %d", o->name, i);
        sdr_release(options);
    }
}

/* Nesterov's gradient is taken at w + βv: on f = ½w² the two forms part at once. */
static void nesterov_takes_its_gradient_at_the_look_ahead(void **unused)
{
    static const float one = 1;
    struct state s = {.value = {1}};
    struct given none = {0};
    void *options;
    double w = 1, v = 0;
    (void)unused;
    const struct sdr_optimizer *o = find(sdr_cpu_level(), "nesterov:beta=0.5", &options);
    struct sdr_target t = target_on(&s, &none, o->slots);
    for (int i = 1; i <= 20; i++) {
        v = 0.5 * v - 0.25 * (w + 0.5 * v);
        w += v;
        o->begin(options, (uint64_t)i, 0.25, &t, s.constant);
        o->dense(&t, &one, 1, s.value[0]); /* the stored value is where gradients are taken */
        assert_near(published(o, &t), w, 1e-6, "step %d", i);
        assert_near(s.value[0], w + 0.5 * v, 1e-6, "look-ahead, step %d", i);
    }
    sdr_release(options);
}

/* ---- sparse and dense ---- */
static void a_zero_gradient_changes_nothing_where_it_should_not(void **unused)
{
    static const char *const names[] = {"sgd", "adagrad", "ftrl"};
    static struct state sparse, dense;
    (void)unused;
    for (size_t i = 0; i < 3; i++) {
        void *options;
        const struct sdr_optimizer *o = find(sdr_cpu_level(), names[i], &options);
        sparse = dense = (struct state){0};
        for (int step = 1; step <= 40; step++) {
            struct given g;
            float row[FEATURES] = {0};
            make_given(&g, 1 + random_below(MOST), 1);
            g.l1 = g.l2 = 0;
            g.centered = g.scaled = false;
            for (uint32_t n = 0; n < g.n; n++)
                row[g.index32[n]] = g.x[n];
            struct sdr_target a = target_on(&sparse, &g, o->slots);
            struct sdr_target b = target_on(&dense, &g, o->slots);
            o->begin(options, (uint64_t)step, 0.1, &a, sparse.constant);
            o->begin(options, (uint64_t)step, 0.1, &b, dense.constant);
            o->sparse16(&a, g.index16, g.x, g.n, g.u[0]);
            o->dense(&b, row, FEATURES, g.u[0]);
            for (int v = 0; v < FEATURES; v++)
                assert_true(sparse.value[v] == dense.value[v] &&
                            sparse.slot[0][v] == dense.slot[0][v] &&
                            sparse.slot[1][v] == dense.slot[1][v]);
        }
        sdr_release(options);
    }
}

/* ---- penalties, through the parameters ---- */
enum { SMALL = 24, STEPS = 400, CLASSES = 3 };

/* Parameters of one block that is per feature and penalised. */
static void make_parameters(struct sdr_parameters *p, struct sdr_layout *layout, uint32_t rows,
                            uint32_t cols, const struct sdr_optimizer *o, const void *options,
                            const struct sdr_penalty *penalty, const float *scale)
{
    struct sdr_block block = {
        .name = "weight", .rows = rows, .cols = cols, .per_feature = true, .penalised = true};
    struct sdr_step_rule rule = {.optimizer = o,
                                 .optimizer_options = options,
                                 .penalty = *penalty,
                                 .scale = scale,
                                 .kernels = sdr_linear_kernels(sdr_cpu_level())};
    sdr_layout_make(layout, &block, 1);
    assert_int_equal(sdr_parameters_create(p, layout, &rule, false, false), SDR_OK);
}

/* A step with the gradient u·xᵀ of one example, after what is due was paid. */
static void step_on_example(struct sdr_parameters *p, const struct sdr_batch *batch, const float *u,
                            double rate)
{
    struct sdr_part part = {.form = SDR_FACTORS, .count = 1, .value = u};
    struct sdr_update update = {.sense = SDR_GRADIENT, .batch = *batch, .part = &part, .parts = 1};
    sdr_parameters_catch_up(p, batch, sdr_all(p->layout));
    sdr_parameters_apply(p, &update, rate);
}

struct trial {
    const char *spec;
    struct sdr_penalty penalty;
    bool scaled, decreasing;
    uint32_t outputs;
    double rate;
};

/* One path: random sparse gradients; `always` settles everything after every step. Writes the
   weights. */
static void walk(const struct trial *trial, bool always, uint64_t seed, float *w)
{
    struct sdr_parameters p;
    struct sdr_layout layout;
    float scale[SMALL], x[4], u[CLASSES];
    void *options;
    const struct sdr_optimizer *o = find(sdr_cpu_level(), trial->spec, &options);
    random_state = seed;
    for (int j = 0; j < SMALL; j++)
        scale[j] = 0.5f + fabsf(random_float(1));
    make_parameters(&p, &layout, SMALL, trial->outputs, o, options, &trial->penalty,
                    trial->scaled ? scale : NULL);
    for (int step = 0; step < STEPS; step++) {
        uint32_t index[4], row = 0;
        uint64_t start[2] = {0, 4};
        /* Feature 0 in every row, the last ones hardly ever. */
        index[0] = 0;
        index[1] = 1 + random_below(3);
        index[2] = 4 + random_below(8);
        index[3] = step % 100 == 0 ? 23 : 12 + random_below(11);
        for (int i = 0; i < 4; i++)
            x[i] = random_float(1);
        for (uint32_t k = 0; k < trial->outputs; k++)
            u[k] = random_float(1) + 0.5f;
        struct sdr_rows rows = {
            .count = 1, .features = SMALL, .start = start, .index32 = index, .value = x};
        struct sdr_batch batch = {.rows = &rows, .row = &row, .count = 1};
        step_on_example(&p, &batch, u,
                        trial->decreasing ? trial->rate / (1 + 0.05 * step) : trial->rate);
        if (always)
            sdr_parameters_catch_up_all(&p);
    }
    memcpy(w, sdr_parameters_weights(&p), SMALL * trial->outputs * sizeof *w);
    sdr_parameters_destroy(&p);
    sdr_release(options);
}

/* How many of the weights differ. */
static int compare_walks(const struct trial *trial)
{
    float lazy[SMALL * CLASSES], dense[SMALL * CLASSES], free_of_it[SMALL * CLASSES];
    struct trial none = *trial;
    double most = 0, effect = 0;
    int off = 0;
    none.penalty = (struct sdr_penalty){0};
    uint64_t seed = random_state | 1;
    walk(trial, false, seed, lazy);
    walk(trial, true, seed, dense);
    walk(&none, false, seed, free_of_it);
    for (uint32_t v = 0; v < SMALL * trial->outputs; v++)
        most = fmax(most, fabs(dense[v]));
    for (uint32_t v = 0; v < SMALL * trial->outputs; v++)
        effect = fmax(effect, fabs((double)free_of_it[v] - dense[v]));
    if (effect < 1e-3 * most)
        fail_msg("%s: the penalty did nothing, the test could not fail", trial->spec);
    /* 1e-6, and what 400 roundings of weights near the largest leave behind: half a unit each,
       several for a norm */
    double allowed = (trial->penalty.group > 0 ? 5e-5 : 8e-6) * most;
    for (uint32_t v = 0; v < SMALL * trial->outputs; v++)
        if (!(fabs((double)lazy[v] - dense[v]) <= 1e-6 * fabs(dense[v]) + allowed)) {
            if (!off)
                print_error(
                    "%s l1=%g l2=%g group=%g scaled=%d standardize=%d decreasing=%d: weight %u "
                    "is %.9g lazy, %.9g dense, the largest %g\n",
                    trial->spec, trial->penalty.l1, trial->penalty.l2, trial->penalty.group,
                    trial->scaled, trial->penalty.standardize, trial->decreasing, v, lazy[v],
                    dense[v], most);
            off++;
        }
    return off;
}

static double rate_for(const char *name)
{
    return strcmp(name, "sgd") == 0                                         ? 0.05
           : strcmp(name, "momentum") == 0 || strcmp(name, "nesterov") == 0 ? 0.005
           : strcmp(name, "adadelta") == 0                                  ? 1
           : strcmp(name, "rmsprop-nesterov") == 0                          ? 0.001
                                                                            : 0.02;
}

static int lazy_is_not_dense_for(const char *name)
{
    int off = 0;
    static const struct sdr_penalty penalties[] = {
        {.l1 = 0.03}, {.l2 = 0.1}, {.l1 = 0.02, .l2 = 0.1}};
    for (size_t i = 0; i < 3; i++)
        for (int kind = 0; kind < 6; kind++)
            for (uint32_t outputs = 1; outputs <= CLASSES; outputs += CLASSES - 1) {
                struct trial trial = {.spec = name,
                                      .penalty = penalties[i],
                                      .scaled = kind % 3,
                                      .decreasing = kind >= 3,
                                      .outputs = outputs,
                                      .rate = rate_for(name)};
                trial.penalty.standardize = kind % 3 == 2;
                off += compare_walks(&trial);
            }
    return off;
}

static void lazy_penalty_is_dense_penalty_for_every_optimizer(void **unused)
{
    int off = 0;
    (void)unused;
    FOR_EVERY_OPTIMIZER(o)
    {
        if (!o->own_penalty) /* FTRL keeps its penalty in closed form */
            off += lazy_is_not_dense_for(o->name);
    }
    assert_int_equal(off, 0);
}

static int group_lasso_is_not_dense_with(struct sdr_penalty penalty)
{
    int off = 0;
    FOR_EVERY_OPTIMIZER(o)
    {
        if (!o->uniform)
            continue;
        for (int kind = 0; kind < 6; kind++) {
            struct trial trial = {.spec = o->name,
                                  .penalty = penalty,
                                  .scaled = kind % 3,
                                  .decreasing = kind >= 3,
                                  .outputs = CLASSES,
                                  .rate = rate_for(o->name)};
            trial.penalty.standardize = kind % 3 == 2;
            off += compare_walks(&trial);
        }
    }
    return off;
}

static void lazy_penalty_is_dense_penalty_for_group_lasso(void **unused)
{
    (void)unused;
    assert_int_equal(group_lasso_is_not_dense_with((struct sdr_penalty){.group = 0.05}), 0);
}

static void lazy_penalty_is_dense_penalty_for_group_lasso_with_l2(void **unused)
{
    (void)unused;
    assert_int_equal(group_lasso_is_not_dense_with((struct sdr_penalty){.group = 0.03, .l2 = 0.1}),
                     0);
}

static void lazy_penalty_is_dense_penalty_for_group_lasso_with_l1(void **unused)
{
    (void)unused;
    assert_int_equal(group_lasso_is_not_dense_with((struct sdr_penalty){.group = 0.03, .l1 = 0.02}),
                     0);
}

/* The flow of step.h in double, against sgd on the same path. */
static void sgd_penalties_follow_the_flow(void **unused)
{
    (void)unused;
    for (int kind = 0; kind < 9; kind++) {
        double l1 = kind % 3 == 1 ? 0 : 0.03, l2 = kind % 3 == 0 ? 0 : 0.1;
        struct trial trial = {.spec = "sgd",
                              .penalty = {.l1 = l1, .l2 = l2},
                              .outputs = 1,
                              .scaled = kind >= 3,
                              .rate = 0.05};
        trial.penalty.standardize = kind >= 6;
        float w[SMALL];
        double exact[SMALL] = {0}, q[SMALL];
        uint64_t seed = random_state | 1, after;
        walk(&trial, false, seed, w);
        after = random_state;
        random_state = seed;
        for (int j = 0; j < SMALL; j++)
            q[j] = 0.5f + fabsf(random_float(1));
        for (int step = 0; step < STEPS; step++) {
            uint32_t index[4] = {0};
            float x[4];
            index[1] = 1 + random_below(3);
            index[2] = 4 + random_below(8);
            index[3] = step % 100 == 0 ? 23 : 12 + random_below(11);
            for (int i = 0; i < 4; i++)
                x[i] = random_float(1);
            float u = random_float(1) + 0.5f;
            for (int i = 0; i < 4; i++) {
                double unit = trial.scaled ? q[index[i]] : 1;
                exact[index[i]] -= 0.05 * unit * unit * u * x[i];
            }
            for (int j = 0; j < SMALL; j++) { /* one step of the flow on every weight */
                double unit = trial.scaled ? q[j] : 1;
                double one = l1 * (trial.penalty.standardize ? unit : unit * unit);
                double two = l2 * (trial.penalty.standardize ? 1 : unit * unit);
                double keep = exp(-two * 0.05);
                double size = two > 0 ? fabs(exact[j]) * keep - one / two * (1 - keep)
                                      : fabs(exact[j]) - 0.05 * one;
                exact[j] = copysign(fmax(size, 0), exact[j]);
            }
        }
        assert_true(after == random_state); /* the same numbers were drawn */
        for (int j = 0; j < SMALL; j++)
            assert_near(w[j], exact[j], 3e-6 * (1 + fabs(exact[j])), "flow, kind %d, weight %d",
                        kind, j);
    }
}

/* A weight that is read at every step is penalty_paid at every step: what is due each time may be
   far below the rounding of a float, the sum of it is not. */
static void a_small_penalty_is_not_lost_in_rounding(void **unused)
{
    enum { TIMES = 100000 };
    static const float zero[1] = {0};
    (void)unused;
    for (int kind = 0; kind < 2; kind++) {
        struct sdr_penalty penalty = {.l1 = kind ? 2e-7 : 0, .l2 = kind ? 0 : 2e-7};
        struct sdr_parameters p;
        struct sdr_layout layout;
        void *options;
        const struct sdr_optimizer *o = find(sdr_cpu_level(), "sgd", &options);
        make_parameters(&p, &layout, 1, 1, o, options, &penalty, NULL);
        p.value[0] = 1;
        float u = 0;
        uint32_t row = 0;
        struct sdr_rows rows = {.count = 1, .features = 1, .dense = zero, .stride = 1};
        struct sdr_batch batch = {.rows = &rows, .row = &row, .count = 1};
        for (int i = 0; i < TIMES; i++)
            step_on_example(&p, &batch, &u, 0.1);
        double exact = kind ? 1 - 2e-8 * TIMES : exp(-2e-8 * TIMES);
        assert_near(sdr_parameters_weights(&p)[0], exact, 1e-5, "%s, 100 000 steps",
                    kind ? "l1" : "l2");
        sdr_parameters_destroy(&p);
        sdr_release(options);
    }
}

/* ---- units ---- */
/* x_j in other units with scale_j to match: the same scores, for every optimizer and penalty in
   those units. */
static void units_of_a_feature_do_not_matter(void **unused)
{
    enum { WIDE = 20, TIMES = 60 };
    (void)unused;
    FOR_EVERY_OPTIMIZER(o)
    for (int thousand = 0; thousand < 2; thousand++)
        for (int penalised = 0; penalised < 2; penalised++) {
            float by = thousand ? 1000.0f : 1024.0f, scale[2][WIDE];
            struct sdr_parameters p[2];
            struct sdr_layout layout[2];
            struct sdr_penalty penalty = {
                .l1 = penalised ? 0.01 : 0, .l2 = penalised ? 0.1 : 0, .standardize = true};
            void *options;
            find(sdr_cpu_level(), o->name, &options);
            for (int j = 0; j < WIDE; j++) {
                scale[0][j] = 1;
                scale[1][j] = j == 3 ? 1 / by : 1;
            }
            for (int v = 0; v < 2; v++)
                make_parameters(&p[v], &layout[v], WIDE, 1, o, options, &penalty, scale[v]);
            for (int step = 0; step < TIMES; step++) {
                float x[2][WIDE], score[2];
                uint32_t row = 0;
                for (int j = 0; j < WIDE; j++)
                    x[0][j] = x[1][j] = random_float(1);
                x[1][3] = x[0][3] * by;
                for (int v = 0; v < 2; v++) {
                    struct sdr_rows rows = {
                        .count = 1, .features = WIDE, .dense = x[v], .stride = WIDE};
                    struct sdr_batch batch = {.rows = &rows, .row = &row, .count = 1};
                    sdr_parameters_catch_up(&p[v], &batch, sdr_all(&layout[v]));
                    score[v] =
                        sdr_linear_kernels(SDR_CPU_PORTABLE)->dot(p[v].value, x[v], NULL, WIDE);
                }
                float apart = fabsf(score[0] - score[1]);
                if (apart > (thousand ? 2e-5f : 0) * (1 + fabsf(score[0])))
                    fail_msg("%s: x%g, step %d: %.9g against %.9g", o->name, by, step, score[0],
                             score[1]);
                for (int v = 0; v < 2; v++) {
                    struct sdr_rows rows = {
                        .count = 1, .features = WIDE, .dense = x[v], .stride = WIDE};
                    struct sdr_batch batch = {.rows = &rows, .row = &row, .count = 1};
                    float u = score[0] - 1; /* the same slope: what differs is the step alone */
                    step_on_example(&p[v], &batch, &u, rate_for(o->name));
                }
            }
            sdr_parameters_destroy(&p[0]);
            sdr_parameters_destroy(&p[1]);
            sdr_release(options);
        }
}

/* NaN must stay visible: a penalty that turns it into a weight of zero hides a diverged run. */
static void a_penalty_does_not_hide_nan(void **unused)
{
    int hidden = 0;
    (void)unused;
    FOR_EVERY_OPTIMIZER(o)
    for (int kind = 0; kind < 3; kind++) {
        static struct state s;
        struct given g = {.n = 1,
                          .outputs = 1,
                          .penalty_due = 1,
                          .l1 = kind != 1 ? 0.01f : 0,
                          .l2 = kind != 0 ? 0.01f : 0};
        void *options;
        find(sdr_cpu_level(), o->name, &options);
        s = (struct state){0};
        s.value[0] = NAN;
        s.slot[0][0] = o->own_penalty ? NAN : 1; /* FTRL's weight is in its state */
        s.slot[1][0] = 1;
        struct sdr_target t = target_on(&s, &g, o->slots);
        o->begin(options, 3, 0.1, &t, s.constant);
        o->catch_up(&t, 1, 1);
        if (!isnan(s.value[0]) && ++hidden)
            print_error("%s, l1=%g l2=%g: NaN became %g\n", o->name, g.l1, g.l2, s.value[0]);
        sdr_release(options);
    }
    assert_int_equal(hidden, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_gives_the_same_bits),
        cmocka_unit_test(short_and_long_indices_give_the_same_bits),
        cmocka_unit_test(one_output_is_the_matrix_of_one_column),
        cmocka_unit_test(a_step_touches_its_own_values_only),
        cmocka_unit_test(first_three_steps_are_those_worked_by_hand),
        cmocka_unit_test(many_steps_follow_the_formula),
        cmocka_unit_test(nesterov_takes_its_gradient_at_the_look_ahead),
        cmocka_unit_test(a_zero_gradient_changes_nothing_where_it_should_not),
        cmocka_unit_test(lazy_penalty_is_dense_penalty_for_every_optimizer),
        cmocka_unit_test(lazy_penalty_is_dense_penalty_for_group_lasso),
        cmocka_unit_test(lazy_penalty_is_dense_penalty_for_group_lasso_with_l2),
        cmocka_unit_test(lazy_penalty_is_dense_penalty_for_group_lasso_with_l1),
        cmocka_unit_test(sgd_penalties_follow_the_flow),
        cmocka_unit_test(a_small_penalty_is_not_lost_in_rounding),
        cmocka_unit_test(units_of_a_feature_do_not_matter),
        cmocka_unit_test(a_penalty_does_not_hide_nan),
    };
    int failed = 0;
    FOR_EVERY_CPU_LEVEL
    failed += cmocka_run_group_tests(tests, NULL, NULL);
    return failed;
}

/* The rules of a run. They are asked from top to bottom, phase by phase (rules.h): the order
   decides which of several complaints is made.

       RULE(phase, name, condition, sentence)              refused where the condition holds
       IDLE(phase, name, condition, OPTIONS(…), sentence)  … and one of the options, which then do
                                                           nothing, was given
       TELL(phase, name, condition, function)              as RULE; the function makes the sentence

   Conditions look at `run` and its settings `s`, and from the second phase on at `kind`,
   `optimizer`, `strategy` and `transport`. Names in braces are explained at sdr_rule_sentence.

   Not here: what a look at the data refuses (problem.c, labels.c, extremes.c, kind->check), what a
   strategy refuses by its own options (strategy->quorum, strategy->plan), --evaluate-every
   (point.c), and files.

   rules.c includes this file twice: for the conditions, and for the table. */
/* clang-format off */

/* ---- options alone ---- */
RULE(OPTIONS, valid_twice,
     s->valid && s->valid_fraction > 0,
     "--valid and --valid-fraction exclude each other")
RULE(OPTIONS, early_stop_without_valid,
     s->early_stop && !s->valid && s->valid_fraction == 0,
     "--early-stop needs --valid or --valid-fraction")
TELL(OPTIONS, valid_unreadable,
     s->valid && strcmp(s->valid, "-") != 0 && !strpbrk(s->valid, "*?[") &&
         access(s->valid, R_OK) != 0,
     cannot_open_valid)
RULE(OPTIONS, valid_labels_alone,
     s->valid_labels && !s->valid,
     "--valid-labels needs --valid")
RULE(OPTIONS, target_no_loss,
     s->target && !is_number(s->target),
     "--target takes a loss, not '{--target}'")
RULE(OPTIONS, evaluate_every_no_updates,
     strcmp(s->evaluate_every, "no") != 0 && strcmp(s->evaluate_every, "auto") != 0 &&
         !is_count(s->evaluate_every),
     "--evaluate-every takes updates, auto or no, not '{--evaluate-every}'")
RULE(OPTIONS, scaled_without_lr,
     s->lr_batch && s->lr == 0,
     "--lr-batch scales --lr: give --lr, the step for {--lr-batch} rows")
RULE(OPTIONS, replay_resumed,
     s->replay && s->resume,
     "--replay begins at the beginning: not with --resume")
RULE(OPTIONS, record_and_replay,
     s->record && s->replay,
     "--record and --replay exclude each other")
RULE(OPTIONS, resume_without_run,
     s->resume && !s->run,
     "--resume needs --run DIR, the folder of the run to go on with")
RULE(OPTIONS, checkpoint_without_run,
     given(run, "checkpoint-every") && !s->run,
     "--checkpoint-every needs --run DIR, the folder to keep them in")
RULE(OPTIONS, checkpoint_every_no_time,
     !is_every(s->checkpoint_every),
     "--checkpoint-every takes seconds or updates such as 60s or 10000u, not "
     "'{--checkpoint-every}'")

/* ---- scaling of features (asked by the process that measures them) ---- */
RULE(FEATURES, pairs_standardized,
     kind->needs & SDR_NEEDS_PAIRS && s->standardize,
     "--standardize does nothing with --model {model}: its features have no size")
RULE(FEATURES, pairs_scaled,
     kind->needs & SDR_NEEDS_PAIRS && s->scale == SDR_SCALE_FEATURE,
     "--scale feature does nothing with --model {model}: its features have no size")
RULE(FEATURES, standardized_unscaled,
     kind->sense != SDR_STATISTIC && s->standardize && s->scale == SDR_SCALE_NONE,
     "--standardize takes steps in scaled units: not with --scale none")

/* ---- what the strategy can do at all ---- */
RULE(STRATEGY, workers_of_full_batches,
     !strategy->many && s->workers > 1 && (has_rounds(kind) || kind->full) && strategy->full_batch,
     "--sync {sync} with --model {model} uses all cores without --workers (--threads for fewer)")
RULE(STRATEGY, workers_of_one,
     !strategy->many && s->workers > 1,
     "--sync {sync} has one worker; --sync hogwild uses all cores")
IDLE(STRATEGY, pin_of_one,
     !strategy->many, OPTIONS("pin"),
     "--pin does nothing with --sync {sync}, which has one worker")
RULE(STRATEGY, not_deterministic,
     s->deterministic && !strategy->repeatable && !strategy->can_repeat,
     "--sync {sync} cannot be --deterministic: its result depends on the number of workers or on "
     "their speed")

/* ---- workers: how many, and whether they share memory or exchange messages ---- */
TELL(WORKERS, replay_of_others,
     run->race.replay && s->workers && s->workers != run->race.replay->workers,
     tell_recorded_workers)
/* Going back is for runs whose weights are in one place. */
RULE(WORKERS, restarts_of_state,
     s->restarts && optimizer->own_penalty,
     "--restarts goes back to weights, and --optimizer {optimizer} keeps them in its state: give "
     "another --optimizer")
RULE(WORKERS, restarts_of_steps,
     s->restarts && !one_place(run) && sdr_sends_steps(run),
     "--restarts does not reach workers that take steps on their own: give --sync async without "
     "push and fetch, or k-async")
RULE(WORKERS, restarts_of_racers,
     s->restarts && !one_place(run),
     "--restarts needs a strategy with servers, such as async, or --sync serial")
IDLE(WORKERS, nodes_without_server,
     !strategy->server && !strategy->peer,
     OPTIONS("transport", "servers", "dedicated-servers", "compute", "delay", "slow", "codec",
             "aggregate"),
     "--{option} does nothing with --sync {sync}, whose workers share memory: give a strategy with "
     "a server, such as bsp, k-sync or async")
IDLE(WORKERS, peers_without_server,
     strategy->peer, OPTIONS("servers", "dedicated-servers", "codec", "aggregate"),
     "--{option} does nothing with --sync {sync}, which has no server")
RULE(WORKERS, dedicated_without_processes,
     s->dedicated_servers && run->processes == 1,
     "--dedicated-servers needs two processes or more, of which one has no worker: start with "
     "'mpirun -n 2' and --transport mpi")
RULE(WORKERS, peers_of_statistics,
     strategy->peer && !strategy->peer->local && kind->sense != SDR_GRADIENT,
     "--sync {sync} sums gradients of all values, and --model {model} has none")
RULE(WORKERS, codec_that_rounds,
     run->use.codec && run->use.codec->lossy && s->deterministic,
     "--codec {--codec} rounds what is sent, by whoever sends it: not with --deterministic")
RULE(WORKERS, aggregate_of_parts,
     given(run, "aggregate") && strcmp(s->aggregate, "mean") != 0 && strategy->joint,
     "--aggregate {--aggregate} needs gradients of batches of their own, and the workers of --sync "
     "{sync} share one: give --sync k-sync or k-async")
RULE(WORKERS, aggregate_of_steps,
     given(run, "aggregate") && strcmp(s->aggregate, "mean") != 0 && sdr_sends_steps(run),
     "--aggregate {--aggregate} needs gradients, and the workers of --sync {sync} send steps")
RULE(WORKERS, aggregate_of_statistics,
     given(run, "aggregate") && strcmp(s->aggregate, "mean") != 0 && kind->sense != SDR_GRADIENT,
     "--aggregate {--aggregate} needs gradients, and --model {model} sums rows up")
RULE(WORKERS, distances_over_servers,
     run->use.aggregate->needs_distances && s->servers > 1,
     "--aggregate {--aggregate} compares whole gradients: leave --servers out")
RULE(WORKERS, compute_in_real_time,
     s->compute && !transport->simulated,
     "--compute is for --transport sim; --delay holds real workers up")
RULE(WORKERS, pin_of_nodes,
     sdr_by_messages(run) && s->pin,
     "--pin is for workers that share memory")
RULE(WORKERS, record_of_messages,
     sdr_by_messages(run) && (s->record || s->replay),
     "--{recording} is for workers that race: give --sync hogwild")
RULE(WORKERS, messages_of_a_stream,
     sdr_by_messages(run) && run->data->streams,
     "--sync {sync} with messages needs the data in memory: give more --memory")
TELL(WORKERS, too_many_threads,
     !sdr_by_messages(run) && run->workers > SDR_WORKERS_MOST,
     tell_threads_most)
TELL(WORKERS, too_many_nodes,
     sdr_by_messages(run) && (uint64_t)run->workers > transport->workers_most,
     tell_nodes_most)

/* ---- options that do nothing: there are no steps, or the strategy takes its own ---- */
TELL(UPDATE, too_large,
     sdr_by_messages(run) && run->pace.update_rows > UINT32_MAX,
     tell_update_rows)
IDLE(UPDATE, steps_of_clusters,
     kind->sense == SDR_STATISTIC,
     OPTIONS("optimizer", "lr", "lr-batch", "schedule", "average", "l1", "l2", "group-lasso", "penalty-on",
             "scale", "standardize", "intercept", "class-weight"),
     "--{option} does nothing with --model {model}, which sums rows up")
RULE(UPDATE, method_of_lloyd,
     has_rounds(kind) && strategy->full_batch && !sdr_own_steps(run),
     "--sync {sync} with --model {model} is Lloyd's algorithm: it has no method")
IDLE(UPDATE, optimizer_of_own_steps,
     sdr_own_steps(run), OPTIONS("optimizer", "lr", "lr-batch", "schedule", "average", "shuffle"),
     "--{option} does nothing with --sync {sync}, which takes its own steps ({sync}:optimizer "
     "leaves them to --optimizer)")

/* ---- optimizer, schedule and penalties ---- */
RULE(METHOD, groups_of_one_output,
     s->group_lasso > 0 && kind->truth != SDR_CLASSES,
     "--group-lasso groups the weights of a feature over classes: it needs --model softmax (with "
     "one output, --l1 is the same)")
RULE(METHOD, groups_of_unequal_steps,
     s->group_lasso > 0 && !sdr_own_steps(run) && !optimizer->uniform,
     "--group-lasso needs steps that are equal within a feature: --optimizer sgd, momentum or "
     "nesterov, or --sync batch")
RULE(METHOD, own_steps_of_others,
     sdr_own_steps(run) && !kind->full,
     "--sync {sync} takes its own steps on linear models only: use {sync}:optimizer, or another "
     "--sync, with --model {model}")
RULE(METHOD, state_that_starts_at_zero,
     optimizer->own_penalty && kind->start,
     "--optimizer {optimizer} starts from zero, and --model {model} cannot")
RULE(METHOD, penalty_within_a_set,
     kind->project && (s->l1 > 0 || s->l2 > 0 || optimizer->decay),
     "--model {model} keeps its values in a set: no penalty or decay goes with it")
RULE(METHOD, look_ahead_out_of_a_set,
     kind->project && optimizer->publish,
     "--optimizer {optimizer} looks ahead, out of the set that --model {model} keeps its values in "
     "(try momentum)")
IDLE(METHOD, intercept_of_a_cut,
     kind->no_intercept, OPTIONS("intercept"),
     "--no-intercept does nothing with --model {model}")
RULE(METHOD, two_decays,
     optimizer->decay && s->l2 > 0,
     "--l2 does nothing with {optimizer}, which decays by {optimizer}:decay")
RULE(METHOD, own_penalty_scaled,
     optimizer->own_penalty && run->set.scale && !s->standardize && (s->l1 > 0 || s->l2 > 0),
     "{optimizer} with penalties and --scale feature needs --standardize")
RULE(METHOD, l1_with_decay,
     optimizer->decay && s->l1 > 0,
     "--l1 does not go with the decoupled decay of {optimizer} (try adam)")
RULE(METHOD, two_penalties,
     s->group_lasso > 0 && s->l1 > 0 && !sdr_own_steps(run),
     "--group-lasso with --l1 needs --sync batch")
RULE(METHOD, schedule_of_own_penalty,
     optimizer->own_penalty && !is_constant(run),
     "{optimizer} shrinks its steps by itself: --schedule {--schedule} does not apply")
IDLE(METHOD, batch_of_all_rows,
     strategy->full_batch && s->batch > 0, OPTIONS("batch"),
     "--batch does nothing with --sync {sync}, which takes all rows at once")
RULE(METHOD, order_of_a_stream,
     run->data->streams && (s->shuffle == SDR_SHUFFLE_ROWS || s->shuffle == SDR_SHUFFLE_CHUNKS),
     "data that streams (--memory) can be shuffled by blocks, not by {--shuffle}")
TELL(METHOD, labels_out_of_range,
     kind->truth == SDR_REGRESSION && !sdr_own_steps(run) &&
         !(run->set.target_size > 1e-15 && run->set.target_size < 1e15),
     tell_label_size)

/* ---- averaging, once the length of the run is known ---- */
RULE(LENGTH, average_no_epochs,
     averages(run) && !is_count(s->average),
     "--average takes a number of epochs or no, not '{--average}'")
TELL(LENGTH, average_behind_the_end,
     averages(run) && count_of(s->average) >= run->pace.length,
     tell_average)
RULE(LENGTH, average_of_disorder,
     averages(run) && !strategy->ordered,
     "--average needs updates one after the other: --sync serial, locked or round-robin")

/* ---- messages: servers add up the steps of several workers, and have no state ---- */
RULE(MESSAGES, steps_that_do_not_add_up,
     sdr_sends_steps(run) && (kind->sense == SDR_STATISTIC || kind->project),
     "--model {model} does not take steps that could be added up, as --sync {--sync} wants: give "
     "async without push and fetch, or k-async")
RULE(MESSAGES, servers_that_push,
     sdr_sends_steps(run) && strategy->server->eager && s->servers > 1,
     "--sync {sync} has one server: leave --servers out")
RULE(MESSAGES, weights_in_the_state,
     sdr_sends_steps(run) && optimizer->own_penalty,
     "--optimizer {optimizer} keeps the weights in its state, which with --sync {sync} is every "
     "worker's own: give another --optimizer")
RULE(MESSAGES, penalty_without_state,
     sdr_sends_steps(run) && (s->l1 > 0 || s->l2 > 0 || s->group_lasso > 0) && optimizer->slots > 0,
     "with --sync {sync} penalties are charged by the servers, which do not have the state of "
     "--optimizer {optimizer}: give --optimizer sgd")

RULE(MESSAGES, updates_of_local_steps,
     strategy->peer && strategy->peer->local && s->updates,
     "--updates does nothing with --sync {sync}, whose workers go over rows of their own: give "
     "--epochs")

/* ---- shared memory: what the strategy has planned ---- */
RULE(PLAN, updates_of_shards,
     run->shared.plan.shards && s->updates,
     "--updates does nothing with --sync {sync}, whose workers go over rows of their own: give "
     "--epochs")
RULE(PLAN, order_of_cells,
     run->shared.plan.rotates && s->shuffle != SDR_SHUFFLE_AUTO && s->shuffle != SDR_SHUFFLE_NONE,
     "--shuffle does nothing with --sync {sync} but 'none': rows come by cells")
RULE(PLAN, average_in_place,
     run->shared.plan.in_place && run->pace.average_from != UINT64_MAX,
     "--average needs updates one after the other: {sync} with one lock")
RULE(PLAN, plan_for_a_stream,
     run->data->streams && (run->shared.plan.windows || run->shared.plan.shards || run->shared.plan.rotates),
     "--sync {sync} needs the data in memory: give more --memory")
RULE(PLAN, record_without_races,
     (s->record || s->replay) && !run->shared.plan.races &&
         (!strategy->team->plan || !strategy->can_repeat || strategy->joint),
     "--{recording} is for workers that race, and this run is the same each time: give --sync "
     "hogwild")
RULE(PLAN, record_of_determinism,
     (s->record || s->replay) && !run->shared.plan.races && s->deterministic,
     "--{recording} is for workers that race, and this run is the same each time: leave out "
     "--deterministic")
RULE(PLAN, record_of_one,
     (s->record || s->replay) && !run->shared.plan.races,
     "--{recording} is for workers that race, and this run is the same each time: give --workers 2 "
     "or more")

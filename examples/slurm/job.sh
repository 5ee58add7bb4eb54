#!/bin/bash
# A job for Slurm that outlives its time limit and preemption. Copy it, change what a line says, then
#   sbatch job.sh DATA [OPTIONS of sounder train]
# DATA and the run's folder must be where all nodes see them. SOUNDER=PROGRAM and RUN=DIR may be given.
#
#SBATCH --job-name=sounder
#SBATCH --nodes=4
# One worker to a task. Every task reads the data: as many as a node has cores, if that fits into its memory.
#SBATCH --ntasks-per-node=4
#SBATCH --time=04:00:00
# Two minutes before the time is over every process hears SIGTERM, as it does when the job is preempted.
#SBATCH --signal=TERM@120
# The job keeps its number when it starts again, and goes on writing to the same log.
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=sounder-%j.log
#
# On SIGTERM sounder writes a checkpoint and ends with 75. For a checkpoint in between:
#   scancel --signal=USR1 JOB
set -u
data=${1:?"which data? sbatch job.sh DATA [OPTIONS]"}
shift
run=${RUN:-run-$SLURM_JOB_ID}

# Not the first start: go on from the newest checkpoint.
resume=()
compgen -G "$run/checkpoint-*.safetensors" >/dev/null && resume=(--resume)

# Slurm 22.05 lets a process out of MPI_Init before those on other nodes are ready to hear from it, which now
# and then crashes one of them; not with this.
export SLURM_PMIX_FENCE=ring

# Without --kill-on-bad-exit the others wait for a process that was killed on another node.
srun --mpi=pmix --kill-on-bad-exit=1 "${SOUNDER:-sounder}" train "$data" \
    --transport mpi --sync k-async:2 --workers "$SLURM_NTASKS" --batch 32 --run "$run" "${resume[@]}" "$@"
code=$?

# Slurm starts a preempted job again only if it had to kill it; this one has ended by itself.
[ $code = 75 ] && scontrol requeue "$SLURM_JOB_ID"
exit $code

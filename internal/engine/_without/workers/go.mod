// Stands for Temporal's module of this name (decision 26). The versions of what it imports are pawl's own.
module go.temporal.io/auto-scaled-workers

go 1.26

.PHONY: demo test check bench

# The README's two commands.
demo:
	go run . demo
test:
	go test ./...

# What CI checks beside the tests; .ci/run installs what is missing and calls it.
check:
	.ci/check

# The side-by-side measurements of docs/numbers.md. They take some minutes.
bench:
	bench/run

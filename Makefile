.PHONY: build demo test e2e nightly lint check generate pictures bench

# The README's two commands.
demo:
	go run . demo
test:
	go test ./...

build:
	go build -trimpath -o pawl .

# A kill at each crash point, and every escape.
e2e:
	go test -tags e2e -run 'TestKilledAtEveryPoint|TestEscapes' ./test/e2e/crash ./test/security

# Every test there is, some hours of processor time. It wants the tools that .ci/run installs.
nightly:
	PAWL_TEST_ALL=1 go test -tags nightly -timeout 90m ./...

# What CI checks beside the tests; .ci/run installs what is missing and calls it.
lint check:
	.ci/check

# The pages, the schema and the expected screens that programs write.
generate:
	go generate ./...
	go test ./test/docs ./internal/steward/statusfile ./internal/cli/render -update

# The pictures of the docs, from their sources. It needs Graphviz.
pictures:
	docs/pictures/draw.sh

# The side-by-side measurements of docs/reference/numbers.md. They take some minutes.
bench:
	bench/run

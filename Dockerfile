# syntax=docker/dockerfile:1
# The production worker and the starter, without the embedded engine. Add agents and the tools that your
# repositories need to build and test in an image of your own: FROM this image.

FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY . .
# go.mod also lists the embedded server's modules. This downloads only what the two programs link.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -o /out/ ./worker ./starter

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates git openssh-client \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --create-home pawl \
 && install -d -o pawl -g pawl -m 0700 /var/lib/pawl \
 && install -d -o pawl -g pawl /srv/git /srv/work \
 && ln -s starter /usr/local/bin/pawl
COPY --from=build /out/worker /out/starter /usr/local/bin/
COPY --chmod=0755 deploy/git.sh deploy/health.sh /usr/local/lib/pawl/
COPY --chmod=0755 deploy/hooks/ /usr/local/lib/pawl/hooks/
USER pawl
# The worker's identity and its loops' trees, and the records that recover them. Keep this on a volume.
ENV PAWL_HOME=/var/lib/pawl
WORKDIR /var/lib/pawl
VOLUME /var/lib/pawl
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["/usr/local/lib/pawl/health.sh"]
ENTRYPOINT ["worker"]

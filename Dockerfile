# An image with lmcaddy and its engine: docker build --tag lmcaddy . (docs/packaging.md)
ARG GO_VERSION=1.26.8
ARG DEBIAN=trixie

FROM golang:${GO_VERSION}-${DEBIAN} AS build
ARG VERSION=development
ENV CGO_ENABLED=0 GOTOOLCHAIN=local
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go build -trimpath -buildvcs=false -tags nobadger,nomysql,nopgx \
        -ldflags "-s -w -X github.com/caddyserver/caddy/v2.CustomVersion=${VERSION}" -o /lmcaddy ./cmd/lmcaddy

FROM debian:${DEBIAN}-slim
# cpu, vulkan or cuda
ARG ENGINE=cpu
# The engine needs the libraries. tini ends the processes that others leave behind: lmcaddy waits for its own children only.
RUN export DEBIAN_FRONTEND=noninteractive && apt-get update \
    && vulkan= && if [ "$ENGINE" = vulkan ]; then vulkan="libvulkan1 mesa-vulkan-drivers"; fi \
    && apt-get install -y --no-install-recommends ca-certificates libgomp1 libssl3t64 libstdc++6 tini $vulkan \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --no-create-home --home-dir /var/lib/lmcaddy --shell /usr/sbin/nologin lmcaddy \
    && install -d -m 0700 -o lmcaddy -g lmcaddy /var/lib/lmcaddy
COPY --from=build /lmcaddy /usr/bin/lmcaddy
# The engine is part of the image. One that "lmcaddy runtime get" downloads to the home comes first.
RUN mkdir /usr/lib/lmcaddy \
    && LMCADDY_HOME=/usr/lib/lmcaddy lmcaddy runtime get llama.cpp --variant "$ENGINE" >/tmp/engine \
    && ln -s "$(grep '^/' /tmp/engine)" /usr/local/bin/llama-server && test -x /usr/local/bin/llama-server \
    && chmod -R a+rX /usr/lib/lmcaddy && rm /tmp/engine
COPY packaging/docker/Caddyfile /etc/lmcaddy/Caddyfile
ENV LMCADDY_HOME=/var/lib/lmcaddy
# The account lmcaddy, by number: Kubernetes' runAsNonRoot accepts no name.
USER 10001:10001
WORKDIR /var/lib/lmcaddy
VOLUME /var/lib/lmcaddy
EXPOSE 1234
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s CMD ["lmcaddy", "status"]
ARG VERSION=development
LABEL org.opencontainers.image.title=lmcaddy org.opencontainers.image.version=${VERSION} \
    org.opencontainers.image.licenses=Apache-2.0
ENTRYPOINT ["tini", "--", "lmcaddy"]
CMD ["run", "--config", "/etc/lmcaddy/Caddyfile"]

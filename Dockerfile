# A testnet in a container that holds the static program and nothing else, as a user without rights: docs/releasing.md.
#
#   docker build -t dposlab .
#   docker run --rm -p 127.0.0.1:4003:4003 dposlab
#
# The port mapping does not arrive from loopback, so /lab asks for a token:
#
#   docker run --rm -p 127.0.0.1:4003:4003 -v "$PWD/token:/token:ro" dposlab up --host 0.0.0.0 --lab token --lab-token /token

FROM rust:1.91-alpine AS build
RUN apk add --no-cache gcc musl-dev
WORKDIR /dposlab
COPY Cargo.toml Cargo.lock build.rs ./
COPY benches benches
COPY crates crates
COPY scenarios scenarios
COPY src src
# The commit, which outputs of runs name: docker build --build-arg DPOSLAB_COMMIT="$(git rev-parse HEAD)" .
ARG DPOSLAB_COMMIT=
RUN cargo build --locked --release --bin dposlab && strip target/release/dposlab

FROM scratch
COPY --from=build /dposlab/target/release/dposlab /usr/bin/dposlab
USER 65532:65532
EXPOSE 4003
ENTRYPOINT ["/usr/bin/dposlab"]
CMD ["up", "--host", "0.0.0.0"]

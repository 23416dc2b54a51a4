# The NATS server of this module, for where the official image cannot be had.
FROM scratch
COPY nats-server /nats-server
ENTRYPOINT ["/nats-server"]

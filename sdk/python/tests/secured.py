"""A stage with certificates, for the tests of deploy/apps."""

import sys

import weft

url, ca, cert, key = sys.argv[1:]
app = weft.Stage("blocker")
app.packet(lambda packet: weft.DROP)
app.run(url, weft.TLS(ca, cert, key))

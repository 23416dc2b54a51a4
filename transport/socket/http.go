package socket

import (
	"io"
	"log"
	"net/http"
	"time"
)

// NewHTTPServer returns an HTTP/1.1 server that is not held up by slow peers.
// A handler bounds the time to read a body itself.
func NewHTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       IdleTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // of peers that break off, mostly
	}
}

// IdleTimeout is how long a connection of HTTP/1.1 may be without a request.
const IdleTimeout = 5 * time.Minute

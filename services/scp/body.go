package scp

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
)

// keepBody gives a request a body that can be sent again: a server may end a connection that
// was idle when the request is on its way, and not look at it.
func keepBody(r *http.Request, body []byte) {
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
}

package rest

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/socket"
)

// wire is one connection of HTTP/1.1, used by one request after the other.
type wire struct {
	conn  net.Conn
	r     *bufio.Reader
	host  string
	buf   []byte    // in which requests are written
	since time.Time // when it became idle
}

func dialWire(ctx context.Context, address string, c *tls.Config) (*wire, error) {
	conn, err := socket.Dial(ctx, address, c, "http/1.1")
	if err != nil {
		return nil, err
	}
	host := address
	if strings.HasPrefix(address, "unix:") {
		host = "localhost"
	}
	return &wire{conn: conn, r: bufio.NewReaderSize(conn, 8<<10), host: host}, nil
}

// largeBody is the size from which a body is written separately, not copied.
const largeBody = 64 << 10

// appendRequest appends a request to b, without its body.
func (w *wire) appendRequest(b []byte, method, prefix, name string, timeout time.Duration, body int) []byte {
	b = append(b, method...)
	b = append(b, ' ')
	b = append(b, prefix...)
	if plain(name) {
		b = append(b, name...)
	} else {
		b = append(b, url.PathEscape(name)...)
	}
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, w.host...)
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(body), 10)
	if timeout > 0 {
		b = append(b, "\r\n"+TimeoutHeader+": "...)
		b = strconv.AppendInt(b, max(timeout.Microseconds(), 1), 10)
		b = append(b, "us"...)
	}
	return append(b, "\r\n\r\n"...)
}

// plain reports whether a name can stand in a path without escapes.
func plain(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.' && i > 0) {
			return false
		}
	}
	return true
}

// call makes a request and returns the body of its answer. failed is an error
// that the peer returned; err is an error of the connection, which must not be
// used again.
func (w *wire) call(method, prefix, name string, timeout time.Duration, body []byte) (resp []byte, failed *transport.Error, err error) {
	b := w.appendRequest(w.buf[:0], method, prefix, name, timeout, len(body))
	if len(body) < largeBody {
		b = append(b, body...)
		body = nil
	}
	w.buf = b
	if _, err := w.conn.Write(b); err != nil {
		return nil, nil, err
	}
	if len(body) > 0 {
		if _, err := w.conn.Write(body); err != nil {
			return nil, nil, err
		}
	}
	return w.answer()
}

// answer reads the answer to a request.
func (w *wire) answer() (body []byte, failed *transport.Error, err error) {
	resp, err := http.ReadResponse(w.r, nil)
	if err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			err = errors.New("the peer has closed the connection")
		}
		return nil, nil, err
	}
	if resp.ContentLength > transport.MaxMessage {
		return nil, nil, fmt.Errorf("an answer of %d octets", resp.ContentLength)
	}
	if resp.ContentLength != 0 {
		if body, err = readAll(resp.Body, resp.ContentLength); err != nil {
			return nil, nil, err
		}
	} else {
		body = []byte{}
	}
	switch {
	case resp.StatusCode/100 == 2:
	case resp.Header.Get(CodeHeader) != "":
		code, err := strconv.ParseUint(resp.Header.Get(CodeHeader), 10, 32)
		if err != nil {
			return nil, nil, fmt.Errorf("header %s: %w", CodeHeader, err)
		}
		failed = &transport.Error{Code: transport.Code(code), Text: string(body)}
	default:
		failed = transport.Errorf(transport.Unknown, "%s: %s", resp.Status, strings.TrimSpace(string(body[:min(len(body), 1024)])))
	}
	if resp.Close {
		return body, failed, errClosing
	}
	return body, failed, nil
}

// errClosing says that an answer is complete and the last of its connection.
var errClosing = errors.New("the peer closes the connection")

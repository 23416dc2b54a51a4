package ryu

import (
	"bytes"
	"context"
	"net/http"
	"strings"

	"github.com/weft-sdn/weft/internal/northbound"
)

// request is one request, as handlers see it.
type request struct {
	path   string
	args   map[string]string // what stands for the names in the route's path
	body   []byte
	header http.Header // of the answer
}

// note adds a header with a remark that Ryu would not make.
func (r *request) note(text string) {
	r.header.Set("Weft-Refused", strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return ' '
		}
		return c
	}, northbound.Shortened(text)))
}

// dict reads the body, a dictionary; none is an empty one.
func (r *request) dict() (dict, error) {
	if len(bytes.TrimSpace(r.body)) == 0 {
		return dict{}, nil
	}
	v, err := parseLiteral(string(r.body))
	if err != nil {
		return nil, bad("%v", err)
	}
	d, ok := v.(dict)
	if !ok {
		return nil, bad("body: want a dictionary, such as {\"dpid\": 1}")
	}
	return d, nil
}

// handler answers a request: with a value to show as JSON, with nothing, or with
// a reply of another status.
type handler func(context.Context, *request) (any, error)

// reply is an unusual answer.
type reply struct {
	status int
	text   string
}

// route maps a method and a path to a handler; {name} in the path stands for one
// part of it.
type route struct {
	method, path string
	handler      handler
}

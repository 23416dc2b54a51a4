package sbi

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"
)

// Limits bound a body, so that no text costs more than its size suggests.
type Limits struct {
	Octets int64
	Depth  int // of arrays and objects in each other
	Values int // names, scalars, arrays and objects, all together
}

// DefaultLimits admit any profile that makes sense: one that lists thousands of
// ranges of subscribers has 150 kB and 20,000 values.
var DefaultLimits = Limits{Octets: 256 << 10, Depth: 64, Values: 100_000}

// ReadBody reads a JSON text and checks it: one value within the limits, no
// object with two members of one name, or of names that differ in case only, of
// which readers take different ones. The error is a ProblemDetails: 413 beyond a
// limit, 400 for what is no JSON.
func ReadBody(r io.Reader, l Limits) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, l.Octets+1))
	if err != nil {
		return nil, Problem(http.StatusBadRequest, InvalidMessageFormat, "the body was cut off: "+err.Error())
	}
	if int64(len(b)) > l.Octets {
		return nil, tooLarge(fmt.Sprintf("more than %d octets", l.Octets))
	}
	if err := l.Check(b); err != nil {
		return nil, err
	}
	return b, nil
}

// Decode returns a body without its content encoding (TS 29.500, 6.9), within the
// limits. The error is a ProblemDetails: 415 for an encoding other than gzip.
func (l Limits) Decode(encoding string, body []byte) ([]byte, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
	default:
		return nil, Problem(http.StatusUnsupportedMediaType, UnsupportedMediaType, fmt.Sprintf("content encoding %.40q: want gzip, or none", encoding))
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(z, l.Octets+1))
	}
	switch {
	case err != nil:
		return nil, Problem(http.StatusBadRequest, InvalidMessageFormat, "no gzip: "+err.Error())
	case int64(len(body)) > l.Octets:
		return nil, tooLarge(fmt.Sprintf("more than %d octets", l.Octets))
	}
	return body, nil
}

// Check checks a text as ReadBody does. Its time grows with the text, its memory
// with the limits.
func (l Limits) Check(b []byte) error {
	if int64(len(b)) > l.Octets {
		return tooLarge(fmt.Sprintf("more than %d octets", l.Octets))
	}
	var open []*object
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	for values := 0; ; {
		t, err := d.Token()
		if t != json.Delim('}') && t != json.Delim(']') {
			values++
		}
		switch {
		case errors.Is(err, io.EOF) && values == 1:
			return Problem(http.StatusBadRequest, InvalidMessageFormat, "no body")
		case err != nil:
			return Problem(http.StatusBadRequest, InvalidMessageFormat, "no JSON: "+err.Error())
		case values > l.Values:
			return tooLarge(fmt.Sprintf("more than %d values", l.Values))
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if len(open) == l.Depth {
				return tooLarge(fmt.Sprintf("deeper than %d", l.Depth))
			}
			o := &object{}
			if t == json.Delim('{') {
				o.names = map[string]bool{}
			}
			open = append(open, o)
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		default:
			if len(open) > 0 && open[len(open)-1].name(t) {
				return Problem(http.StatusBadRequest, InvalidMessageFormat, fmt.Sprintf("two members %.100s in one object", t))
			}
		}
		if len(open) > 0 {
			open[len(open)-1].valued()
			continue
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return Problem(http.StatusBadRequest, InvalidMessageFormat, "something follows the JSON text")
		}
		return nil
	}
}

// object is an array or an object whose end has not been read.
type object struct {
	names map[string]bool // nil for an array
	named bool            // a name has been read, and not its value
}

// name takes a token as a name, if one is due, and reports whether it is the
// second of its kind, in whatever case.
func (o *object) name(t json.Token) bool {
	if o.names == nil || o.named {
		return false
	}
	s, _ := t.(string)
	s = fold(s)
	twice := o.names[s]
	o.names[s] = true
	return twice
}

// fold returns one form for all names that differ in case only, by the rules of
// encoding/json, where ſ is s.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next
			}
			r = next
		}
	}, name)
}

// valued follows each token that ends a name or a value.
func (o *object) valued() { o.named = o.names != nil && !o.named }

func tooLarge(detail string) *ProblemDetails {
	return Problem(http.StatusRequestEntityTooLarge, ContentTooLarge, detail)
}

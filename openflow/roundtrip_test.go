package openflow

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"
)

// TestRoundTrip encodes random values of every message, decodes them, and
// encodes what it got once more.
func TestRoundTrip(t *testing.T) {
	for _, c := range codecs() {
		for _, v := range c.versions {
			t.Run(c.name+"/"+v.String(), func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, uint64(v)))
				for range 400 {
					x := c.random(r, v)
					prefix := data(r, r.IntN(5))
					out, err := c.encode(v, bytes.Clone(prefix), 7, x)
					if err != nil {
						t.Fatalf("%+v: %v", x, err)
					}
					if !bytes.HasPrefix(out, prefix) {
						t.Fatal("what was in the buffer has changed")
					}
					msg := out[len(prefix):]
					if h, err := ParseHeader(msg); err != nil || int(h.Length) != len(msg) || h.Version != v || h.Type == TypeUnknown {
						t.Fatalf("header %+v, %v of a message of %d octets", h, err, len(msg))
					}
					y, err := c.decode(v, msg)
					if err != nil {
						t.Fatalf("%x: %v", msg, err)
					}
					if !same(reflect.ValueOf(x), reflect.ValueOf(y)) {
						t.Fatalf("encoded %+v\ndecoded %+v\n%x", x, y, msg)
					}
					h, _ := ParseHeader(msg)
					again, err := c.encode(v, nil, h.Xid, y)
					if err != nil || !bytes.Equal(again, msg) {
						t.Fatalf("second encoding %v\n%x\n%x", err, msg, again)
					}
				}
			})
		}
	}
}

// same is reflect.DeepEqual, but for empty slices, which equal nil ones.
func same(a, b reflect.Value) bool {
	if a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Struct:
		for i := range a.NumField() {
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	}
	return a.Equal(b)
}

// TestTruncated cuts random messages short at every octet: decoding must
// report it or, where what is left is a whole message, read only that.
func TestTruncated(t *testing.T) {
	for _, c := range codecs() {
		for _, v := range c.versions {
			r := rand.New(rand.NewPCG(2, uint64(v)))
			for range 20 {
				msg, err := c.encode(v, nil, 7, c.random(r, v))
				if err != nil {
					t.Fatal(err)
				}
				for n := HeaderLen; n < len(msg); n++ {
					cut := bytes.Clone(msg[:n:n])
					cut[2], cut[3] = byte(n>>8), byte(n)
					if _, err := c.decode(v, cut); err == nil && n == HeaderLen && c.name != "hello" {
						t.Errorf("%s of %s: nothing but a header is accepted", c.name, v)
					}
				}
			}
		}
	}
}

package sbi

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestReadBody(t *testing.T) {
	l := Limits{Octets: 100, Depth: 3, Values: 10}
	for text, want := range map[string]string{
		`{"a": [1, {"b": "c"}], "d": null}`: "",
		` 7 `:                               "",
		``:                                  "400 INVALID_MSG_FORMAT: no body",
		`{`:                                 "400 INVALID_MSG_FORMAT: no JSON",
		`{"a": }`:                           "400 INVALID_MSG_FORMAT: no JSON",
		`{} {}`:                             "400 INVALID_MSG_FORMAT: something follows",
		`{"a": 1, "b": {"a": 2}, "a": 3}`:   `400 INVALID_MSG_FORMAT: two members a`,
		`{"a": "a", "b": "a"}`:              "",
		`{"ports": 1, "Ports": 2}`:          `400 INVALID_MSG_FORMAT: two members Ports`,
		`{"ports": 1, "portſ": 2}`:          `400 INVALID_MSG_FORMAT: two members portſ`,
		`{"a": {"b": 1}, "c": {"B": 1}}`:    "",
		`[[[[]]]]`:                          "413 CONTENT_TOO_LARGE: deeper than 3",
		`[1,2,3,4,5,6,7,8,9,10]`:            "413 CONTENT_TOO_LARGE: more than 10 values",
		strings.Repeat(" ", 101):            "413 CONTENT_TOO_LARGE: more than 100 octets",
	} {
		b, err := ReadBody(strings.NewReader(text), l)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if err == nil && string(b) != text {
			t.Errorf("%q: read %q", text, b)
		}
	}
	if err := DefaultLimits.Check([]byte(strings.Repeat("[", 200_000))); err == nil {
		t.Error("200,000 arrays in each other are allowed")
	}
}

func TestDecode(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, strings.Repeat("x", 100))
	z.Close()
	for _, c := range []struct {
		encoding string
		most     int64
		want     string
	}{{"gzip", 100, ""}, {" X-GZIP", 100, ""}, {"identity", 10, ""}, {"", 10, ""}, {"gzip", 99, "413"}, {"br", 100, "415"}, {"gzip, gzip", 100, "415"}} {
		text, err := Limits{Octets: c.most}.Decode(c.encoding, b.Bytes())
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) || c.most == 100 && err == nil && len(text) != 100 {
			t.Errorf("%+v: %d octets, %v", c, len(text), err)
		}
	}
	if _, err := DefaultLimits.Decode("gzip", []byte("{}")); err == nil {
		t.Error("{} is gzip")
	}
}

func FuzzLimits(f *testing.F) {
	for _, text := range []string{`{"a":[{}]}`, `[1,]`, `{"a"}`, `"\ud800"`, `{"":{"":0},"":1}`, `[[[[[[[[[[[[[[[[[[]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if DefaultLimits.Check(b) == nil && !json.Valid(b) {
			t.Fatalf("%q is no JSON, and passes", b)
		}
	})
}

func TestWriteProblem(t *testing.T) {
	w := httptest.NewRecorder()
	p := Problem(503, NFCongestion, "too many")
	p.RetryAfter = 1500 * time.Millisecond
	WriteProblem(w, fmt.Errorf("wrapped: %w", p))
	if w.Code != 503 || w.Header().Get("Retry-After") != "2" || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if want := `{"title":"Service Unavailable","status":503,"detail":"too many","cause":"NF_CONGESTION"}`; strings.TrimSpace(w.Body.String()) != want {
		t.Errorf("%s, want %s", w.Body, want)
	}
	w = httptest.NewRecorder()
	WriteProblem(w, fmt.Errorf("secret of the inside"))
	if w.Code != 500 || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestETag(t *testing.T) {
	tag := ETag([]byte("a"))
	if tag == ETag([]byte("b")) || tag != ETag([]byte("a")) {
		t.Error("tags do not follow the text")
	}
	for header, want := range map[string]bool{tag: true, `"x", W/` + tag: true, "*": true, `"x"`: false, "": false} {
		if MatchETag(header, tag) != want {
			t.Errorf("%s matches: want %v", header, want)
		}
	}
	if id := InstanceID("UDM", "10.0.0.5:7777"); !ValidInstanceID(id) || id[14] != '5' || id != InstanceID("UDM", "10.0.0.5:7777") || id == InstanceID("UDM", "10.0.0.6:7777") {
		t.Errorf("id %s", id)
	}
}
